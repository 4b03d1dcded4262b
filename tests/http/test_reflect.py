"""Reflect: contract reflect part A, cases 1-45; faults 16, 17, 19-23, 26."""
import json
import re
import threading
import time

import pytest

from stack import Stack, ok, wait_for

TOOLS = ["search_mental_models", "read_mental_models", "search_observations", "recall", "expand",
         "answer_ready", "done"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def reflect(bank, query="What does Alice like?", status=200, **body):
    return ok(bank.post("/reflect", {"query": query, **body}), status)


def everything(bank, query="What does Alice like?", **body):
    """A reflect that shows its evidence and its trace."""
    return reflect(bank, query, include={"facts": {}, "tool_calls": {}}, **body)


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def calls(*pairs):
    return {"tool_calls": [{"name": name, "args": args} for name, args in pairs]}


def loop(reply, **when):
    """A rule for the loop's calls."""
    return {"scope": "reflect_tool_call", "when": when, "reply": reply}


def closing(reply, **more):
    """A rule for the closing call."""
    return {"scope": "reflect", "when": {"tool_forced": "done"}, "reply": reply, **more}


def final(reply, **more):
    """A rule for the calls without tools: synthesis, rewrite."""
    return {"scope": "reflect", "when": {"tools": False}, "reply": reply, **more}


def offered(c):
    return [t["function"]["name"] for t in c["body"].get("tools") or []]


def loop_calls(llm):
    return llm.calls("reflect_tool_call")


def tool_messages(c):
    """Contents of the tool messages of one request, read."""
    return [json.loads(m["content"]) for m in c["body"]["messages"] if m["role"] == "tool"]


def scopes(answer):
    return [c["scope"] for c in answer["trace"]["llm_calls"]]


def tools_of(answer):
    return [t["tool"] for t in answer["trace"]["tool_calls"]]


def output(answer, tool):
    """The first result of a tool in the trace."""
    return next(t["output"] for t in answer["trace"]["tool_calls"] if t["tool"] == tool)


def memory_texts(answer, kind=None):
    return sorted(m["text"] for m in answer["based_on"]["memories"] if kind in (None, m["type"]))


def texts_in(messages, role):
    return "\n".join(m["content"] for m in messages if m["role"] == role)


def quiet(bank):
    """No observations: only what is retained is there."""
    bank.make()
    ok(bank.patch("/config", {"updates": {"enable_observations": False}}))


@pytest.fixture
def facts(bank):
    """A bank with two facts and nothing else."""
    quiet(bank)
    bank.retain("Alice likes green apples.")
    bank.retain("Bob likes old trains.")
    return bank


def fact_ids(bank):
    return {m["text"]: m["id"] for m in bank.memories()}


# ---- the answer ----

def test_reflect_case_01_unknown_bank_is_made_and_evidence_is_empty(bank, stack):
    answer = reflect(bank, include={"facts": {}})
    assert answer["text"]
    assert answer["based_on"] == {"memories": [], "mental_models": [], "directives": []}
    assert stack.sql("SELECT 1 FROM banks WHERE bank_id = %s", bank.id)


def test_reflect_case_02_without_include_only_text_and_usage(facts):
    answer = reflect(facts)
    assert set(answer) == {"text", "usage"}
    usage = answer["usage"]
    assert set(usage) == {"input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"}
    assert all(isinstance(v, int) for v in usage.values())
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0


def test_reflect_answer_quotes_what_was_found(facts):
    answer = everything(facts)
    assert "Alice likes green apples." in answer["text"]
    assert "Alice likes green apples." in memory_texts(answer)
    fact = answer["based_on"]["memories"][0]
    assert {"id", "text", "type", "mentioned_at", "document_id", "chunk_id", "tags"} <= set(fact)
    assert None not in fact.values()
    assert tools_of(answer) == ["search_observations", "recall"]
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "closing_done"]
    for t in answer["trace"]["tool_calls"]:
        assert t["input"]["tool"] == t["tool"]
        assert isinstance(t["duration_ms"], int)
    assert [t["iteration"] for t in answer["trace"]["tool_calls"]] == [1, 2]


def test_fault_21_shape_of_based_on(bank, facts):
    assert "based_on" not in reflect(facts)
    assert "based_on" not in reflect(facts, include={"facts": None, "tool_calls": None})
    answer = reflect(facts, include={"tool_calls": {"output": False}})
    assert answer["trace"]["tool_calls"]
    assert all("output" not in t for t in answer["trace"]["tool_calls"])


# ---- validation ----

BAD_BODIES = [
    ({}, "missing", ["body", "query"]),
    ({"query": None}, "string_type", ["body", "query"]),
    ({"query": 7}, "string_type", ["body", "query"]),
    ({"query": ""}, "value_error", ["body"]),
    ({"query": "  \n", "context": " "}, "value_error", ["body"]),
    ({"query": "\x00\x07"}, "value_error", ["body"]),
    ({"query": "q", "budget": "huge"}, "enum", ["body", "budget"]),
    ({"query": "q", "budget": None}, "enum", ["body", "budget"]),
    ({"query": "q", "budget": 3}, "enum", ["body", "budget"]),
    ({"query": "q", "context": 1}, "string_type", ["body", "context"]),
    ({"query": "q", "tags_match": "some"}, "literal_error", ["body", "tags_match"]),
    ({"query": "q", "max_tokens": None}, "int_type", ["body", "max_tokens"]),
    ({"query": "q", "max_tokens": []}, "int_type", ["body", "max_tokens"]),
    ({"query": "q", "max_tokens": "many"}, "int_parsing", ["body", "max_tokens"]),
    ({"query": "q", "max_tokens": 1.5}, "int_from_float", ["body", "max_tokens"]),
    ({"query": "q", "reflect_search_observations_max_tokens": 0}, "greater_than_equal",
     ["body", "reflect_search_observations_max_tokens"]),
    ({"query": "q", "reflect_search_mental_models_max_tokens": -1}, "greater_than_equal",
     ["body", "reflect_search_mental_models_max_tokens"]),
    ({"query": "q", "apply_all_directives": None}, "bool_type", ["body", "apply_all_directives"]),
    ({"query": "q", "exclude_mental_models": "maybe"}, "bool_parsing", ["body", "exclude_mental_models"]),
    ({"query": "q", "fact_types": []}, "value_error", ["body", "fact_types"]),
    ({"query": "q", "fact_types": "world"}, "list_type", ["body", "fact_types"]),
    ({"query": "q", "fact_types": ["world", "opinion"]}, "literal_error", ["body", "fact_types", 1]),
    ({"query": "q", "response_schema": {"type": "object"}}, "value_error", ["body", "response_schema"]),
    ({"query": "q", "response_schema": {"type": "array", "properties": {"a": {}}}}, "value_error",
     ["body", "response_schema"]),
    ({"query": "q", "response_schema": {"properties": {}}}, "value_error", ["body", "response_schema"]),
    ({"query": "q", "response_schema": {"properties": {"a": 1}}}, "value_error", ["body", "response_schema"]),
    ({"query": "q", "response_schema": {"properties": {"a": {"type": "text"}}}}, "value_error",
     ["body", "response_schema"]),
    ({"query": "q", "response_schema": {"properties": {"a": {}}, "required": ["b"]}}, "value_error",
     ["body", "response_schema"]),
    ({"query": "q", "response_schema": "object"}, "dict_type", ["body", "response_schema"]),
    ({"query": "q", "tags": [], "tag_groups": []}, "value_error", ["body"]),
    ({"query": "q", "tags": "a"}, "list_type", ["body", "tags"]),
    ({"query": "q", "tags": [1]}, "string_type", ["body", "tags", 0]),
    ({"query": "q", "include": None}, "model_attributes_type", ["body", "include"]),
    ({"query": "q", "include": []}, "model_attributes_type", ["body", "include"]),
    ({"query": "q", "include": {"facts": True}}, "model_attributes_type", ["body", "include", "facts"]),
    ({"query": "q", "include": {"tool_calls": "x"}}, "model_attributes_type", ["body", "include", "tool_calls"]),
]


