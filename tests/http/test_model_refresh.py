"""A refresh in full mode: what it reads, writes and keeps; contract mental-models 10, 14, 18-21."""
import json
import pathlib
import sys
import time
from datetime import datetime

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fake"))

from llm_server import LlmServer  # noqa: E402
from model_calls import (MODEL_KEYS, TRACE_KEYS, BASED_ON, PRESERVED, QUERY, hasty, hasty_bank, idle,
                         sent, create, read, made_model, refresh, history, versions, document, done,
                         refused, filled, times)  # noqa: E402,F401
from stack import ok, wait_for  # noqa: E402

# ---- refresh

def test_models_case_38_an_empty_bank_costs_nothing(bank, llm):
    made = create(bank, source_query="Where do quokkas live?")
    op = bank.wait(made["operation_id"])
    assert op["status"] == "completed", op
    assert op["result_metadata"]["outcome"] == PRESERVED
    assert op["result_metadata"]["populated_content"] is False
    assert op["result_metadata"]["content_len"] == 0
    assert op["mental_model_id"] == made["mental_model_id"]
    assert op["details"] == {"operation_type": "refresh_mental_model", "outcome": PRESERVED,
                             "failure_reason": None}
    model = read(bank, made["mental_model_id"])
    assert model["content"] == "" and model["is_stale"] is False
    assert model["reflect_response"]["reflect_skipped"] == "no_sources_in_scope"
    assert set(model["reflect_response"]["based_on"]) == BASED_ON
    assert model["last_memory_seen_at"] is None
    assert model["last_full_refreshed_at"] == model["last_refreshed_at"] > model["created_at"]
    assert history(bank, made["mental_model_id"]) == []
    assert not [c for c in llm.calls() if "quokkas" in sent(c)]


def test_fault_03_a_model_on_an_empty_bank_is_cheap(bank, llm):
    made = [create(bank, name=f"Page {i}", source_query="Where do quokkas live?") for i in range(5)]
    for one in made:
        op = bank.wait(one["operation_id"])
        assert op["status"] == "completed" and op["result_metadata"]["outcome"] == PRESERVED
        assert read(bank, one["mental_model_id"])["content"] == ""
    assert not [c for c in llm.chats() if "quokkas" in sent(c)]
    # the queue full of refreshes does not hold up a retain
    for one in made:
        ok(bank.post(f"/mental-models/{one['mental_model_id']}/refresh"))
    started = time.monotonic()
    op = bank.wait(ok(bank.post("/memories", {"items": [{"content": "Carol leads."}], "async": True}))["operation_id"])
    assert op["status"] == "completed" and time.monotonic() - started < 10


def test_a_refresh_writes_document_evidence_and_times(stack, bank, llm):
    filled(bank)
    made = create(bank, name="Team")
    op = bank.wait(made["operation_id"])
    assert op["status"] == "completed", op
    meta = op["result_metadata"]
    model = read(bank, made["mental_model_id"])
    assert "Carol leads the design team." in model["content"]
    assert model["content"].endswith("\n") and not model["content"].endswith("\n\n")
    assert meta["outcome"] == "content_written" and meta["failure_reason"] is None
    assert meta["content_len"] == len(model["content"]) and meta["populated_content"] is True
    assert (meta["delta_ops_applied"], meta["delta_ops_skipped"]) == (0, 0)
    assert meta["mental_model_id"] == made["mental_model_id"] and meta["name"] == "Team"
    response = model["reflect_response"]
    assert response["outcome"] == "content_written" and response["mental_models"] == []
    assert "refresh_skipped" not in response and "trace" not in response
    for kind, entries in response["based_on"].items():
        assert meta["based_on_counts"][kind] == len(entries)
        for e in entries:
            assert set(e) == {"id", "text", "type", "context"} and e["type"] == kind
    assert any(response["based_on"][k] for k in ("world", "observation"))
    newest = stack.sql("SELECT MAX(u.updated_at) t FROM memory_units u JOIN banks USING (bank_no) WHERE bank_id = %s",
                       bank.id)[0]["t"]
    assert datetime.fromisoformat(model["last_memory_seen_at"]).replace(tzinfo=None) == newest
    assert model["last_full_refreshed_at"] == model["last_refreshed_at"]
    # the name and what to write reach the model, every call of the settings group's operation
    calls = llm.calls("reflect_tool_call")
    assert calls and all("Name of the document: Team" in sent(c) for c in calls)


