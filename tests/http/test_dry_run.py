"""Dry run of a refresh: the same run, told and not written."""
import difflib

import pytest

from stack import Stack, ok

QUERY = "Who leads the design team?"
SCOPE = "mental_model_delta_ops"
PRESERVED = "content_preserved_no_new_facts"
KEYS = {"mental_model_id", "name", "requested_mode", "effective_mode", "mode_fallback_reason", "outcome",
        "would_persist", "scope", "window", "facts", "based_on", "current_content", "candidate_content",
        "preview_content", "diff", "delta_operations", "retraction", "trace", "usage", "duration_ms", "warnings"}
SCOPE_KEYS = {"tags", "tags_match", "tag_groups", "fact_types", "exclude_mental_models", "exclude_mental_model_ids"}
TRACE_KEYS = {"recorded_at", "effective_mode", "mode_fallback_reason", "outcome", "tool_calls", "llm_calls",
              "delta_operations", "retraction", "usage", "duration_ms", "warnings"}
USAGE_KEYS = {"input_tokens", "output_tokens", "total_tokens", "cached_tokens", "thoughts_tokens"}


@pytest.fixture(scope="module")
def server():
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


def learn(bank, text="Carol leads the design team.", **item):
    bank.retain(text, **item)
    bank.idle()


def create(bank, wait=True, **body):
    made = ok(bank.post("/mental-models", {"id": "m", "name": "Team page", "source_query": QUERY, **body}))
    if wait:
        bank.wait(made["operation_id"])
    return ok(bank.get("/mental-models/m"))


def dry(bank, *body):
    result = ok(bank.post("/mental-models/m/dry-run-refresh", *body))
    assert set(result) == KEYS
    assert set(result["scope"]) == SCOPE_KEYS and set(result["trace"]) == TRACE_KEYS
    assert set(result["usage"]) == USAGE_KEYS
    assert set(result["window"]) == {"created_after", "created_before", "watermark"}
    assert set(result["facts"]) == {"retrieved", "used"}
    return result


def everything(server, bank):
    """All that a refresh could write."""
    rows = server.sql("SELECT m.* FROM mental_models m JOIN banks b USING (bank_no) WHERE b.bank_id = %s", bank.id)
    return rows, ok(bank.get("/mental-models/m/history")), ok(bank.get("/operations"))["total"]


def unified(current, preview):
    return "\n".join(difflib.unified_diff(current.split("\n"), preview.rstrip("\n").split("\n"), "current", "preview",
                                          lineterm=""))


def test_a_full_dry_run_tells_what_a_refresh_would_store(server, bank, llm):
    create(bank)
    learn(bank)
    before = everything(server, bank)
    llm.reset()
    result = dry(bank)
    assert everything(server, bank) == before
    assert (result["mental_model_id"], result["name"]) == ("m", "Team page")
    assert (result["requested_mode"], result["effective_mode"], result["mode_fallback_reason"]) == ("full", "full", None)
    assert result["outcome"] == "content_written" and result["would_persist"] is True
    assert result["scope"] == {"tags": [], "tags_match": "any", "tag_groups": None, "fact_types": None,
                               "exclude_mental_models": False, "exclude_mental_model_ids": ["m"]}
    assert result["window"]["created_after"] is None and result["window"]["created_before"]
    assert result["window"]["watermark"] <= result["window"]["created_before"]
    assert result["facts"]["retrieved"]["world"] >= 1 and result["facts"]["used"]["world"] >= 1
    assert "mental-models" not in result["facts"]["used"]
    assert result["current_content"] == "" and "Carol leads the design team." in result["preview_content"]
    assert result["preview_content"].endswith("\n") and result["candidate_content"] in result["preview_content"]
    assert result["diff"].startswith("--- current\n+++ preview\n@@ -0,0 +1") and not result["diff"].endswith("\n")
    assert result["delta_operations"] is None and result["retraction"] is None
    assert result["usage"]["total_tokens"] > 0 and result["duration_ms"] >= 0
    assert any(c["output"] for c in result["trace"]["tool_calls"])
    # the refresh after it makes the same calls and stores the same
    calls = [c["scope"] for c in llm.chats()]
    llm.reset()
    bank.wait(ok(bank.post("/mental-models/m/refresh"))["operation_id"])
    model = ok(bank.get("/mental-models/m"))
    assert [c["scope"] for c in llm.chats()] == calls
    assert model["content"] == result["preview_content"]
    assert model["reflect_response"]["based_on"] == result["based_on"]