@pytest.mark.parametrize("body,kind,loc", BAD_BODIES, ids=[json.dumps(b)[:60] for b, _, _ in BAD_BODIES])
def test_reflect_case_03_bad_bodies_cost_no_call(bank, stack, llm, body, kind, loc):
    detail = ok(bank.post("/reflect", body), 422)["detail"]
    assert [(d["type"], d["loc"]) for d in detail] == [(kind, loc)]
    assert "url" not in detail[0]
    if kind == "value_error":
        assert detail[0]["msg"].startswith("Value error, ")
    if kind in ("enum", "literal_error"):
        assert detail[0]["ctx"]["expected"]
    if kind == "greater_than_equal":
        assert detail[0]["ctx"] == {"ge": 1}
    assert llm.calls() == []
    assert not stack.sql("SELECT 1 FROM banks WHERE bank_id = %s", bank.id)


def test_reflect_case_03_whole_bodies(bank, llm):
    path = bank.path + "/reflect"
    assert ok(bank.api.raw("POST", path), 422)["detail"][0]["type"] == "missing"
    bad = ok(bank.api.raw("POST", path, b'{"query": oops}', {"Content-Type": "application/json"}), 422)["detail"][0]
    assert (bad["type"], bad["loc"]) == ("json_invalid", ["body", 10])
    for body in (b"[]", b'"q"', b"null"):
        bad = ok(bank.api.raw("POST", path, body, {"Content-Type": "application/json"}), 422)["detail"][0]
        assert (bad["type"], bad["loc"]) == ("model_attributes_type", ["body"])
    assert llm.calls() == []


def test_reflect_case_03_all_field_problems_are_listed(bank):
    detail = ok(bank.post("/reflect", {"query": 1, "budget": "x", "max_tokens": "y", "tags": [], "tag_groups": []}),
                422)["detail"]
    assert sorted(d["loc"][1] for d in detail) == ["budget", "max_tokens", "query"]


def test_fault_22_blank_question_needs_a_context(bank, llm):
    for body in ({"query": ""}, {"query": "   \n"}, {"query": None}, {}):
        assert bank.post("/reflect", body).status == 422
    assert llm.calls() == []
    assert bank.post("/reflect", {"query": " ", "context": "x"}).status == 200
    first = loop_calls(llm)[0]
    assert texts_in(first["body"]["messages"], "user").endswith("x")


def test_reflect_context_is_appended_to_the_question(bank, llm):
    reflect(bank, "What now?", context="it is raining")
    user = texts_in(loop_calls(llm)[0]["body"]["messages"], "user")
    assert re.match(r"What now\?\n\n[^\n]*it is raining$", user)


def test_reflect_coercions_and_ignored_keys(facts):
    answer = facts.post("/reflect?x=1", {"query": "q", "max_tokens": "4000", "exclude_mental_models": "yes",
                                         "apply_all_directives": 1, "colour": 1, "include": {"inner": 2}})
    assert answer.status == 200
    assert answer.headers["X-Ignored-Params"] == "x, colour"


def test_fault_31_half_emoji_in_the_question(bank, llm):
    path = bank.path + "/reflect"
    answer = bank.api.raw("POST", path, b'{"query": "deploy the \\ud83d service"}', {"Content-Type": "application/json"})
    assert answer.status == 200
    assert texts_in(loop_calls(llm)[0]["body"]["messages"], "user") == "deploy the  service"


def test_reflect_schema_with_a_model_is_not_served_yet(facts, llm):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert facts.post("/reflect", {"query": "q", "response_schema": schema}).status == 501
    assert facts.post("/reflect", {"query": "q", "tag_groups": [{"tags": ["a"], "resolve": "fuzzy"}]}).status == 501
    assert loop_calls(llm) == []


# ---- scopes ----

@pytest.fixture
def tagged(bank):
    quiet(bank)
    for text, tags in (("None likes pears.", []), ("Ann likes pears.", ["a"]), ("Ben likes pears.", ["b"]),
                       ("Abe likes pears.", ["a", "b"])):
        bank.retain(text, tags=tags)
    return bank


def found(bank, **body):
    return {t.split()[0] for t in memory_texts(everything(bank, "Who likes pears?", **body))}


ALL = {"None", "Ann", "Ben", "Abe"}
SCOPES = [
    ({}, ALL),
    ({"tags": []}, ALL),
    ({"tags_match": "exact"}, {"None"}),
    ({"tags": [], "tags_match": "exact"}, {"None"}),
    ({"tags": ["b", "a", "a"]}, ALL),
    ({"tags": ["a", "b"], "tags_match": "all"}, {"None", "Abe"}),
    ({"tags": ["a"], "tags_match": "any_strict"}, {"Ann", "Abe"}),
    ({"tags": ["a", "b"], "tags_match": "all_strict"}, {"Abe"}),
    ({"tags": ["a"], "tags_match": "exact"}, {"Ann"}),
    ({"tags": ["A"], "tags_match": "any_strict"}, set()),
    ({"tag_groups": []}, ALL),
    ({"tag_groups": [{"tags": []}]}, set()),
    ({"tag_groups": [{"tags": [], "match": "any"}]}, {"None"}),
    ({"tag_groups": [{"tags": [], "match": "all"}]}, ALL),
    ({"tag_groups": [{"tags": [], "match": "all_strict"}]}, {"Ann", "Ben", "Abe"}),
    ({"tag_groups": [{"tags": [], "match": "exact"}]}, {"None"}),
    ({"tag_groups": [{"not": {"tags": ["a"]}}]}, {"None", "Ben"}),
    ({"tag_groups": [{"or": [{"tags": ["a"], "match": "exact"}, {"tags": ["b"], "match": "exact"}]}]}, {"Ann", "Ben"}),
    ({"tag_groups": [{"and": [{"tags": ["a"]}, {"tags": ["b"]}]}]}, {"Abe"}),
    ({"tag_groups": [{"tags": ["a"], "match": "any"}], "tags_match": "exact"}, {"None"}),
]