def test_models_case_18_the_watermark_stands_still(stack, bank):
    filled(bank)
    made = create(bank)
    bank.wait(made["operation_id"])
    one = read(bank, made["mental_model_id"])
    refresh(bank, made["mental_model_id"])
    two = read(bank, made["mental_model_id"])
    assert two["last_refreshed_at"] > one["last_refreshed_at"]
    assert two["last_memory_seen_at"] == one["last_memory_seen_at"]
    newest = stack.sql("SELECT MAX(u.updated_at) t FROM memory_units u JOIN banks USING (bank_no) WHERE bank_id = %s",
                       bank.id)[0]["t"]
    assert datetime.fromisoformat(two["last_memory_seen_at"]).replace(tzinfo=None) == newest


def test_models_case_19_a_write_during_the_run_is_newer(bank, llm):
    filled(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"delay": 1}})
    made = create(bank)
    wait_for("the first call", lambda: llm.calls("reflect_tool_call"))
    bank.retain("Dave joined as a carpenter.")
    bank.wait(made["operation_id"])
    model = read(bank, made["mental_model_id"])
    assert "Dave" not in model["content"] and "Carol" in model["content"]
    assert model["is_stale"] is True


def test_models_case_20_the_memory_decides_not_the_clock(bank):
    filled(bank)
    model = made_model(bank)
    assert model["is_stale"] is False
    bank.retain("Bob paints.")
    model = read(bank, model["id"])
    assert model["is_stale"] is True
    assert ok(bank.get("/mental-models"))["items"][0]["is_stale"] is True


def test_tags_narrow_what_a_refresh_reads(bank):
    bank.retain("Carol leads the design team.", tags=["a"])
    bank.retain("Bob paints walls for the design team.")
    bank.idle()
    alone = {"exclude_mental_models": True}
    model = made_model(bank, tags=["a"], name="Tagged", trigger=alone)
    assert "Carol" in model["content"] and "Bob" not in model["content"]
    model = made_model(bank, tags=["a"], trigger={"tags_match": "any", **alone}, name="Wide")
    assert "Carol" in model["content"] and "Bob" in model["content"]
    model = made_model(bank, tags=["z"], name="None", trigger=alone)
    assert model["content"] == ""


def test_siblings_alone_start_a_run_only_for_an_unwritten_body(bank, llm):
    filled(bank)
    made_model(bank, id="written")
    # memories of the one are outside the scope of the other
    body = {"id": "sibling", "trigger": {"fact_types": ["experience"]}}
    model = made_model(bank, **body)
    assert "Carol" in model["content"]
    assert model["reflect_response"]["based_on"]["mental-models"][0]["id"] == "written"
    llm.reset()
    op = refresh(bank, "sibling")
    assert op["result_metadata"]["outcome"] == PRESERVED and llm.chats() == []
    assert read(bank, "sibling")["content"] == model["content"]
    for trigger in ({"exclude_mental_models": True}, {"exclude_mental_model_ids": ["written", "sibling"]}):
        model = made_model(bank, trigger={"fact_types": ["experience"], **trigger})
        assert model["content"] == "" and llm.chats() == []


def test_fault_14_a_model_never_reads_itself(bank, llm):
    filled(bank)
    made_model(bank, id="other", name="Other model")
    made_model(bank, id="self", name="Self model")
    llm.reset()
    refresh(bank, "self")
    seen = "".join(sent(c) for c in llm.calls("reflect_tool_call"))
    assert "Other model" in seen
    results = [m.get("content") or "" for c in llm.calls("reflect_tool_call") for m in c["body"]["messages"]
               if m["role"] == "tool"]
    assert not any("Self model" in r for r in results)


@pytest.mark.parametrize("answer", [
    {"document": {"sections": []}}, {"document": None}, {"document": {"sections": [{
        "heading": "", "level": 2, "blocks": [" "]}]}}])
