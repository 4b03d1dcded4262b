"""Reflect: answers, validation, scopes, directives, length, citations, the built-in provider; contract
reflect part A, faults 21, 22, 31."""
import json
import re

import pytest

from reflect_calls import (UUID, reflect, everything, call, calls, loop, closing, final, loop_calls,
                           tool_messages, scopes, tools_of, output, memory_texts, texts_in, quiet, facts,
                           fact_ids)  # noqa: F401
from stack import ok

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