def test_models_case_49_twice_in_delta(server, bank, llm):
    learn(bank)
    create(bank, trigger={"mode": "delta"})
    learn(bank, "Dave joined the design team.")
    before = everything(server, bank)
    llm.script({"scope": SCOPE, "reply": {"json": {"operations": [
        {"op": "add_section", "heading": "New", "blocks": ["Dave joined."]},
        {"op": "append_block", "section_id": "nowhere", "text": "x"}]}}})
    first, second = dry(bank), dry(bank, {})
    assert everything(server, bank) == before
    assert first["window"] == second["window"] and first["window"]["created_after"] is not None
    assert first["window"]["watermark"] > first["window"]["created_after"]
    assert (first["requested_mode"], first["effective_mode"]) == ("delta", "delta")
    assert first["outcome"] == "content_written" and first["would_persist"] is True
    assert first["preview_content"] == first["current_content"] + "\n\n## New\n\nDave joined.\n"
    assert first["diff"] == unified(first["current_content"], first["preview_content"])
    assert [o["op"] for o in first["delta_operations"]["applied"]] == ["add_section"]
    assert first["delta_operations"]["skipped"][0]["reason"] == "unknown section_id: nowhere"
    assert any("skipped" in w for w in first["warnings"])
    for call in first["trace"]["tool_calls"]:
        windowed = call["tool"] in ("recall", "search_observations")
        assert call["updated_at"] == (first["window"]["created_after"] if windowed else None)
    llm.reset()
    op = bank.wait(ok(bank.post("/mental-models/m/refresh"))["operation_id"])
    assert op["status"] == "completed"
    quiet = dry(bank)
    assert (quiet["outcome"], quiet["effective_mode"], quiet["would_persist"]) == (PRESERVED, "delta", False)
    assert quiet["window"]["watermark"] is None and quiet["diff"] == "" and quiet["warnings"]
    assert quiet["preview_content"] == quiet["current_content"] and quiet["usage"]["total_tokens"] == 0


def test_models_case_49_unknown_ids_and_ignored_bodies(server, bank, llm):
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert (a.status, a.detail) == (404, "Mental model m not found")
    learn(bank)
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert (a.status, a.detail) == (404, "Mental model m not found")
    create(bank)
    assert dry(bank, {"mode": "delta"})["requested_mode"] == "full"


def test_models_case_49_the_trigger_decides_the_scope(bank, llm):
    create(bank, tags=["a"], trigger={"tags_match": "any", "fact_types": ["world"], "exclude_mental_models": True,
                                      "exclude_mental_model_ids": ["z", "b"]})
    scope = dry(bank)["scope"]
    assert scope == {"tags": ["a"], "tags_match": "any", "tag_groups": None, "fact_types": ["world"],
                     "exclude_mental_models": True, "exclude_mental_model_ids": ["b", "m", "z"]}
    ok(bank.patch("/mental-models/m", {"trigger": {"tag_groups": [{"not": {"tags": ["x"]}}], "fact_types": None}}))
    scope = dry(bank)["scope"]
    assert scope["tags"] is None and scope["tags_match"] == "any" and scope["fact_types"] is None
    assert scope["tag_groups"][0]["not"]["tags"] == ["x"]


def test_fault_09_tags_on_a_model_narrow_what_it_reads(bank, llm):
    learn(bank, tags=["aos"])
    create(bank, tags=["aos", "arch"])
    llm.reset()
    result = dry(bank)
    assert result["scope"]["tags_match"] == "all_strict" and result["scope"]["tags"] == ["aos", "arch"]
    assert result["facts"] == {"retrieved": {}, "used": {}} and result["outcome"] == PRESERVED
    assert result["warnings"] and llm.chats() == []
    ok(bank.patch("/mental-models/m", {"trigger": {"tags_match": "any"}}))
    result = dry(bank)
    assert result["facts"]["retrieved"]["world"] >= 1 and result["outcome"] == "content_written"
    ok(bank.patch("/mental-models/m", {"tags": [], "trigger": {"tags_match": None}}))
    assert dry(bank)["facts"]["retrieved"]["world"] >= 1