def test_fault_02_no_answer_never_replaces_a_document(hasty, hasty_bank, answer):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank)
    assert "Carol" in model["content"]
    llm.script(done(**answer))
    op = refresh(bank, model["id"])
    assert op["status"] == "failed" and op["error_message"]
    assert op["result_metadata"]["failure_reason"] == "no_answer"
    assert op["result_metadata"]["outcome"] == "refresh_failed_error"
    assert op["details"]["failure_reason"] == "no_answer"
    after = read(bank, model["id"])
    assert after["last_refresh_failed_at"] is not None
    for key in MODEL_KEYS - {"last_refresh_failed_at"}:
        assert after[key] == model[key]
    assert [e["failure_reason"] for e in history(bank, model["id"])[:-1]] == ["no_answer"] * 2
    assert versions(bank, model["id"]) == [""]


def test_fault_02_no_done_and_no_text(hasty, hasty_bank):
    bank = filled(hasty_bank)
    model = made_model(bank)
    hasty.llm.script({"when": {"tool_forced": "done"}, "reply": {"text": ""}},
                     {"scope": "reflect", "when": {"tools": False}, "reply": {"text": ""}})
    op = refresh(bank, model["id"])
    assert op["status"] == "failed"
    assert read(bank, model["id"])["content"] == model["content"]
    assert versions(bank, model["id"]) == [""]


def test_models_case_37_a_lost_retrieval_is_a_failure(own_stack):
    with LlmServer() as service:
        s = own_stack(settings={"worker_max_retries": 0, "embeddings_provider": "openai",
                                "embeddings_openai_base_url": service.url, "embeddings_openai_api_key": "key",
                                "embeddings_max_retries": 0})
        bank = filled(s.bank())
        model = made_model(bank)
        assert "Carol" in model["content"]
        service.script([{"scope": "embeddings", "reply": {"status": 400}}])
        s.llm.script(done(answer_found=True, document={"sections": [{
            "heading": "", "level": 2, "blocks": ["There is no information about that."]}]}))
        op = refresh(bank, model["id"])
        assert op["status"] == "failed"
        assert op["result_metadata"]["failure_reason"] == "retrieval_failed"
        assert op["result_metadata"]["outcome"] == "refresh_failed_error"
        after = read(bank, model["id"])
        assert after["last_refresh_failed_at"] is not None
        for key in MODEL_KEYS - {"last_refresh_failed_at"}:
            assert after[key] == model[key]
        # the embedder is asked before anything is stored
        a = bank.post("/mental-models", {"id": "none", "name": "N", "source_query": "Q"})
        assert a.status == 500 and bank.get("/mental-models/none").status == 404


def test_models_case_37_nothing_on_the_topic(bank, llm):
    filled(bank)
    made = create(bank, source_query="Where do quokkas live?")
    op = bank.wait(made["operation_id"])
    assert op["result_metadata"]["outcome"] == "content_written"
    model = read(bank, made["mental_model_id"])
    assert "Nothing is recorded about this." in model["content"]
    ok(bank.patch(f"/mental-models/{model['id']}", {"source_query": QUERY}))
    refresh(bank, model["id"])
    written = read(bank, model["id"])
    assert "Carol" in written["content"]
    ok(bank.patch(f"/mental-models/{model['id']}", {"source_query": "Where do quokkas live?"}))
    assert refresh(bank, model["id"])["result_metadata"]["outcome"] == PRESERVED
    after = read(bank, model["id"])
    assert after["content"] == written["content"]
    assert after["reflect_response"]["based_on"] == written["reflect_response"]["based_on"]
    assert after["last_refreshed_at"] > written["last_refreshed_at"]


def test_models_case_37_no_answer_found_keeps_a_written_body(bank, llm):
    filled(bank)
    nothing = done(answer_found=False,
                   document={"sections": [{"heading": "", "level": 2, "blocks": ["Nothing is known."]}]})
    llm.script(nothing)
    made = create(bank)
    op = bank.wait(made["operation_id"])
    assert op["result_metadata"]["outcome"] == "content_written"
    assert read(bank, made["mental_model_id"])["content"] == "Nothing is known.\n"
    llm.reset()
    refresh(bank, made["mental_model_id"])
    before = read(bank, made["mental_model_id"])
    assert "Carol" in before["content"]
    llm.script(nothing)
    op = refresh(bank, made["mental_model_id"])
    assert op["status"] == "completed"
    assert op["result_metadata"]["outcome"] == PRESERVED
    after = read(bank, made["mental_model_id"])
    assert after["content"] == before["content"]
    assert after["reflect_response"]["based_on"] == before["reflect_response"]["based_on"]
    assert after["reflect_response"]["text"] == before["reflect_response"]["text"]
    assert after["reflect_response"]["outcome"] == PRESERVED
    assert after["last_refreshed_at"] > before["last_refreshed_at"]
    assert len(versions(bank, made["mental_model_id"])) == 2