def test_reflect_cases_04_05_06_scopes(tagged):
    for body, want in SCOPES:
        assert found(tagged, **body) == want, body


def test_reflect_case_04_scopes_hold_for_models(tagged, stack, llm):
    ok(tagged.post("/mental-models", {"name": "Plain", "source_query": "pears?"}))
    ok(tagged.post("/mental-models", {"name": "Tagged", "source_query": "pears?", "tags": ["a"]}))
    tagged.idle()

    def models(**body):
        return {m["name"] for m in output(everything(tagged, "Who likes pears?", **body),
                                          "search_mental_models")["mental_models"]}

    assert models() == {"Plain", "Tagged"}
    assert models(tags=[]) == {"Plain", "Tagged"}
    assert models(tags=[], tags_match="exact") == {"Plain"}
    assert models(tags=["a"], tags_match="any_strict") == {"Tagged"}
    assert models(tags=["b"]) == {"Plain"}


def nested(levels):
    group = {"tags": ["a"]}
    for _ in range(levels):
        group = {"not": group}
    return group


def test_reflect_case_06_empty_and_deep_groups(bank):
    for group in ({"and": []}, {"or": []}, {"not": {"or": []}}, {}, nested(33)):
        detail = ok(bank.post("/reflect", {"query": "q", "tag_groups": [group]}), 422)["detail"]
        assert detail[0]["loc"][:2] == ["body", "tag_groups"], group
    assert bank.post("/reflect", {"query": "q", "tag_groups": [nested(32)]}).status == 200


def test_reflect_case_42_a_scoped_reflect_never_sees_untagged_facts(tagged, llm):
    everything(tagged, "Who likes pears?", tag_groups=[{"tags": ["a"]}])
    sent = json.dumps([c["body"] for c in loop_calls(llm) + llm.calls("reflect")])
    assert "Ann likes pears" in sent and "None likes pears" not in sent and "Ben likes pears" not in sent


# ---- directives, mission, disposition ----

def directive(bank, name, content, **more):
    return ok(bank.post("/directives", {"name": name, "content": content, **more}), 200)["id"]


def test_reflect_case_07_directives_follow_the_tags(facts, llm):
    directive(facts, "Global", "Answer in rhymes.")
    directive(facts, "Scoped", "Never name trains.", tags=["x"])
    directive(facts, "Asleep", "Shout.", is_active=False)

    def names(**body):
        return [d["name"] for d in reflect(facts, include={"facts": {}}, **body)["based_on"]["directives"]]

    assert names() == ["Global"]
    assert names(tags=[]) == ["Global"]
    assert sorted(names(tags=["x"])) == ["Global", "Scoped"]
    assert names(tags=["y"]) == ["Global"]
    assert sorted(names(tag_groups=[{"tags": ["x"]}])) == ["Global", "Scoped"]
    assert sorted(names(apply_all_directives=True)) == ["Global", "Scoped"]
    system = texts_in(loop_calls(llm)[-1]["body"]["messages"], "system")
    assert system.count("Never name trains.") >= 2
    tool = next(t for c in llm.calls("reflect") for t in c["body"]["tools"])["function"]["parameters"]
    assert "directive_compliance" in tool["required"]


def test_reflect_directive_without_content_is_not_in_the_prompt(facts, llm, stack):
    ident = directive(facts, "Hollow", "x")
    stack.sql("UPDATE directives SET content = '' WHERE id = %s", ident)
    answer = reflect(facts, include={"facts": {}})
    assert [d["name"] for d in answer["based_on"]["directives"]] == ["Hollow"]
    assert all("Hollow" not in json.dumps(c["body"]) for c in llm.chats())


def test_reflect_case_35_mission_stands_once_in_the_system_message(facts, llm):
    mission = "You guard {the} 100% \"apple\" ledger %s 🍎 {{x}}."
    ok(facts.patch("/config", {"updates": {"reflect_mission": mission}}))
    llm.reset()
    llm.script(closing({"text": "no call"}))
    reflect(facts)
    first, end = loop_calls(llm)[0], llm.calls("reflect")
    for c in [first, end[-1]]:
        assert texts_in(c["body"]["messages"], "system").count(mission) == 1
    for c in llm.chats():
        assert mission not in texts_in(c["body"]["messages"], "user")
    assert len(end) == 2


def test_reflect_case_45_disposition_and_temperature(facts, llm):
    reflect(facts)
    plain = texts_in(loop_calls(llm)[0]["body"]["messages"], "system")
    assert {c["body"]["temperature"] for c in loop_calls(llm) + llm.calls("reflect")} == {0.9}
    ok(facts.patch("/config", {"updates": {"disposition_skepticism": 5}}))
    llm.reset()
    reflect(facts)
    bold = texts_in(loop_calls(llm)[0]["body"]["messages"], "system")
    assert len(bold) > len(plain) + 50


def test_reflect_case_36_directive_text_is_no_answer(bank, llm):
    rule = "Always greet the captain first."
    bank.make()
    directive(bank, "Tone", rule)
    for rules in ([], [closing({"text": "chat"})]):
        llm.reset()
        llm.script(*rules)
        assert "greet the captain" not in reflect(bank)["text"]
        # rules and data stand apart
        for c in llm.chats():
            assert rule in texts_in(c["body"]["messages"], "system")
            assert rule not in texts_in(c["body"]["messages"], "user")


# ---- the loop ----

def test_reflect_case_08_only_observations(facts, llm):
    answer = everything(facts, fact_types=["observation"])
    assert tools_of(answer) == ["search_observations"]
    for c in loop_calls(llm):
        assert "recall" not in offered(c)
        assert "recall" not in texts_in(c["body"]["messages"], "system")
    assert answer["based_on"]["memories"] == []


def test_reflect_fact_types_world_hides_observations(facts, llm):
    answer = everything(facts, fact_types=["world"])
    assert tools_of(answer) == ["recall"]
    assert all("search_observations" not in offered(c) for c in loop_calls(llm))
    assert {m["type"] for m in answer["based_on"]["memories"]} == {"world"}


@pytest.fixture
def modelled(bank):
    """Facts, consolidated, and a fresh model over them."""
    bank.make()
    bank.retain("Alice likes green apples.")
    bank.idle()
    model = bank.model("Alice", "What does Alice like?")
    assert model["content"] and not model["is_stale"]
    return bank


def forced(llm):
    return [offered(c)[0] if len(offered(c)) == 1 else "*" for c in loop_calls(llm)]