def test_fault_14_excluded_models_are_not_offered(bank, llm):
    learn(bank)
    for model_id in ("other", "third"):
        made = ok(bank.post("/mental-models", {"id": model_id, "name": f"The {model_id}", "source_query": QUERY}))
        bank.wait(made["operation_id"])
    create(bank)

    def shown():
        llm.reset()
        result = dry(bank)
        tools = {t["function"]["name"] for c in llm.calls("reflect_tool_call") for t in c["body"]["tools"]}
        text = "".join(m.get("content") or "" for c in llm.calls("reflect_tool_call") for m in c["body"]["messages"]
                       if m["role"] == "tool")
        return tools, text, result["facts"]["retrieved"].get("mental-models", 0)

    tools, text, n = shown()
    assert "The other" in text and "The third" in text and "Team page" not in text and n == 2
    ok(bank.patch("/mental-models/m", {"trigger": {"exclude_mental_model_ids": ["other"]}}))
    tools, text, n = shown()
    assert "The other" not in text and "The third" in text and "Team page" not in text and n == 1
    ok(bank.patch("/mental-models/m", {"trigger": {"exclude_mental_models": True}}))
    tools, text, n = shown()
    assert "search_mental_models" not in tools and "The third" not in text and n == 0


def test_refused_results_are_told(server, bank, llm):
    learn(bank)
    create(bank, trigger={"mode": "delta"})
    learn(bank, "Dave joined the design team.")
    before = everything(server, bank)
    for rule, outcome, reason in (
            ({"status": 500}, "refresh_failed_delta_not_applied", "delta_ops_failed"),
            ({"json": {"operations": [{"op": "remove_section", "section_id": "no"}]}},
             "refresh_failed_delta_not_applied", "delta_ops_all_skipped"),
            ({"json": {"operations": [{"op": "remove_section", "section_id": "what-is-known"}]}},
             "refresh_failed_empty_candidate", None)):
        llm.reset()
        llm.script({"scope": SCOPE, "reply": rule})
        result = dry(bank)
        assert (result["outcome"], result["would_persist"]) == (outcome, False)
        assert (result["mode_fallback_reason"], result["effective_mode"]) == (reason, "full")
        assert result["preview_content"] == result["current_content"] and result["diff"] == ""
        assert result["warnings"]
    assert everything(server, bank) == before


def test_models_case_36_a_schema_is_told_as_not_extracted(server, bank, llm):
    learn(bank)
    create(bank)
    ok(bank.patch("/mental-models/m", {"trigger": {
        "response_schema": {"type": "object", "properties": {"risk": {"type": "string"}}}}}))
    before = everything(server, bank)
    result = dry(bank)
    assert (result["outcome"], result["would_persist"]) == ("refresh_failed_structured_output", False)
    assert result["preview_content"] == result["current_content"] and result["warnings"]
    assert everything(server, bank) == before


def test_a_run_that_dies_is_an_error(server, bank, llm):
    learn(bank)
    create(bank)
    before = everything(server, bank)
    llm.script({"scope": "reflect_tool_call", "reply": {"status": 401}})
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert a.status == 500 and isinstance(a.detail, str)
    llm.reset()
    llm.script({"when": {"tool_forced": "done"}, "reply": {"value": {"document": {"sections": []}}}})
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert a.status == 500 and isinstance(a.detail, str)
    assert everything(server, bank) == before


def test_a_dry_run_has_a_time_limit(own_stack):
    s = own_stack(settings={"reflect_wall_timeout": 2})
    bank = s.bank()
    learn(bank)
    create(bank, trigger={"mode": "delta"})
    learn(bank, "Dave joined the design team.")
    for scope in ("reflect_tool_call", SCOPE):
        s.llm.reset()
        s.llm.script({"scope": scope, "reply": {"hang": True}})
        a = bank.post("/mental-models/m/dry-run-refresh")
        assert a.status == 504 and "2" in a.detail


def test_without_a_model(own_stack):
    s = own_stack(llm=False, settings={"llm_provider": "none"})
    bank = s.bank()
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert (a.status, a.detail) == (404, "Mental model m not found")
    bank.make()
    s.sql("INSERT INTO mental_models (bank_no, id, name, source_query, content, tags, trigger_json, max_tokens,"
          " read_until, last_refreshed_at, created_at) SELECT bank_no, 'm', 'N', %s, '', '[]', '{}', 2048,"
          " NOW(6), NOW(6), NOW(6) FROM banks WHERE bank_id = %s", QUERY, bank.id)
    assert dry(bank)["outcome"] == PRESERVED
    bank.retain("Carol leads the design team.")
    a = bank.post("/mental-models/m/dry-run-refresh")
    assert a.status == 400 and a.detail.startswith("Mental model refresh requires an LLM provider.")


def test_the_built_in_provider(plain_bank):
    bank = plain_bank
    learn(bank)
    create(bank, trigger={"mode": "delta"})
    learn(bank, "Dave joined the design team on 2026-03-01.")
    result = dry(bank)
    assert (result["effective_mode"], result["outcome"]) == ("delta", "content_written")
    assert "Dave joined" in result["diff"] and result["delta_operations"]["applied"]
    assert result["usage"]["total_tokens"] == 0
