"""Delta refreshes over HTTP: what is read, the edit call and its one re-ask, what is kept."""
import json

import pytest

from stack import Stack, ok, wait_for

QUERY = "Who leads the design team?"
PRESERVED = "content_preserved_no_new_facts"
SCOPE = "mental_model_delta_ops"


@pytest.fixture(scope="module")
def server():
    """One attempt each: of a model call and of an operation."""
    s = Stack(settings={"worker_max_retries": 0, "llm_max_retries": 0}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def llm(server):
    server.llm.reset()
    yield server.llm
    server.llm.reset()


@pytest.fixture
def bank(server, llm):
    return server.bank()


def learn(bank, text="Carol leads the design team."):
    bank.retain(text)
    bank.idle()


def read(bank, model_id="m"):
    return ok(bank.get(f"/mental-models/{model_id}"))


def patch(bank, **body):
    return ok(bank.patch("/mental-models/m", body))


def refresh(bank, body=None):
    """The operation of a refresh, once it has ended."""
    return bank.wait(ok(bank.post("/mental-models/m/refresh", body))["operation_id"])


def outcome(op):
    return op["status"], op["result_metadata"]["outcome"], op["result_metadata"].get("failure_reason")


def history(bank, kind=None):
    return [e for e in ok(bank.get("/mental-models/m/history")) if e.get("kind") == kind]


def sections(*parts):
    """(heading, block…) each."""
    return {"sections": [{"heading": p[0], "level": 2, "blocks": list(p[1:])} for p in parts]}


def answers(document):
    """A rule: the closing call gives this document."""
    return {"when": {"tool_forced": "done"}, "reply": {"value": {"document": document, "answer_found": True}}}


def edits(*operations, times=None, **reply):
    """A rule: the edit call gives these operations, or the reply."""
    rule = {"scope": SCOPE, "reply": reply or {"json": {"operations": list(operations)}}}
    if times:
        rule["times"] = times
    return rule


def append(section, text):
    return {"op": "append_block", "section_id": section, "text": text}


TEAM = "## Team\n\nCarol leads the design team.\n\n## Rules\n\nReviews are on Monday.\n"


def delta_model(bank, llm, **body):
    """A bank with a fact and a delta model m written from it, nothing recorded and no rules."""
    learn(bank)
    llm.script(answers(sections(("Team", "Carol leads the design team."), ("Rules", "Reviews are on Monday."))))
    trigger = {"mode": "delta", "keep_trace": True, **body.pop("trigger", {})}
    made = ok(bank.post("/mental-models", {"id": "m", "name": "Team page", "source_query": QUERY,
                                           "trigger": trigger, **body}))
    assert bank.wait(made["operation_id"])["result_metadata"]["outcome"] == "content_written"
    llm.reset()
    model = read(bank)
    assert model["content"] == TEAM
    return model


def stored(server, bank):
    [row] = server.sql("SELECT m.* FROM mental_models m JOIN banks b USING (bank_no)"
                       " WHERE b.bank_id = %s AND m.id = 'm'", bank.id)
    return row


def store(server, bank, **columns):
    sets = ", ".join(f"m.{c} = %s" for c in columns)
    server.sql(f"UPDATE mental_models m JOIN banks b USING (bank_no) SET {sets} WHERE b.bank_id = %s AND m.id = 'm'",
               *columns.values(), bank.id)


def prompt(call):
    return "\n".join(m["content"] for m in call["body"]["messages"])


KEPT = ("content", "structured_content", "last_refreshed_at", "last_memory_seen_at", "read_until",
        "last_refreshed_source_query", "last_full_refreshed_at")


def kept(server, bank):
    row = stored(server, bank)
    return {k: row[k] for k in KEPT}


# ---- what is read

def test_models_case_29_nothing_in_the_window_costs_nothing(bank, llm):
    before = delta_model(bank, llm)
    op = refresh(bank)
    assert outcome(op) == ("completed", PRESERVED, None)
    assert llm.calls() == []
    after = read(bank)
    assert after["content"] == TEAM and after["last_refreshed_at"] > before["last_refreshed_at"]
    assert after["last_memory_seen_at"] == before["last_memory_seen_at"]
    assert after["last_full_refreshed_at"] == before["last_full_refreshed_at"]
    r = after["reflect_response"]
    assert r["reflect_skipped"] == "no_sources_in_scope" and r["trace"]["effective_mode"] == "delta"
    assert r["based_on"] == before["reflect_response"]["based_on"]
    assert len(history(bank)) == 1


def test_models_case_29_no_facts_no_edit_call(server, bank, llm):
    delta_model(bank, llm)
    patch(bank, source_query="Where do quokkas live?")
    store(server, bank, last_refreshed_source_query="Where do quokkas live?")
    learn(bank, "Bob bought a new bicycle.")
    assert read(bank)["is_stale"] is True
    llm.reset()
    op = refresh(bank)
    assert outcome(op) == ("completed", PRESERVED, None)
    assert llm.calls("reflect_tool_call") and llm.calls(SCOPE) == []
    after = read(bank)
    assert after["content"] == TEAM and after["is_stale"] is False and len(history(bank)) == 1
    r = after["reflect_response"]
    assert r["delta_applied"] is False and r["delta_skipped_reason"] == "no_new_facts"
    newest = server.sql("SELECT MAX(u.updated_at) AS t FROM memory_units u JOIN banks b USING (bank_no)"
                        " WHERE b.bank_id = %s", bank.id)[0]["t"]
    assert stored(server, bank)["last_memory_seen_at"] == newest
    assert op["result_metadata"]["delta_ops_applied"] == 0


def test_models_case_66_a_write_during_the_first_run_is_read_by_the_next(server, bank, llm):
    learn(bank, "Carol leads the design team.")
    made = ok(bank.post("/mental-models", {"id": "other", "name": "Other", "source_query": QUERY}))
    bank.wait(made["operation_id"])
    # a sibling alone in reach, as no memory has the tag
    ok(bank.patch("/mental-models/other", {"tags": ["x"]}))
    llm.reset()
    llm.script({"scope": "reflect_tool_call", "times": 1, "reply": {"delay": 3}})
    made = ok(bank.post("/mental-models", {"id": "m", "name": "Team page", "source_query": QUERY, "tags": ["x"],
                                           "trigger": {"mode": "delta", "keep_trace": True}}))
    wait_for("the agent", lambda: llm.calls("reflect_tool_call"))
    bank.retain("Dave joined the design team.", tags=["x"])
    assert bank.wait(made["operation_id"])["result_metadata"]["outcome"] == "content_written"
    bank.idle()
    model, row = read(bank), stored(server, bank)
    assert model["last_memory_seen_at"] is None and model["is_stale"] is True
    llm.reset()
    dry = ok(bank.post("/mental-models/m/dry-run-refresh"))
    assert dry["window"]["created_after"].startswith(row["read_until"].strftime("%Y-%m-%dT%H:%M:%S"))
    assert dry["requested_mode"] == dry["effective_mode"] == "delta"
    assert "Dave joined" in prompt(llm.calls(SCOPE)[0]).split("## NEW FACTS")[1]


def test_directives_are_no_new_facts(server, bank, llm):
    delta_model(bank, llm)
    ok(bank.post("/directives", {"name": "Tone", "content": "Be brief."}))
    patch(bank, source_query="Where do quokkas live?")
    store(server, bank, last_refreshed_source_query="Where do quokkas live?")
    learn(bank, "Bob bought a new bicycle.")
    assert outcome(refresh(bank))[1] == PRESERVED
    assert llm.calls(SCOPE) == []


def test_models_case_35_only_new_facts_and_never_the_answer(bank, llm):
    before = delta_model(bank, llm)
    learn(bank, "Dave joined the design team led by Carol.")
    llm.reset()
    llm.script(answers(sections(("", "An answer of the narrow window."))),
               edits(append("team", "Dave joined the design team led by Carol.")))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (1, 0)
    [call] = llm.calls(SCOPE)
    text = prompt(call)
    assert "An answer of the narrow window." not in text
    facts = text.split("## NEW FACTS")[1]
    assert "Dave joined" in facts and "Carol leads the design team." not in facts
    assert "Team page" in text and QUERY in text and '"id":"team"' in text
    # the agent saw the window only
    seen = "".join(m.get("content") or "" for c in llm.calls("reflect_tool_call") for m in c["body"]["messages"]
                   if m["role"] == "tool")
    assert "Dave joined" in seen and "Carol leads the design team." not in seen
    after = read(bank)
    assert after["content"] == TEAM.replace("\n\n## Rules", "\n\nDave joined the design team led by Carol.\n\n## Rules")
    r = after["reflect_response"]
    assert r["text"] == "An answer of the narrow window." and r["delta_applied"] is True
    assert r["delta_operations_applied"] == [{"op": "append_block", "section_id": "team"}]
    assert r["delta_operations_skipped"] == []
    old = [e["id"] for e in before["reflect_response"]["based_on"]["world"]]
    ids = [e["id"] for e in r["based_on"]["world"]]
    assert old and ids[-len(old):] == old and len(ids) > len(old) and len(set(ids)) == len(ids)
    assert after["last_memory_seen_at"] > before["last_memory_seen_at"]
    assert after["last_full_refreshed_at"] == before["last_full_refreshed_at"]
    assert r["trace"]["effective_mode"] == "delta"
    assert r["trace"]["delta_operations"]["applied"] == r["delta_operations_applied"]
    assert SCOPE in {c["scope"] for c in r["trace"]["llm_calls"]}
    assert [e["previous_content"] for e in history(bank)] == [TEAM, ""]


def test_models_case_30_no_operations_change_nothing(bank, llm):
    before = delta_model(bank, llm)
    for i in range(3):
        learn(bank, f"Member {i} joined the design team.")
        llm.reset()
        op = refresh(bank)
        assert outcome(op) == ("completed", "content_unchanged", None)
        assert len(llm.calls(SCOPE)) == 1
        after = read(bank)
        assert after["content"] == TEAM and after["last_memory_seen_at"] > before["last_memory_seen_at"]
        assert after["reflect_response"]["delta_applied"] is True
        before = after
    assert len(history(bank)) == 1


# ---- the edit call

def test_models_case_31_one_good_one_unknown(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.reset()
    llm.script(edits(append("team", "Dave joined."), append("nowhere", "x")))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert len(llm.calls(SCOPE)) == 1
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (1, 1)
    r = read(bank)["reflect_response"]
    assert r["delta_operations_skipped"] == [
        {"op": "append_block", "section_id": "nowhere", "reason": "unknown section_id: nowhere"}]
    assert any("skipped" in w for w in r["trace"]["warnings"])


def test_models_case_31_all_unknown_are_asked_again(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.reset()
    llm.script(edits({"op": "replace_block", "section_id": "team", "block_id": "b0", "text": "x"}, times=1),
               edits(append("team", "Dave joined."), append("nowhere", "x")))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (1, 1)
    first, second = llm.calls(SCOPE)
    sent = second["body"]["messages"]
    assert sent[:2] == first["body"]["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "user"]
    assert '"block_id": "b0"' in sent[2]["content"]
    assert "unknown block_id: b0" in sent[3]["content"]
    assert "section rules" in sent[3]["content"] and "Carol leads the design team." in sent[3]["content"]
    assert "Reviews are on Monday." not in sent[3]["content"]


def test_models_case_31_all_unknown_twice(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    before = kept(server, bank)
    llm.reset()
    llm.script(edits(append("nowhere", "x")))
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_delta_not_applied", "delta_ops_all_skipped")
    assert op["details"]["failure_reason"] == "delta_ops_all_skipped" and op["error_message"]
    assert len(llm.calls(SCOPE)) == 2
    assert kept(server, bank) == before
    after = read(bank)
    assert after["last_refresh_failed_at"] is not None and after["is_stale"] is True
    r = after["reflect_response"]
    assert r["refresh_skipped"] == "delta_ops_all_skipped" and r["outcome"] == "refresh_failed_delta_not_applied"
    assert r["trace"]["effective_mode"] == "full" and r["trace"]["mode_fallback_reason"] == "delta_ops_all_skipped"
    assert r["trace"]["delta_operations"]["skipped"][0]["reason"] == "unknown section_id: nowhere"
    assert [e["failure_reason"] for e in history(bank, "refresh_failed")] == ["delta_ops_all_skipped"]
    # the next one sees the same memories again, and takes the mark away
    llm.reset()
    llm.script(edits(append("team", "Dave joined.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    after = read(bank)
    assert "refresh_skipped" not in after["reflect_response"] and after["last_refresh_failed_at"] is None


def test_models_case_31_the_better_of_two_bad_replies(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    bad = {"op": "append_block", "section_id": "team", "block": "x"}
    llm.reset()
    llm.script(edits(append("team", "One."), append("team", "Two."), bad, times=1),
               edits(append("team", "Three."), bad))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (2, 1)
    after = read(bank)
    assert "One.\n\nTwo.\n" in after["content"] and "Three." not in after["content"]
    assert len(llm.calls(SCOPE)) == 2
    assert any("asked again" in w for w in after["reflect_response"]["trace"]["warnings"])


def test_an_empty_second_list_does_not_hide_the_first(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(append("nowhere", "x"), times=1), edits())
    assert outcome(refresh(bank))[2] == "delta_ops_all_skipped"
    llm.reset()
    llm.script(edits(append("team", "One."), {"op": "shuffle"}, times=1), edits())
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert "One." in read(bank)["content"]


@pytest.mark.parametrize("reply", ["no json at all", "{}", "null", '{"operations": 7}'])
def test_an_unreadable_reply_is_asked_for_again(bank, llm, reply):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(text=reply, times=1), edits())
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_unchanged", None)
    second = llm.calls(SCOPE)[1]["body"]["messages"]
    assert second[2]["content"] == reply and "operations" in second[3]["content"]


def test_models_case_32_an_error_in_the_call(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    before = kept(server, bank)
    llm.script(edits(status=500))
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_delta_not_applied", "delta_ops_failed")
    assert kept(server, bank) == before
    llm.reset()
    llm.script({"when": {"tool_forced": "done"}, "reply": {"value": {"document": {"sections": []}}}})
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_error", "no_answer")
    assert llm.calls(SCOPE) == [] and kept(server, bank) == before


def test_a_reply_that_was_cut_off_fails_the_refresh(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    before = kept(server, bank)
    llm.script(edits(text='{"operations":[{"op":"append_block","section_id":"team","text":"x"}]}', finish_reason="length"))
    assert outcome(refresh(bank)) == ("failed", "refresh_failed_delta_not_applied", "delta_ops_failed")
    assert len(llm.calls(SCOPE)) == 1 and kept(server, bank) == before


def test_an_empty_reply_is_asked_for_again(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(text=" ", times=1), edits(append("team", "Dave joined.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert "the reply is empty" in llm.calls(SCOPE)[1]["body"]["messages"][3]["content"]


def test_a_used_up_quota_parks_the_refresh(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    before = kept(server, bank)
    llm.script(edits(status=429, headers={"Retry-After": "7200"}))
    queued = ok(bank.post("/mental-models/m/refresh"))["operation_id"]
    op = wait_for("the parked refresh", lambda: (lambda o: o["next_retry_at"] and o)(bank.operation(queued)))
    assert (op["status"], op["retry_count"], op["error_message"]) == ("pending", 0, None)
    assert kept(server, bank) == before and history(bank, "refresh_failed") == []
    assert read(bank)["last_refresh_failed_at"] is None
    llm.reset()
    assert outcome(refresh(bank)) == ("completed", "content_unchanged", None)


@pytest.mark.parametrize("structure", ['{"not_a_document": true}', '{"version": 1, "sections": []}', "broken", None,
                                       '{"version": 2, "sections": []}'])
def test_models_case_33_a_structure_that_cannot_be_read(server, bank, llm, structure):
    delta_model(bank, llm)
    store(server, bank, structured_content=structure)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(append("team", "Dave joined.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert read(bank)["content"] == TEAM.replace("\n\n## Rules", "\n\nDave joined.\n\n## Rules")
    doc = json.loads(stored(server, bank)["structured_content"])
    assert doc["version"] == 2 and [s["id"] for s in doc["sections"]] == ["team", "rules"]


def test_models_case_34_hand_made_content_and_a_changed_query(server, bank, llm):
    delta_model(bank, llm)
    store(server, bank, content="## Mine\n\nwritten by hand\n", structured_content=None,
          last_refreshed_source_query=None)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(append("mine", "Dave joined.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert read(bank)["content"] == "## Mine\n\nwritten by hand\n\nDave joined.\n"
    patch(bank, source_query="Which team does Carol lead?")
    llm.reset()
    llm.script({"scope": "reflect_tool_call", "reply": {"status": 401}})
    for _ in range(2):
        assert refresh(bank)["status"] == "failed"
        trace = read(bank)["reflect_response"]["trace"]
        assert trace["mode_fallback_reason"] == "source_query_changed" and trace["effective_mode"] == "full"
    llm.reset()
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert llm.calls(SCOPE) == [] and "by hand" not in read(bank)["content"]


def test_models_case_39_over_budget_is_told_and_nothing_is_cut(bank, llm):
    delta_model(bank, llm, max_tokens=256)
    learn(bank, "Dave joined the design team.")
    long = " ".join(f"word{i}" for i in range(400))
    llm.script(edits(append("team", long)))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    after = read(bank)
    r = after["reflect_response"]
    assert long in after["content"]
    assert r["document_tokens"] > r["document_budget"] == 256
    assert any("max_tokens" in w for w in r["trace"]["warnings"])
    learn(bank, "Erin joined the design team.")
    llm.reset()
    refresh(bank)
    assert "Make room" in prompt(llm.calls(SCOPE)[0])


def test_models_case_46_one_invalid_of_three(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    good = [append("team", "One."), append("rules", "Two.")]
    llm.script(edits(good[0], {"op": "append_block", "section_id": "team", "block": "x"}, good[1], times=1),
               edits(append("team", "Clean.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    content = read(bank)["content"]
    assert "Clean." in content and "One." not in content
    assert "operation 2" in llm.calls(SCOPE)[1]["body"]["messages"][3]["content"]


def test_models_case_46_prose_and_trailing_brackets(bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    llm.script(edits(text='Sure:\n{"operations":[{"op":"append_block","section_id":"team","text":"a\nb"}]}]}\nDone.'))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert "a\nb" in read(bank)["content"] and len(llm.calls(SCOPE)) == 1


def test_edits_that_empty_the_document(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    before = kept(server, bank)
    llm.script(edits({"op": "remove_section", "section_id": "team"}, {"op": "remove_section", "section_id": "rules"}))
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_empty_candidate", "empty_candidate")
    assert kept(server, bank) == before


def test_the_schema_goes_where_the_provider_takes_it(server, bank, llm, own_stack):
    def call(bank, llm):
        delta_model(bank, llm)
        learn(bank, "Dave joined the design team.")
        refresh(bank)
        [one] = llm.calls(SCOPE)
        return one["body"]

    plain = call(bank, llm)
    assert plain["response_format"] == {"type": "json_object"}
    assert '"anyOf"' in plain["messages"][0]["content"]
    strict = own_stack(settings={"llm_strict_schema_reflect": True, "llm_temperature_mental_model_refresh": 0.5})
    sent = call(strict.bank(), strict.llm)
    schema = sent["response_format"]["json_schema"]["schema"]
    assert len(schema["properties"]["operations"]["items"]["anyOf"]) == 8
    assert '"anyOf"' not in sent["messages"][0]["content"]
    assert (plain["temperature"], sent["temperature"]) == (0.0, 0.5)


# ---- long facts, long documents

def test_models_case_71_facts_for_three_calls(server, bank, llm):
    delta_model(bank, llm, trigger={"fact_types": ["world"], "recall_max_tokens": 60000, "include_chunks": False})
    for i in range(30):
        bank.retain(f"Fact {i}: member {i} joined the design team.")
    bank.idle()
    server.sql("UPDATE memory_units u JOIN banks b USING (bank_no) SET u.text = CONCAT(u.text, %s) WHERE b.bank_id = %s"
               " AND u.text LIKE 'Fact %%'", " filler words" * 800, bank.id)
    before = kept(server, bank)
    llm.reset()
    llm.script(edits(append("team", "First edit."), times=1), edits(append("team", "Second edit."), times=1),
               edits(status=500))
    op = refresh(bank)
    assert outcome(op)[2] == "delta_ops_failed" and kept(server, bank) == before
    tried = llm.calls(SCOPE)
    assert len(tried) == 3
    llm.reset()
    llm.script(edits(append("team", "First edit."), times=1), edits(append("nowhere", "x"), times=1),
               edits(append("team", "Second edit."), times=1), edits(append("rules", "Third edit."), append("no", "x")))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (3, 1)
    calls = llm.calls(SCOPE)
    assert len(calls) == 4 and prompt(calls[0]) == prompt(tried[0])
    parts = [prompt(c).split("## NEW FACTS")[1] for c in (calls[0], calls[1], calls[3])]
    shown = [{line.split("]")[0] for line in p.split("\n") if line.startswith("- [world:")} for p in parts]
    assert sum(len(s) for s in shown) == len(set().union(*shown))
    assert len(set().union(*shown)) == len(read(bank)["reflect_response"]["based_on"]["world"]) - 1
    assert "First edit." not in prompt(calls[0]) and "First edit." in prompt(calls[1])
    assert all(p.count(" filler words") == 800 * len(s) for p, s in zip(parts, shown))
    content = read(bank)["content"]
    assert content.index("First edit.") < content.index("Second edit.") < content.index("Third edit.")


def test_models_case_72_a_document_over_its_share(server, bank, llm):
    delta_model(bank, llm, max_tokens=8192)
    blocks = {f"s{i}": [f"Block {i}-{k}. " + "plain words " * 300 for k in range(5)] for i in range(12)}
    text = "\n\n".join(f"## S{i}\n\n" + "\n\n".join(b.strip() for b in blocks[f"s{i}"]) for i in range(12)) + "\n"
    store(server, bank, content=text, structured_content=None)
    learn(bank, "Dave joined the design team.")
    llm.reset()
    refresh(bank)
    [call] = llm.calls(SCOPE)
    doc = json.loads(prompt(call).split("```json\n")[1].split("\n```")[0])
    assert [s["id"] for s in doc["sections"]] == list(blocks)
    shown = [b for s in doc["sections"] for b in s["blocks"]]
    assert len(shown) == 60
    hidden = [b["id"] for b in shown if b["text"] == "[not shown]"]
    assert hidden and hidden == [b["id"] for b in shown[-len(hidden):]]
    assert shown[0]["text"] != "[not shown]" and "[not shown]" in prompt(call).split("## NEW FACTS")[1]
    assert read(bank)["content"] == text
    learn(bank, "Erin joined the design team.")
    llm.reset()
    llm.script(edits({"op": "replace_block", "section_id": "s11", "block_id": hidden[-1], "text": "x"},
                     append("s11", "Erin joined.")))
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    r = read(bank)["reflect_response"]
    assert r["delta_operations_skipped"][0]["reason"] == f"block text not shown: {hidden[-1]}"
    assert read(bank)["content"] == text + "\nErin joined.\n"
    assert any("not shown" in w for w in r["trace"]["warnings"])


def test_models_case_64_the_wall_clock_ends_an_edit_call(own_stack):
    s = own_stack(settings={"reflect_wall_timeout": 2})
    bank = s.bank()
    delta_model(bank, s.llm)
    learn(bank, "Dave joined the design team.")
    before = kept(s, bank)
    s.llm.script(edits(hang=True))
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_error", "unexpected_error")
    assert op["retry_count"] == 0 and "reflect_wall_timeout" in op["error_message"]
    assert kept(s, bank) == before
    assert [e["failure_reason"] for e in history(bank, "refresh_failed")] == ["unexpected_error"]
    # a cancelled one leaves nothing at all
    s.llm.reset()
    s.llm.script(edits(delay=1.5))
    queued = ok(bank.post("/mental-models/m/refresh"))["operation_id"]
    wait_for("the edit call", lambda: s.llm.calls(SCOPE))
    ok(bank.delete(f"/operations/{queued}"))
    assert bank.wait(queued)["status"] == "cancelled"
    assert kept(s, bank) == before and len(history(bank, "refresh_failed")) == 1


# ---- reported faults

@pytest.mark.parametrize("reply", [{"status": 500}, {"text": "I would rather not."}])
def test_fault_01_a_failed_edit_never_replaces_the_document(server, bank, llm, reply):
    parts = [(f"Part {i}", *[f"Fact {4 * i + k} of the team." for k in range(4)]) for i in range(5)]
    learn(bank)
    llm.script(answers(sections(*parts)))
    made = ok(bank.post("/mental-models", {"id": "m", "name": "Team", "source_query": QUERY,
                                           "trigger": {"mode": "delta"}}))
    bank.wait(made["operation_id"])
    learn(bank, "Dave joined the design team.")
    before, row = read(bank), kept(server, bank)
    llm.reset()
    llm.script(edits(**reply))
    op = refresh(bank)
    assert op["status"] == "failed" and op["details"]["failure_reason"] == "delta_ops_failed"
    after = read(bank)
    assert kept(server, bank) == row
    assert after["content"] == before["content"] and after["is_stale"] is before["is_stale"] is True
    assert after["last_refresh_failed_at"] is not None
    assert len(history(bank)) == 1 and len(history(bank, "refresh_failed")) == 1
    llm.reset()
    llm.script(edits(append("part-0", "Dave joined the design team.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert "Dave joined" in prompt(llm.calls(SCOPE)[0]).split("## NEW FACTS")[1]
    assert read(bank)["content"] == before["content"].replace(
        "\n\n## Part 1", "\n\nDave joined the design team.\n\n## Part 1")


def test_fault_01_one_failure_entry_for_each_attempt(own_stack):
    s = own_stack(settings={"worker_max_retries": 1, "worker_task_retry_backoff_seconds": 0, "llm_max_retries": 0})
    bank = s.bank()
    delta_model(bank, s.llm)
    learn(bank, "Dave joined the design team.")
    before = kept(s, bank)
    s.llm.script(edits(status=500))
    op = refresh(bank)
    assert op["status"] == "failed" and op["details"]["failure_reason"] == "delta_ops_failed"
    first, second = s.llm.calls(SCOPE)
    assert prompt(first) == prompt(second)
    assert [e["failure_reason"] for e in history(bank, "refresh_failed")] == ["delta_ops_failed"] * 2
    assert kept(s, bank) == before and len(history(bank)) == 1


def test_fault_07_a_changed_query_survives_a_failed_refresh(own_stack):
    s = own_stack(settings={"worker_max_retries": 1, "worker_task_retry_backoff_seconds": 0, "llm_max_retries": 0})
    bank, llm = s.bank(), s.llm
    delta_model(bank, llm)
    patch(bank, source_query="Which team does Carol lead?")
    # two model errors in a row end the agent loop, the synthesis after it fails too
    llm.script({"scope": "reflect*", "times": 3, "reply": {"status": 500}})
    op = refresh(bank)
    assert op["status"] == "completed" and op["retry_count"] == 1
    assert op["result_metadata"]["outcome"] == "content_written"
    assert llm.calls(SCOPE) == []
    after = read(bank)
    assert after["content"] != TEAM and "Carol" in after["content"]
    trace = after["reflect_response"]["trace"]
    assert trace["mode_fallback_reason"] == "source_query_changed" and trace["effective_mode"] == "full"
    assert len(history(bank, "refresh_failed")) == 1
    llm.reset()
    learn(bank, "Dave joined the design team led by Carol.")
    assert refresh(bank)["status"] == "completed" and len(llm.calls(SCOPE)) == 1


def test_fault_08_one_bad_edit_among_good_ones(server, bank, llm):
    delta_model(bank, llm)
    learn(bank, "Dave joined the design team.")
    row = kept(server, bank)
    three = [append("team", "One."), {"op": "swap_blocks", "section_id": "team"}, append("team", "Two.")]
    # nothing usable in either reply
    llm.script(edits({"op": "swap_blocks"}))
    op = refresh(bank)
    assert outcome(op) == ("failed", "refresh_failed_delta_not_applied", "delta_ops_failed")
    assert kept(server, bank) == row and len(llm.calls(SCOPE)) == 2
    # a clean second list
    llm.reset()
    llm.script(edits(*three, times=1), edits(append("team", "Clean.")))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert "swap_blocks" in llm.calls(SCOPE)[1]["body"]["messages"][3]["content"]
    assert read(bank)["content"] == TEAM.replace("\n\n## Rules", "\n\nClean.\n\n## Rules")
    # malformed again
    learn(bank, "Erin joined the design team.")
    llm.reset()
    llm.script(edits(*three))
    assert outcome(refresh(bank)) == ("completed", "content_written", None)
    assert read(bank)["content"].endswith("Clean.\n\nOne.\n\nTwo.\n\n## Rules\n\nReviews are on Monday.\n")
    assert read(bank)["reflect_response"]["delta_operations_skipped"] == [
        {"op": "swap_blocks", "section_id": "team", "reason": 'unknown op "swap_blocks"'}]
    # a missing section among good ones costs one call
    learn(bank, "Frank joined the design team.")
    llm.reset()
    llm.script(edits(append("team", "Three."), append("nowhere", "x"), append("rules", "Four.")))
    op = refresh(bank)
    assert (op["result_metadata"]["delta_ops_applied"], op["result_metadata"]["delta_ops_skipped"]) == (2, 1)
    assert len(llm.calls(SCOPE)) == 1


# ---- without a model

def test_the_built_in_provider_edits_by_the_same_operations(plain_bank):
    bank = plain_bank
    learn(bank)
    ok(bank.post("/mental-models", {"id": "m", "name": "Team", "source_query": QUERY,
                                    "trigger": {"mode": "delta", "keep_trace": True}}))
    bank.idle()
    before = read(bank)
    assert "Carol leads the design team." in before["content"]
    assert outcome(refresh(bank)) == ("completed", PRESERVED, None)
    learn(bank, "Dave joined the design team on 2026-03-01.")
    op = refresh(bank)
    assert outcome(op) == ("completed", "content_written", None)
    assert op["result_metadata"]["delta_ops_applied"] >= 1
    after = read(bank)
    assert "Dave joined the design team" in after["content"]
    assert set(before["content"].split("\n")) <= set(after["content"].split("\n"))
    r = after["reflect_response"]
    assert r["delta_applied"] is True and r["trace"]["effective_mode"] == "delta"
    assert {o["op"] for o in r["delta_operations_applied"]} <= {"append_block", "add_section"}
    # what is said already is not said again
    learn(bank, "Dave joined the design team on 2026-03-01.")
    refresh(bank)
    assert read(bank)["content"].count("Dave joined the design team") == after["content"].count("Dave joined the design team")