def test_reflect_case_09_forced_order_with_models(modelled, llm):
    llm.reset()
    reflect(modelled, budget="high")
    assert forced(llm) == ["search_mental_models", "search_observations", "recall", "*"]
    assert offered(loop_calls(llm)[-1]) == TOOLS
    assert all(c["body"]["tool_choice"] == "required" for c in loop_calls(llm) + llm.calls("reflect"))
    assert [offered(c) for c in llm.calls("reflect")] == [["done"]]
    assert llm.calls("reflect")[0]["body"]["messages"][-1]["role"] == "user"


def test_reflect_case_10_fresh_models_release_the_forcing(modelled, llm):
    llm.reset()
    answer = everything(modelled)
    assert forced(llm) == ["search_mental_models", "*"]
    assert tool_messages(loop_calls(llm)[1])[0]["guidance"]
    assert "guidance" not in output(answer, "search_mental_models")
    assert [m["text"].split(":")[0] for m in answer["based_on"]["mental_models"]] == ["Alice"]
    assert answer["based_on"]["mental_models"][0]["context"] == "concept (structural)"
    modelled.retain("Alice also likes plums.")
    llm.reset()
    result = output(everything(modelled), "search_mental_models")["mental_models"][0]
    assert result["is_stale"] is True and result["staleness_reason"]
    assert forced(llm)[:3] == ["search_mental_models", "search_observations", "recall"]


def test_reflect_case_11_no_model_found_does_not_release(modelled, llm):
    ident = ok(modelled.get("/mental-models"))["items"][0]["id"]
    llm.reset()
    answer = everything(modelled, exclude_mental_model_ids=[ident])
    assert output(answer, "search_mental_models")["mental_models"] == []
    assert forced(llm)[:3] == ["search_mental_models", "search_observations", "recall"]
    llm.reset()
    reflect(modelled, exclude_mental_models=True)
    assert all("search_mental_models" not in offered(c) for c in loop_calls(llm))


@pytest.mark.parametrize("name", ["functions.done", "call=functions.done", "call=done", "done<|channel|>commentary"])
def test_reflect_case_12_names_of_done(facts, llm, name):
    llm.script(loop(call(name, answer="early", answer_found=True), n=3),
               closing(call(name, answer="The end.", answer_found=True)))
    assert reflect(facts)["text"] == "The end."
    assert len(loop_calls(llm)) == 3


def test_reflect_case_13_functions_recall_is_recall(facts, llm):
    llm.script(loop(call("functions.recall", query="apples", reason="r"), tool_forced="recall"))
    answer = everything(facts)
    assert tools_of(answer) == ["search_observations", "recall"]
    assert "Alice likes green apples." in memory_texts(answer)


def test_reflect_case_14_done_first_is_refused(facts, llm):
    llm.script(loop(call("done", answer="I know it all.", answer_found=True), n=1))
    answer = everything(facts)
    assert "I know it all." not in answer["text"]
    second = loop_calls(llm)[1]
    assert tool_messages(second)[0]["error"]
    assert second["body"]["messages"][-2]["tool_calls"][0]["function"]["name"] == "done"


def test_reflect_case_14_only_done_ever_ends_in_synthesis(facts, llm):
    llm.script(loop(call("done", answer="Invented.", answer_found=True)), final({"text": "Written at the end."}))
    answer = everything(facts)
    assert answer["text"] == "Written at the end."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "agent_4", "final"]
    assert answer["trace"]["tool_calls"] == []


def test_reflect_case_15_done_beside_recall(facts, llm):
    llm.script(loop(calls(("recall", {"query": "x", "reason": "r"}), ("done", {"answer": "First", "answer_found": True})),
                    n=2),
               closing(call("done", answer="Second", answer_found=True)))
    answer = everything(facts)
    assert answer["text"] == "Second"
    assert tools_of(answer) == ["search_observations"]


def test_reflect_case_16_answer_ready_beside_recall(facts, llm):
    llm.script(loop(calls(("answer_ready", {"answer_found": True}), ("recall", {"query": "apples", "reason": "r"})), n=2))
    answer = everything(facts)
    assert tools_of(answer) == ["search_observations", "recall"]
    assert memory_texts(answer)


def test_reflect_case_17_nothing_found_forces_one_recall(modelled, llm):
    llm.reset()
    llm.script(loop(call("answer_ready", answer_found="false"), tools_include="answer_ready"))
    answer = everything(modelled)
    assert forced(llm) == ["search_mental_models", "*", "recall", "*"]
    assert scopes(answer)[-1] == "closing_done"
    llm.reset()
    llm.script(loop(call("done", answer="?", answer_found=False), tools_include="answer_ready"))
    everything(modelled)
    assert forced(llm) == ["search_mental_models", "*", "recall", "*"]
    assert tool_messages(loop_calls(llm)[2])[-1]["error"]


def test_reflect_case_18_unknown_tools_only(facts, llm):
    llm.script(loop(call("lookup", query="x")), final({"text": "Nothing."}))
    answer = everything(facts)
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "agent_4", "final"]
    assert answer["trace"]["tool_calls"] == []
    assert all(m["error"] for m in tool_messages(loop_calls(llm)[3]))


def test_reflect_case_19_text_first_is_a_failure(facts, llm):
    llm.script(loop({"text": "Hello! " + "x" * 600}))
    answer = facts.post("/reflect", {"query": "hi"})
    assert answer.status == 500
    assert "search_observations" in answer.detail and "stop" in answer.detail and "tool" in answer.detail
    assert "Hello!" in answer.detail and answer.detail.endswith("...")
    assert len(llm.chats()) - len(llm.calls("retain_extract_facts")) == 1


def test_fault_19_text_in_place_of_a_tool(facts, llm):
    llm.script({"scope": "reflect*", "reply": {"text": "Hello!", "tool_calls": []}})
    answer = facts.post("/reflect", {"query": "hi", "include": {"facts": {}}})
    assert answer.status == 500 and "tool" in answer.detail


def test_reflect_case_19_text_at_a_forced_step_is_asked_again(facts, llm):
    llm.script({**loop({"text": "Hmm."}, n=2)})
    answer = everything(facts)
    assert forced(llm)[:3] == ["search_observations", "recall", "recall"]
    assert tools_of(answer) == ["search_observations", "recall"]


def test_reflect_case_19_text_in_a_free_turn_closes(facts, llm):
    llm.script(loop({"text": "I am done."}, n=3))
    answer = everything(facts)
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "closing_done"]
    assert "I am done." not in answer["text"]


def test_reflect_case_24_text_in_the_closing_call_too(facts, llm):
    llm.script(closing({"text": "chat"}), final({"text": "From the data."}))
    answer = everything(facts)
    assert answer["text"] == "From the data."
    assert scopes(answer)[-2:] == ["closing_done", "final"]
    data = texts_in(llm.calls("reflect")[-1]["body"]["messages"], "user")
    assert "Alice likes green apples." in data
    assert memory_texts(answer)


def test_reflect_case_24_failed_closing_call(facts, llm):
    llm.script(closing({"status": 500, "body": "no"}), final({"text": "From the data."}))
    answer = everything(facts)
    assert answer["text"] == "From the data."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "final"]