def test_models_case_30_the_same_text_is_no_version(bank, llm):
    filled(bank)
    llm.script(document("Carol leads."))
    made = create(bank)
    bank.wait(made["operation_id"])
    for _ in range(2):
        op = refresh(bank, made["mental_model_id"])
        assert op["result_metadata"]["outcome"] == "content_unchanged"
    assert read(bank, made["mental_model_id"])["content"] == "Carol leads.\n"
    assert versions(bank, made["mental_model_id"]) == [""]


def test_models_case_47_history(own_stack):
    s = own_stack(settings={"mental_model_history_max_entries": 3})
    bank = filled(s.bank())
    made = None
    for i in range(1, 4):
        s.llm.reset()
        s.llm.script(document(f"v{i}"))
        if made:
            refresh(bank, made["mental_model_id"])
        else:
            made = create(bank)
            bank.wait(made["operation_id"])
    assert versions(bank, made["mental_model_id"]) == ["v2\n", "v1\n", ""]
    entry = history(bank, made["mental_model_id"])[0]
    assert set(entry) == {"previous_content", "previous_reflect_response", "changed_at"}
    assert set(entry["previous_reflect_response"]) == {"based_on"}
    assert history(bank, made["mental_model_id"])[-1]["previous_reflect_response"] is None
    for i in range(4, 6):
        s.llm.reset()
        s.llm.script(document(f"v{i}"))
        refresh(bank, made["mental_model_id"])
    assert versions(bank, made["mental_model_id"]) == ["v4\n", "v3\n", "v2\n"]


def test_history_can_be_off(own_stack):
    s = own_stack(settings={"enable_mental_model_history": False, "worker_max_retries": 0})
    bank = filled(s.bank())
    model = made_model(bank)
    s.llm.script(refused())
    assert refresh(bank, model["id"])["status"] == "failed"
    ok(bank.post(f"/mental-models/{model['id']}/clear"))
    assert history(bank, model["id"]) == []
    assert read(bank, model["id"])["last_refresh_failed_at"] is not None


def test_models_case_58_failure_entries(hasty, hasty_bank):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank)
    llm.script(refused())
    op = refresh(bank, model["id"])
    assert op["status"] == "failed" and op["retry_count"] == 0
    first, last = history(bank, model["id"])
    assert set(first) == {"previous_content", "previous_reflect_response", "changed_at", "kind", "outcome",
                          "failure_reason", "error_message"}
    assert first["kind"] == "refresh_failed" and first["outcome"] == "refresh_failed_error"
    assert first["failure_reason"] == "unexpected_error"
    assert first["error_message"] == op["error_message"] and first["error_message"].startswith("LLM_AUTH: ")
    assert "test-key-123" not in first["error_message"]
    assert first["previous_content"] is None and first["previous_reflect_response"] is None
    assert "kind" not in last and last["previous_content"] == ""
    # fails once, then the worker's own retry succeeds
    llm.reset()
    llm.script({**done(document={"sections": []}), "times": 1}, document("Second."))
    op = refresh(bank, model["id"])
    assert op["status"] == "completed" and op["error_message"] is None and op["retry_count"] == 1
    assert op["result_metadata"]["failure_reason"] is None
    assert op["result_metadata"]["outcome"] == "content_written"
    assert op["result_metadata"]["last_retry_error"]
    assert read(bank, model["id"])["last_refresh_failed_at"] is None
    assert versions(bank, model["id"]) == [model["content"], ""]


def test_models_case_48_traces(hasty, hasty_bank):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank)
    assert "trace" not in model["reflect_response"]
    ok(bank.patch(f"/mental-models/{model['id']}", {"trigger": {"keep_trace": True}}))
    llm.script(document("Second."))
    refresh(bank, model["id"])
    trace = read(bank, model["id"])["reflect_response"]["trace"]
    assert set(trace) == TRACE_KEYS
    assert (trace["effective_mode"], trace["outcome"]) == ("full", "content_written")
    assert trace["mode_fallback_reason"] is None and trace["delta_operations"] is None
    assert trace["tool_calls"] and trace["usage"]["total_tokens"] > 0
    for call in trace["tool_calls"]:
        assert set(call) == {"tool", "reason", "input", "output", "updated_at", "result_count", "duration_ms",
                             "iteration"}
        assert call["output"] is None and call["updated_at"] is None and call["iteration"] >= 1
    assert any(c["result_count"] for c in trace["tool_calls"])
    assert {"closing_done", "agent_1"} <= {c["scope"] for c in trace["llm_calls"]}
    # a run that died leaves its trace and nothing else
    before = read(bank, model["id"])
    llm.reset()
    llm.script({"when": {"tool_forced": "recall"}, "reply": {"status": 401}})
    assert refresh(bank, model["id"])["status"] == "failed"
    after = read(bank, model["id"])["reflect_response"]
    died = after.pop("trace")
    before["reflect_response"].pop("trace")
    assert after == before["reflect_response"] and "outcome" in after
    assert died["outcome"] == "refresh_failed_error" and died["tool_calls"]
    # the version's slice carries the trace of the run that wrote over it
    llm.reset()
    llm.script(document("Third."))
    refresh(bank, model["id"])
    newest = [e for e in history(bank, model["id"]) if "kind" not in e][0]
    assert newest["previous_reflect_response"]["trace"]["outcome"] == "refresh_failed_error"
    ok(bank.patch(f"/mental-models/{model['id']}", {"trigger": {"keep_trace": None}}))
    refresh(bank, model["id"])
    assert "trace" not in read(bank, model["id"])["reflect_response"]


def test_models_case_08_clear(hasty, hasty_bank):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank, trigger={"mode": "delta", "keep_trace": True})
    bank.retain("Dave joined the design team.")
    bank.idle()
    llm.script(refused())
    refresh(bank, model["id"])
    failed = read(bank, model["id"])
    assert failed["last_refresh_failed_at"] is not None
    cleared = ok(bank.post(f"/mental-models/{model['id']}/clear"))
    assert set(cleared) == MODEL_KEYS and cleared["content"] == ""
    assert cleared["is_stale"] is None and cleared["is_knowledge_page"] is None
    assert times(cleared) == times(failed)
    assert cleared["reflect_response"] == failed["reflect_response"]
    assert versions(bank, model["id"]) == [model["content"], ""]
    # clearing what is empty writes no version
    ok(bank.post(f"/mental-models/{model['id']}/clear", {"ignored": True}))
    assert versions(bank, model["id"]) == [model["content"], ""]
    llm.reset()
    op = refresh(bank, model["id"])
    assert op["result_metadata"]["outcome"] == "content_written"
    after = read(bank, model["id"])
    assert after["last_refresh_failed_at"] is None
    assert after["reflect_response"]["trace"]["mode_fallback_reason"] == "no_baseline_content"
    assert after["reflect_response"]["trace"]["effective_mode"] == "full"


def test_models_case_34_a_changed_query_is_named(bank):
    filled(bank)
    model = made_model(bank, trigger={"mode": "delta", "keep_trace": True})
    ok(bank.patch(f"/mental-models/{model['id']}", {"source_query": "Which team does Carol lead?"}))
    refresh(bank, model["id"])
    trace = read(bank, model["id"])["reflect_response"]["trace"]
    assert trace["mode_fallback_reason"] == "source_query_changed"
    refresh(bank, model["id"])
    assert read(bank, model["id"])["reflect_response"]["trace"]["mode_fallback_reason"] is None


def test_response_schema_waits_for_its_release(hasty, hasty_bank):
    bank = filled(hasty_bank)
    model = made_model(bank)
    ok(bank.patch(f"/mental-models/{model['id']}", {"trigger": {
        "response_schema": {"type": "object", "properties": {"risk": {"type": "string"}}}}}))
    hasty.llm.reset()
    op = refresh(bank, model["id"])
    assert op["status"] == "failed" and hasty.llm.chats() == []
    assert op["result_metadata"]["outcome"] == "refresh_failed_structured_output"
    assert op["result_metadata"]["failure_reason"] == "structured_output_failed"
    after = read(bank, model["id"])
    assert after["content"] == model["content"]
    assert after["reflect_response"]["refresh_skipped"] == "structured_output_failed"
    assert after["reflect_response"]["based_on"] == model["reflect_response"]["based_on"]