def test_fault_20_text_together_with_a_tool_call(facts, llm):
    llm.script(loop({"text": "Let me look", **call("search_observations", query="a", reason="r")}, n=1),
               loop({"text": "Let me look", **call("recall", query="apples", reason="r")}, n=2),
               loop({"text": "So", **call("done", answer="First", answer_found=True)}, n=3),
               closing({"text": "Here it is", **call("done", answer="Answer", answer_found=True)}))
    answer = everything(facts)
    assert answer["text"] == "Answer"
    assert tools_of(answer) == ["search_observations", "recall"]
    assistant = [m for m in loop_calls(llm)[1]["body"]["messages"] if m["role"] == "assistant"]
    assert assistant[0]["tool_calls"]


def test_fault_26_endless_tool_use(facts, llm):
    again = call("recall", query="apples", reason="r")
    llm.script(loop(again), closing(again), final({"text": "It ends."}))
    answer = everything(facts)
    assert answer["text"] == "It ends."
    assert len(loop_calls(llm)) == 4
    assert [offered(c) for c in llm.calls("reflect")] == [["done"], []]
    llm.reset()
    llm.script(loop(again), closing(again), final({"text": ""}))
    assert facts.post("/reflect", {"query": "q"}).status == 500


def test_reflect_call_ids_are_unique(facts, llm):
    def same(name, **args):
        return {"tool_calls": [{"name": name, "args": args, "id": ""}, {"name": name, "args": args, "id": "x"},
                               {"name": name, "args": args, "id": "x"}]}
    llm.script(loop(same("search_observations", query="a", reason="r"), n=1),
               loop(same("recall", query="a", reason="r"), n=2))
    reflect(facts)
    messages = loop_calls(llm)[2]["body"]["messages"]
    asked = [c["id"] for m in messages for c in m.get("tool_calls") or []]
    assert len(asked) == len(set(asked)) == 6
    assert asked == [m["tool_call_id"] for m in messages if m["role"] == "tool"]


# ---- errors ----

def test_reflect_case_21_one_failed_call_asks_the_same_tool_again(facts, llm):
    llm.script({**loop({"status": 500, "body": "x"}), "times": 4})
    answer = everything(facts)
    assert scopes(answer)[:2] == ["agent_1_err", "agent_2"]
    assert set(forced(llm)[:5]) == {"search_observations"}


def test_reflect_case_21_two_failed_calls_in_a_row(facts, llm):
    llm.script(loop({"status": 500, "body": "x"}, n=list(range(3, 30))))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(loop_calls(llm)) == 2 + 8
    assert llm.calls("reflect") == []


@pytest.mark.parametrize("status,count", [(401, 1), (403, 1), (404, 1), (400, 1), (405, 2), (413, 2), (422, 2)])
def test_reflect_case_21_refusals(facts, llm, status, count):
    llm.script(loop({"status": status, "body": {"error": {"message": "no such thing"}}}))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500
    assert len(loop_calls(llm)) == count
    assert "127.0.0.1" not in answer.detail and "test-key" not in answer.detail


def test_reflect_case_21_content_policy(facts, llm):
    llm.script(loop({"text": None, "finish_reason": "content_filter"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(loop_calls(llm)) == 1


def test_reflect_case_21_refused_in_the_closing_call(facts, llm):
    llm.script(closing({"status": 401, "body": "x"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(llm.calls("reflect")) == 1


def test_reflect_case_22_overflow_goes_to_the_synthesis(facts, llm):
    llm.script(loop({"status": 400, "body": {"error": {"message": "This model's maximum context length is 5"}}},
                    n=[3, 4, 5, 6]), final({"text": "Short of room."}))
    answer = everything(facts)
    assert answer["text"] == "Short of room."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3_err", "final"]
    assert len(loop_calls(llm)) == 3


@pytest.mark.parametrize("args", [{"answer": " \n", "answer_found": True}, {"answer_found": True},
                                  {"answer": 7, "answer_found": True}, {"answer": None}])
def test_reflect_case_23_no_answer(facts, llm, args):
    llm.script(closing(call("done", **args)))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and "answer" in answer.detail
    assert len(llm.calls("reflect")) == 1


CUT = '{"answer": "The apples are gree'


def test_reflect_case_23_cut_arguments_are_repaired(facts, llm):
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "tool_calls"}))
    assert reflect(facts)["text"] == "The apples are gree"
    assert len(llm.calls("reflect")) == 1


def test_reflect_case_23_cut_off_by_length_is_asked_once_more(facts, llm):
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "length"}, times=1))
    answer = everything(facts)
    assert "Alice likes green apples." in answer["text"]
    assert scopes(answer)[-2:] == ["closing_done", "closing_done"]
    assert tool_messages(llm.calls("reflect")[1])[-1]["error"]
    llm.reset()
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "length"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(llm.calls("reflect")) == 2


def test_fault_17_empty_replies_fail_with_a_reason(facts, llm):
    llm.script({"scope": "reflect*", "reply": {"text": None}})
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and answer.detail
    assert len(llm.chats()) < 20
    llm.reset()
    llm.script(closing({"text": ""}), final({"text": None}))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and answer.detail


def test_fault_16_fenced_arguments(facts, llm):
    fenced = '```json\n{"answer": "Quoted ``` inside.", "answer_found": true}\n```'
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": fenced}], "finish_reason": "stop"}))
    assert reflect(facts)["text"] == "Quoted ``` inside."


# ---- length ----

@pytest.mark.parametrize("ending", ["done", "synthesis"])
def test_reflect_case_27_one_rewrite(facts, llm, ending):
    long = "Apples are green and sweet and round and many. " * 20
    rules = [closing(call("done", answer=long, answer_found=True))] if ending == "done" else \
        [closing({"text": "x"}), final({"text": long}, times=1)]
    llm.script(*rules, final({"text": "Short."}))
    answer = everything(facts, max_tokens=8)
    assert answer["text"] == "Short."
    assert scopes(answer)[-1] == "final_rewrite" and scopes(answer).count("final_rewrite") == 1
    body = llm.calls("reflect")[-1]["body"]
    assert "max_tokens" not in body and "max_completion_tokens" not in body
    assert "8" in texts_in(body["messages"], "user") and long.strip() in texts_in(body["messages"], "user")


def test_reflect_case_27_failed_rewrite_keeps_the_answer(facts, llm):
    long = "Apples are green and sweet and round and many. " * 20
    for bad in ({"text": ""}, {"status": 422, "body": "x"}):
        llm.reset()
        llm.script(closing(call("done", answer=long, answer_found=True)), final(bad))
        assert reflect(facts, max_tokens=8)["text"] == long.strip()


# ---- citations ----

def test_reflect_case_28_citations(facts, llm):
    ids = fact_ids(facts)
    invented = "99999999-9999-4999-8999-999999999999"
    llm.script(closing(call("done", answer="A.", answer_found=True, memory_ids=[invented], observation_ids="x")))
    assert len(memory_texts(everything(facts))) == 2
    llm.reset()
    llm.script(closing(call("done", answer="A.", answer_found=True,
                            memory_ids=[ids["Bob likes old trains."], invented])))
    assert memory_texts(everything(facts)) == ["Bob likes old trains."]


def test_reflect_case_43_aliases_come_back_as_ids(facts, llm):
    ids = fact_ids(facts)
    llm.script(loop(call("recall", query="likes", reason="r"), tool_forced="recall"))
    everything(facts)
    shown = tool_messages(loop_calls(llm)[2])[1]["memories"]
    alias = {m["text"]: m["id"] for m in shown}
    assert not any(UUID.fullmatch(a) for a in alias.values())
    green, old = "Alice likes green apples.", "Bob likes old trains."
    llm.reset()
    llm.script(loop(call("recall", query="likes", reason="r"), tool_forced="recall"),
               loop(call("expand", memory_ids=[alias[green]], depth="chunk", reason="r"), n=3),
               closing(call("done", answer=f"See {alias[green]} and the f1 score.", answer_found=True,
                            memory_ids=[alias[old]])))
    answer = everything(facts)
    assert answer["text"] == f"See {ids[green]} and the f1 score."
    assert memory_texts(answer) == [old]
    assert output(answer, "expand")["results"][0]["memory"]["text"] == green
    recalled = output(answer, "recall")
    assert {m["id"] for m in recalled["memories"]} == set(ids.values())


def test_reflect_case_43_second_look_and_invented_ids(facts, llm):
    again = call("recall", query="likes", reason="r")
    quoted, invented = "11111111-1111-4111-8111-111111111111", "99999999-9999-4999-8999-999999999999"
    llm.script(loop(again, tool_forced="recall"), loop(again, n=3),
               closing(call("done", answer=f"{quoted} {invented}", answer_found=True)))
    answer = everything(facts, f"What is {quoted}?")
    assert answer["text"] == f"{quoted} [unverified id]"
    first, second = tool_messages(loop_calls(llm)[3])[1:3]
    assert second["memories"] == []
    assert second["already_shown"]["memories"] == [m["id"] for m in first["memories"]]
    assert second["chunks"] == first["chunks"] != {}
    full = [t["output"] for t in answer["trace"]["tool_calls"] if t["tool"] == "recall"]
    assert full[0]["memories"] == full[1]["memories"] != []


# ---- tools ----

ARGUMENTS = [("None", True), (0, True), (None, True), (" null ", True), (False, True), ("", True), (10, True),
             ("2000", True), (2000.9, True), (90000, True), ("bogus", False), ("1.5x", False), ([], False)]


def test_reflect_case_29_integer_arguments(facts, llm):
    turn = [("recall", {"query": "apples", "reason": "r", "max_tokens": v}) for v, _ in ARGUMENTS]
    llm.script(loop(calls(*turn), tool_forced="recall"))
    answer = everything(facts)
    results = [t["output"] for t in answer["trace"]["tool_calls"] if t["tool"] == "recall"]
    for (value, good), result in zip(ARGUMENTS, results):
        assert ("error" not in result) == good, value
        assert good or "max_tokens" in result["error"]
    messages = tool_messages(loop_calls(llm)[2])
    assert len(messages) == 1 + len(ARGUMENTS)


def test_reflect_query_is_needed(facts, llm):
    llm.script(loop(calls(("recall", {"reason": "r"}), ("search_observations", {"query": ""}),
                          ("recall", {"query": "apples"})), tool_forced="recall"))
    answer = everything(facts)
    results = [t["output"] for t in answer["trace"]["tool_calls"]][1:]
    assert "recall" in results[0]["error"] and "search_observations" in results[1]["error"]
    assert results[2]["memories"]


def test_reflect_case_30_expand(bank, llm):
    quiet(bank)
    bank.retain("Alice likes green apples.", document_id="da")
    bank.retain("Bob likes old trains.", document_id="db")
    ids = fact_ids(bank)
    a, b = ids["Alice likes green apples."], ids["Bob likes old trains."]
    missing = "99999999-9999-4999-8999-999999999999"
    llm.script(loop(call("search_observations", query="zzz", reason="r"), n=1),
               loop(call("expand", memory_ids=["bad", a, b, missing, a], depth="chunk", reason="r"), tool_forced="recall"),
               closing(call("done", answer="A.", answer_found=True, memory_ids=[b, missing])))
    answer = everything(bank)
    result = output(answer, "expand")
    assert result["count"] == 5
    rows = result["results"]
    assert [r["memory_id"] for r in rows] == ["bad", a, b, missing, a]
    assert "error" in rows[0] and "memory" not in rows[0] and "error" in rows[3]
    assert rows[1]["memory"] == {"id": a, "text": "Alice likes green apples.", "type": "world", "context": None} or \
        rows[1]["memory"]["text"] == "Alice likes green apples."
    assert rows[1]["chunk"]["document_id"] == "da" and rows[2]["chunk"]["document_id"] == "db"
    assert "Bob" in rows[2]["chunk"]["text"]
    assert memory_texts(answer) == ["Bob likes old trains."]


def test_reflect_expand_refusals(facts, llm):
    llm.script(loop(calls(("expand", {"depth": "chunk"}), ("expand", {"memory_ids": ["x", "y"], "depth": "chunk"}),
                          ("expand", {"memory_ids": "x", "depth": "chunk"})), n=2))
    results = [t["output"] for t in everything(facts)["trace"]["tool_calls"] if t["tool"] == "expand"]
    assert results[0].keys() == {"error"}
    assert set(results[1]["details"]) == {"x", "y"} and results[1]["error"]
    assert set(results[2]["details"]) == {"x"}


def test_reflect_case_31_source_text_follows_its_document(bank, llm, stack):
    quiet(bank)
    bank.retain("Alice likes green apples.", document_id="da", tags=["a"])
    bank.retain("Bob likes old trains.", document_id="db", tags=["b"])
    ids = fact_ids(bank)
    a, b = ids["Alice likes green apples."], ids["Bob likes old trains."]
    # the fact stays in scope, its document leaves it
    stack.sql("UPDATE documents SET tags = '[\"b\"]' WHERE document_id = 'da' AND bank_no ="
              " (SELECT bank_no FROM banks WHERE bank_id = %s)", bank.id)
    missing = "99999999-9999-4999-8999-999999999999"
    llm.script(loop(call("expand", memory_ids=[a, b, missing], depth="document", reason="r"), n=2))
    rows = output(everything(bank, tags=["a"], tags_match="any_strict"), "expand")["results"]
    assert rows[0]["source_withheld"] and "chunk" not in rows[0] and "document" not in rows[0]
    assert rows[0]["memory"]["text"] == "Alice likes green apples."
    assert rows[1]["error"] == rows[2]["error"] and "memory" not in rows[1]