@pytest.mark.parametrize("metadata", [
    {"outcome": "something_new"}, {"outcome": "content_written", "failure_reason": "something_new"}, {"outcome": 5},
    {}, [], "broken"])
def test_models_case_50_an_outcome_nobody_knows_has_no_details(idle, metadata):
    bank = idle.bank()
    made = create(bank)
    other = create(bank)
    text = metadata if metadata == "broken" else json.dumps(metadata)
    idle.sql("UPDATE async_operations SET status = 'completed', result_metadata = %s WHERE operation_id = %s", text,
             made["operation_id"])
    listed = {o["id"]: o for o in ok(bank.get("/operations"))["operations"]}
    assert set(listed) == {made["operation_id"], other["operation_id"]}
    for op in (listed[made["operation_id"]], bank.operation(made["operation_id"])):
        assert op["status"] == "completed" and op["details"] is None
    idle.sql("UPDATE async_operations SET result_metadata = %s WHERE operation_id = %s",
             json.dumps({"outcome": "content_unchanged"}), made["operation_id"])
    assert bank.operation(made["operation_id"])["details"]["outcome"] == "content_unchanged"


def test_models_case_64_the_wall_clock(own_stack):
    s = own_stack(settings={"reflect_wall_timeout": 2})
    bank = filled(s.bank())
    model = made_model(bank)
    s.llm.script({"when": {"tool_forced": "recall"}, "reply": {"hang": True}})
    op = refresh(bank, model["id"])
    assert op["status"] == "failed" and op["retry_count"] == 0
    assert "2" in op["error_message"] and "reflect_wall_timeout" in op["error_message"].lower()
    assert op["result_metadata"]["outcome"] == "refresh_failed_error"
    assert op["result_metadata"]["failure_reason"] == "unexpected_error"
    first = history(bank, model["id"])[0]
    assert first["kind"] == "refresh_failed"
    assert read(bank, model["id"])["last_refresh_failed_at"] is not None


def test_fault_12_deleted_while_its_refresh_runs(bank, llm):
    filled(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"delay": 3}})
    made = create(bank)
    wait_for("the first call", lambda: llm.calls("reflect_tool_call"))
    started = time.monotonic()
    ok(bank.delete("/mental-models/" + made["mental_model_id"]))
    assert time.monotonic() - started < 2
    op = bank.wait(made["operation_id"])
    assert op["status"] == "failed" and op["retry_count"] == 0
    assert f"Mental model {made['mental_model_id']} not found in bank {bank.id}" in op["error_message"]
    assert bank.get("/mental-models/" + made["mental_model_id"]).status == 404
    assert "Carol" in made_model(bank)["content"]


def test_a_queued_refresh_of_a_deleted_model_fails_at_once(own_stack):
    s = own_stack(worker=False)
    bank = s.bank()
    made = create(bank)
    ok(bank.delete("/mental-models/" + made["mental_model_id"]))
    s.start_worker()
    op = bank.wait(made["operation_id"])
    assert op["status"] == "failed" and op["retry_count"] == 0
    assert f"Mental model {made['mental_model_id']} not found in bank {bank.id}" in op["error_message"]


def test_provider_none(own_stack):
    s = own_stack(settings={"llm_provider": "none", "llm_base_url": None, "llm_api_key": None})
    bank = s.bank()
    start = "Mental model refresh requires an LLM provider. Current provider is set to 'none'."
    for path, body in (("/mental-models", {"name": "N", "source_query": "Q"}), ("/mental-models/x/refresh", None)):
        a = bank.post(path, body)
        assert a.status == 400 and a.detail.startswith(start)
    assert bank.get("/mental-models").status == 404


def test_extractive_refresh(plain_bank):
    bank = plain_bank
    bank.retain("Carol leads the design team in Lisbon.")
    bank.idle()
    made = create(bank, source_query="Who leads the design team?")
    op = bank.wait(made["operation_id"])
    assert op["status"] == "completed", op
    assert op["result_metadata"]["outcome"] == "content_written"
    model = read(bank, made["mental_model_id"])
    assert "Carol leads the design team in Lisbon." in model["content"]
    assert any(model["reflect_response"]["based_on"][k] for k in ("world", "experience", "observation"))