def test_reflect_case_32_expand_to_the_document(bank, llm, stack):
    quiet(bank)
    bank.retain("Alice likes green apples. She ate nine.", document_id="da", metadata={"source": "mail"})
    a = list(fact_ids(bank).values())[0]

    def document():
        llm.reset()
        llm.script(loop(call("expand", memory_ids=[a], depth="document", reason="r"), n=2))
        return output(everything(bank), "expand")["results"][0]["document"]

    got = document()
    assert got["id"] == "da" and got["full_text"] == "Alice likes green apples. She ate nine."
    where = "WHERE document_id = 'da' AND bank_no = (SELECT bank_no FROM banks WHERE bank_id = %s)"
    inner = json.dumps({"metadata": {"k": "v"}})
    for stored, metadata in ((inner, {"k": "v"}), (json.dumps(inner), {"k": "v"}), ("{oops", None), ("[]", None),
                             ('{"metadata": "x"}', None)):
        stack.sql(f"UPDATE documents SET retain_params = '{stored.replace(chr(92), chr(92) * 2)}' {where}", bank.id)
        assert document()["metadata"] == metadata, stored


def test_reflect_case_40_models_budget(modelled, llm, stack):
    long = "Alice likes apples. " * 60
    where = "WHERE bank_no = (SELECT bank_no FROM banks WHERE bank_id = %s)"
    modelled.model("Second", "What else does Alice like?")
    modelled.model("Third", "And what does Alice like?")
    stack.sql(f"UPDATE mental_models SET content = '{long}' {where}", modelled.id)
    ids = [m["id"] for m in ok(modelled.get("/mental-models"))["items"]]
    llm.reset()
    llm.script(loop(call("read_mental_models", mental_model_ids=ids, max_tokens=1, reason="r"), n=2))
    answer = everything(modelled, reflect_search_mental_models_max_tokens=1)
    first, *rest = output(answer, "search_mental_models")["mental_models"]
    assert first["content"] == long and "snippet" not in first
    assert len(rest) == 2
    for m in rest:
        assert m["snippet"] == long[:280].strip() and m["content_chars"] == len(long) and "content" not in m
    read = output(answer, "read_mental_models")
    assert len(read["mental_models"]) == 3 and "not_read" not in read


def test_reflect_case_40_excluded_models_cannot_be_read(modelled, llm):
    ids = [m["id"] for m in ok(modelled.get("/mental-models"))["items"]]
    llm.reset()
    llm.script(loop(calls(("read_mental_models", {"mental_model_ids": ids, "reason": "r"}),
                          ("read_mental_models", {"mental_model_ids": "other", "reason": "r"})), n=2))
    results = [t["output"] for t in everything(modelled, exclude_mental_model_ids=ids)["trace"]["tool_calls"]
               if t["tool"] == "read_mental_models"]
    assert results[0].keys() == {"error"}
    assert results[1] == {"mental_models": [], "not_read": ["other"]}


def test_reflect_case_41_entities_and_their_default(bank, llm):
    bank.make()
    bank.retain("We saw that Alice met Robert in Paris.")
    bank.idle()

    def observations(**body):
        return output(everything(bank, "Whom did Alice meet?", **body), "search_observations")["observations"]

    on = observations()
    off = observations(reflect_search_observations_include_entities=False)
    assert on and any("entities" in o for o in on)
    assert [o["id"] for o in on] == [o["id"] for o in off]
    assert not any("entities" in o for o in off)
    ok(bank.patch("/config", {"updates": {"reflect_default_options":
                                          {"reflect_search_observations_include_entities": False}}}))
    assert not any("entities" in o for o in observations())
    assert any("entities" in o for o in observations(reflect_search_observations_include_entities=True))
    assert bank.patch("/config", {"updates": {"reflect_default_options": {"foo": 1}}}).status == 400


def test_reflect_case_44_metadata_and_context(bank, llm):
    quiet(bank)
    context = "c" * 1000
    bank.retain("Alice likes green apples.", metadata={"source": "mail"}, context=context)
    answer = everything(bank)
    shown = tool_messages(loop_calls(llm)[2])[1]["memories"][0]
    assert shown["metadata"] == {"source": "mail"}
    assert shown["context"] == "c" * 200 + "..."
    fact = answer["based_on"]["memories"][0]
    assert fact["context"] == context and fact["metadata"] == {"source": "mail"}


def test_reflect_shown_results_are_short(facts, llm):
    reflect(facts)
    found = tool_messages(loop_calls(llm)[2])[1]
    assert "count" not in found
    for m in found["memories"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", m["mentioned_at"])
        assert not {"chunk_id", "document_id", "scores"} & set(m)
        assert m["fact_type"] == "world"


# ---- servers of their own ----

@pytest.fixture(scope="module")
def small():
    """A server without a worker, whose reflect program starts again with other settings."""
    s = Stack(worker=False, programs=["banks", "memories", "reflect"]).start()
    yield s, dict(s.settings)
    reports = s.stop()
    assert not reports, "\n".join(reports)


def restart(s, env=None, **settings):
    s.processes["reflect"].stop()
    s.socket_of("reflect").unlink(missing_ok=True)
    s.settings.update(settings)
    s.write_config()
    s.start_program("reflect", env)


@pytest.fixture
def own(small):
    """own(settings): the server with these settings of reflect, and a bank of its own."""
    s, plain = small

    def make(settings, env=None):
        s.settings = dict(plain)
        restart(s, env, **settings)
        s.llm.reset()
        bank = s.bank()
        quiet(bank)
        return s, bank

    return make


def test_reflect_case_22_limit_of_one_token(own):
    s, bank = own({"reflect_max_context_tokens": 1})
    for i in range(30):
        bank.retain(f"Alice likes apple sort number {i} very much indeed.")
    answer = everything(bank, fact_types=["world"])
    assert scopes(answer)[0] == "agent_1" and scopes(answer)[-1] == "final"
    assert len([c for c in scopes(answer) if c.startswith("agent")]) == 1
    # case 26: the floor of 1024 tokens keeps the parts few
    assert len([c for c in scopes(answer) if c.startswith("final_map")]) <= 4


def test_reflect_case_22_compacted_history(own):
    s, bank = own({"reflect_max_context_tokens": 100000})
    for i in range(40):
        bank.retain(f"Alice likes apple sort number {i}, which grows on the tree at the north wall of garden {i}.")
    s.llm.reset()
    llm = s.llm
    llm.script(loop(call("expand", memory_ids=[m["id"] for m in bank.memories()], depth="document", reason="r"), n=1))
    reflect(bank)
    start = json.dumps(loop_calls(llm)[0]["body"]["messages"])
    restart(s, reflect_max_context_tokens=len(start) // 4 + 2500)
    llm.reset()
    llm.script(loop(call("expand", memory_ids=[m["id"] for m in bank.memories()], depth="document", reason="r"), n=1))
    answer = everything(bank)
    assert tools_of(answer) == ["expand", "recall"]
    blanked = [m["content"] for m in loop_calls(llm)[1]["body"]["messages"] if m["role"] == "tool"]
    assert len(blanked) == 1 and len(blanked[0]) < 300
    assert scopes(answer)[-1] == "final" and "closing_done" not in scopes(answer)
    shown = json.dumps([c["body"]["messages"] for c in llm.calls("reflect")])
    assert all(f"garden {i}." in shown for i in range(40))


def test_reflect_case_25_split_history_keeps_every_id(own):
    s, bank = own({"reflect_max_context_tokens": 3000, "recall_max_tokens": 8000})
    for i in range(120):
        bank.retain(f"Alice likes apple sort number {i}, which grows on the tree at the north wall of garden {i}.")
    s.llm.reset()
    answer = everything(bank, fact_types=["world"])
    maps = [c for c in scopes(answer) if c.startswith("final_map_")]
    assert len(maps) > 1 and scopes(answer)[-1] == "final"
    requests = s.llm.calls("reflect")
    found = output(answer, "recall")["memories"]
    assert len(found) > 60
    for m in found:
        holders = [c for c in requests[:-1] if m["text"] in json.dumps(c["body"]["messages"], ensure_ascii=False)]
        assert holders, m["text"]
        entries = [c for c in requests[:-1] if f'"text":"{m["text"]}"' in texts_in(c["body"]["messages"], "user")]
        assert len(entries) == 1, m["text"]
    assert {c["body"]["temperature"] for c in requests[:-1]} == {0.0}
    assert all("max_tokens" not in c["body"] for c in requests)


def test_reflect_case_37_one_iteration(own):
    s, bank = own({"reflect_max_iterations": 1})
    bank.retain("Alice likes green apples.")
    answer = everything(bank)
    assert scopes(answer) == ["final"] and answer["trace"]["tool_calls"] == []


def test_reflect_case_38_wall_timeout(own):
    s, bank = own({"reflect_wall_timeout": 1})
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"hang": True}))
    started = time.monotonic()
    answer = bank.post("/reflect", {"query": "q"})
    assert answer.status == 504 and time.monotonic() - started < 3
    assert "1 second" in answer.detail and "budget" in answer.detail


def test_fault_23_hanging_model_server(own):
    s, bank = own({"reflect_wall_timeout": 5})
    bank.retain("Alice likes green apples.")
    for reply in ({"hang": True}, {"drip": 10}):
        s.llm.reset()
        s.llm.script(loop(reply))
        result = {}
        started = time.monotonic()
        t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
        t.start()
        wait_for("the model call", lambda: loop_calls(s.llm))
        for _ in range(20):
            assert bank.api.get("/v1/default/banks").status == 200
        t.join(15)
        answer = result["answer"]
        assert answer.status == 504 and "application/json" in answer.headers["Content-Type"] and answer.detail
        assert 4 < time.monotonic() - started < 9
        wait_for("the socket to close", lambda: loop_calls(s.llm)[0]["aborted"])


def test_reflect_at_capacity(own):
    s, bank = own({"fastcgi_threads": 2})
    s.llm.script(loop({"delay": 1.5}, n=1))
    result = {}
    t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
    t.start()
    wait_for("the model call", lambda: loop_calls(s.llm))
    busy = bank.post("/reflect", {"query": "q"})
    t.join(20)
    assert busy.status == 503 and int(busy.headers["Retry-After"]) >= 1
    assert busy.detail == "Server is at capacity for 'reflect' (1 concurrent); try again shortly."
    assert result["answer"].status == 200


def test_reflect_client_gone_stops_the_loop(own):
    s, bank = own({})
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"hang": True}))
    with pytest.raises(TimeoutError):
        bank.api.raw("POST", bank.path + "/reflect", b'{"query": "q"}', {"Content-Type": "application/json"}, timeout=1)
    wait_for("the call to be given up", lambda: loop_calls(s.llm) and loop_calls(s.llm)[0]["aborted"], 10)
    time.sleep(0.3)
    assert len(loop_calls(s.llm)) == 1


def test_reflect_case_20_database_gone(own_stack):
    s = own_stack(worker=False, programs=["banks", "memories", "reflect"])
    bank = s.bank()
    quiet(bank)
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"delay": 2, **call("recall", query="apples", reason="r")}, n=1))
    result = {}
    t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
    t.start()
    wait_for("the first call", lambda: loop_calls(s.llm))
    s.processes["mariadbd"].kill()
    t.join(20)
    answer = result["answer"]
    assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1 and answer.detail


def test_reflect_case_20_lost_embedding_service(own):
    s, bank = own({})
    bank.retain("Alice likes green apples.")
    restart(s, embeddings_provider="openai", embeddings_openai_base_url="http://127.0.0.1:9/v1")
    answer = everything(bank)
    assert "Alice likes green apples." in memory_texts(answer)


def test_reflect_case_64_provider_none(own):
    s, bank = own({"reflect_llm_provider": "none"})
    bank.retain("Alice likes green apples.")
    s.llm.reset()
    answer = s.api().post("/v1/default/banks/never-made/reflect", {"query": "q"})
    assert answer.status == 400
    assert "none" in answer.detail and "HINDSIGHT_API_" in answer.detail
    assert s.llm.calls() == []
    assert s.sql("SELECT 1 FROM banks WHERE bank_id = 'never-made'") == ()
    assert s.api().post("/v1/default/banks/never-made/reflect", {"query": ""}).status == 422


def test_reflect_temperature_none_is_not_sent(own):
    s, bank = own({}, env={"HINDSIGHT_API_LLM_TEMPERATURE_REFLECT": "none"})
    reflect(bank)
    assert all("temperature" not in c["body"] for c in loop_calls(s.llm) + s.llm.calls("reflect"))


# ---- the built-in provider ----

@pytest.fixture
def plain(plain_bank):
    plain_bank.make()
    plain_bank.retain("Alice likes green apples. Bob drives old trains.")
    plain_bank.idle()
    return plain_bank


def test_reflect_extractive_quotes_stored_text(plain):
    answer = everything(plain)
    stored = {m["text"] for m in plain.memories()}
    assert "green apples" in answer["text"]
    assert tools_of(answer) == ["search_observations", "recall"]
    assert answer["based_on"]["memories"]
    assert {m["text"] for m in answer["based_on"]["memories"]} <= stored
    assert answer["trace"]["llm_calls"] == [] and answer["usage"]["total_tokens"] == 0


def test_reflect_case_33_extractive_schema(plain):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    answer = reflect(plain, response_schema=schema)
    assert answer["text"] and answer["structured_output_error"] and "structured_output" not in answer


def test_reflect_extractive_empty_bank(plain_bank):
    answer = everything(plain_bank)
    assert answer["text"]
    assert answer["based_on"] == {"memories": [], "mental_models": [], "directives": []}
