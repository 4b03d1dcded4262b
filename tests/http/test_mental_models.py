"""Mental models over HTTP: shape, changes, refresh in full mode, history."""
import concurrent.futures
import json
import pathlib
import sys
import time
import urllib.parse
from datetime import datetime

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fake"))

from llm_server import LlmServer  # noqa: E402
from stack import Stack, ok, wait_for  # noqa: E402

MODEL_KEYS = {"id", "bank_id", "name", "source_query", "content", "tags", "max_tokens", "trigger",
              "last_refreshed_at", "last_memory_seen_at", "last_refresh_failed_at", "last_full_refreshed_at",
              "created_at", "is_knowledge_page", "reflect_response", "is_stale"}
TRIGGER_KEYS = {"mode", "budget", "refresh_after_consolidation", "refresh_cron", "full_refresh_cron",
                "min_refresh_interval_seconds", "fact_types", "exclude_mental_models",
                "exclude_mental_model_ids", "tags_match", "tag_groups", "include_chunks", "recall_max_tokens",
                "recall_chunks_max_tokens", "reflect_search_observations_max_tokens",
                "reflect_search_observations_include_entities", "reflect_search_mental_models_max_tokens",
                "response_schema", "keep_trace"}
TRACE_KEYS = {"recorded_at", "effective_mode", "mode_fallback_reason", "outcome", "tool_calls", "llm_calls",
              "delta_operations", "retraction", "usage", "duration_ms", "warnings"}
BASED_ON = {"world", "experience", "observation", "opinion", "mental-models", "directives"}
PRESERVED = "content_preserved_no_new_facts"
QUERY = "Who leads the design team?"


@pytest.fixture(scope="module")
def hasty():
    """A server whose worker retries a failed operation once, at once."""
    s = Stack(settings={"worker_max_retries": 1, "worker_task_retry_backoff_seconds": 0,
                        "llm_max_retries": 0}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def hasty_bank(hasty):
    hasty.llm.reset()
    yield hasty.bank()
    hasty.llm.reset()


@pytest.fixture(scope="module")
def idle():
    """A server without a worker: what is queued stays."""
    s = Stack(worker=False).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


def sent(call):
    """The body of a recorded model call as text."""
    return json.dumps(call["body"], ensure_ascii=False)


def create(bank, name="Model", source_query=QUERY, **body):
    return ok(bank.post("/mental-models", {"name": name, "source_query": source_query, **body}))


def read(bank, model_id, **query):
    return ok(bank.get(f"/mental-models/{model_id}", **query))


def made_model(bank, **body):
    """A model after its first refresh."""
    made = create(bank, **body)
    bank.wait(made["operation_id"])
    return read(bank, made["mental_model_id"])


def refresh(bank, model_id, body=None):
    """The operation of an explicit refresh, once it has ended."""
    return bank.wait(ok(bank.post(f"/mental-models/{model_id}/refresh", body))["operation_id"])


def history(bank, model_id):
    return ok(bank.get(f"/mental-models/{model_id}/history"))


def versions(bank, model_id):
    return [e["previous_content"] for e in history(bank, model_id) if "kind" not in e]


def document(*blocks):
    """A rule: the closing call answers with these blocks."""
    doc = {"sections": [{"heading": "", "level": 2, "blocks": list(blocks)}]}
    return {"when": {"tool_forced": "done"}, "reply": {"value": {"document": doc, "answer_found": True}}}


def done(**args):
    return {"when": {"tool_forced": "done"}, "reply": {"value": args}}


def refused():
    """A rule: every turn of the loop is refused, which no retry of one call heals."""
    return {"scope": "reflect_tool_call", "reply": {"status": 401, "body": {"error": {"message": "no"}}}}


def filled(bank, text="Carol leads the design team."):
    """A bank with a fact and its observation, quiet."""
    bank.retain(text)
    bank.idle()
    return bank


def times(model):
    return {k: v for k, v in model.items() if k.startswith("last_") or k == "created_at"}


# ---- shape and changes

def test_models_case_01_create_makes_the_bank(bank):
    a = bank.post("/mental-models", {"name": "N", "source_query": "Q?", "content": "ignored", "trigger": {}})
    made = ok(a)
    assert set(made) == {"mental_model_id", "operation_id"}
    assert made["mental_model_id"].startswith("mm-") and len(made["mental_model_id"]) == 35
    assert a.headers["X-Ignored-Params"] == "content"
    model = read(bank, made["mental_model_id"])
    assert model["content"] == ""
    assert ok(bank.get("/mental-models"))["total"] == 1


def test_models_case_02_patch_with_nothing_to_change(bank):
    made = create(bank, tags=["a", "b"])
    path = "/mental-models/" + made["mental_model_id"]
    bank.wait(made["operation_id"])
    before = read(bank, made["mental_model_id"])
    same = {**before, "is_stale": None, "is_knowledge_page": None}
    for body in ({}, {"name": None, "tags": None, "trigger": None, "max_tokens": None, "source_query": None},
                 {"trigger": {}}):
        assert ok(bank.patch(path, body)) == same
    assert ok(bank.patch(path, {"tags": []}))["tags"] == []
    assert read(bank, made["mental_model_id"])["tags"] == []


def test_fault_11_patch_with_nothing_to_change(bank):
    made = create(bank)
    a = bank.patch("/mental-models/" + made["mental_model_id"], {"unknown": 1})
    assert ok(a)["name"] == "Model"
    assert a.headers["X-Ignored-Params"] == "unknown"
    a = bank.patch("/mental-models/missing", {})
    assert (a.status, a.detail) == (404, "Mental model 'missing' not found")


def test_models_case_03_a_trigger_is_merged(bank):
    made = create(bank, trigger={"mode": "delta", "refresh_cron": "0 3 * * *"})
    path = "/mental-models/" + made["mental_model_id"]

    def patch(**trigger):
        return ok(bank.patch(path, {"trigger": trigger}))["trigger"]

    t = patch(keep_trace=True)
    assert (t["mode"], t["refresh_cron"], t["keep_trace"]) == ("delta", "0 3 * * *", True)
    t = patch(refresh_after_consolidation=True)
    assert (t["refresh_cron"], t["refresh_after_consolidation"]) == (None, True)
    assert patch(mode=None)["mode"] == "full"
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        sent = [{"recall_max_tokens": 7}, {"include_chunks": False}, {"keep_trace": False},
                {"full_refresh_cron": "1 1 * * *"}, {"min_refresh_interval_seconds": 9}]
        list(pool.map(lambda one: patch(**one), sent))
    t = read(bank, made["mental_model_id"])["trigger"]
    for one in sent:
        for key, value in one.items():
            assert t[key] == value
    assert t["refresh_after_consolidation"] is True


def test_models_case_04_levels_of_detail(bank):
    filled(bank)
    made = create(bank)
    bank.wait(made["operation_id"])
    [item] = ok(bank.get("/mental-models"))["items"]
    assert set(item) == MODEL_KEYS
    for key in ("content", "source_query", "trigger", "max_tokens", "reflect_response"):
        assert item[key] is None
    assert item["is_stale"] is False and item["is_knowledge_page"] is False
    model = read(bank, made["mental_model_id"])
    assert set(model) == MODEL_KEYS
    assert not [k for k, v in model.items() if v is None and k != "last_refresh_failed_at"]
    assert set(model["trigger"]) == TRIGGER_KEYS
    assert set(model["reflect_response"]["based_on"]) == BASED_ON
    for level in ("metadata", "content"):
        model = read(bank, made["mental_model_id"], detail=level)
        assert model["is_stale"] is None and model["reflect_response"] is None
        assert (model["content"] is None) == (level == "metadata")
        assert model["is_knowledge_page"] is False


def test_fault_13_a_list_shows_no_documents(stack, bank):
    ids = {create(bank, name=f"M{i}")["mental_model_id"] for i in range(20)}
    bank.idle()
    stack.sql("UPDATE mental_models m JOIN banks b USING (bank_no) SET m.content = %s WHERE b.bank_id = %s",
              "x" * 8192 + "\n", bank.id)
    listed = ok(bank.get("/mental-models"))
    assert listed["total"] == 20 and (listed["limit"], listed["offset"]) == (100, 0)
    assert all(i["content"] is None and i["reflect_response"] is None for i in listed["items"])
    items = ok(bank.get("/mental-models", detail="content"))["items"]
    assert all(len(i["content"]) == 8193 and i["reflect_response"] is None for i in items)
    assert bank.get("/mental-models", detail="all").status == 422
    seen = []
    for offset in range(0, 21, 7):
        page = ok(bank.get("/mental-models", limit=7, offset=offset))
        assert page["total"] == 20
        seen += [i["id"] for i in page["items"]]
    assert len(seen) == 20 and set(seen) == ids


def test_models_case_05_paging(stack, bank):
    for i in range(5):
        create(bank, id=f"m{i}")
    bank.idle()
    stack.sql("UPDATE mental_models m JOIN banks b USING (bank_no) SET m.last_refreshed_at = '2026-01-01'"
              " WHERE b.bank_id = %s", bank.id)
    page = ok(bank.get("/mental-models", limit=2, offset=1))
    assert [i["id"] for i in page["items"]] == ["m3", "m2"] and page["total"] == 5
    for bad in ({"limit": 0}, {"limit": 1001}, {"offset": -1}, {"tags_match": "any_strict"}, {"limit": "x"}):
        a = bank.get("/mental-models", **bad)
        assert a.status == 422 and a.detail[0]["loc"] == ["query", *bad]


def test_list_filters_by_tags(bank):
    create(bank, id="none")
    create(bank, id="a", tags=["a"])
    create(bank, id="ab", tags=["b", "a"])

    def ids(**query):
        return {i["id"] for i in ok(bank.get("/mental-models", **query))["items"]}

    assert ids() == {"none", "a", "ab"}
    assert ids(tags=["b", "z"]) == {"ab"}
    assert ids(tags=["a", "b"], tags_match="all") == {"ab"}
    assert ids(tags=["a"], tags_match="exact") == {"a"}
    assert ids(tags=["a", "b"], tags_match="exact") == {"ab"}
    assert ids(tags_match="exact") == {"none", "a", "ab"}
    assert ids(exclude_knowledge_pages=True) == {"none", "a", "ab"}


@pytest.mark.parametrize("trigger,field", [
    ({"fact_types": []}, "fact_types"),
    ({"refresh_after_consolidation": True, "refresh_cron": "0 3 * * *"}, None),
    ({"refresh_cron": "61 * * * *"}, "refresh_cron"),
    ({"full_refresh_cron": "61 * * * *"}, "full_refresh_cron"),
    ({"response_schema": {"type": "object"}}, "response_schema"),
    ({"tag_groups": [{"tags": ["a"], "resolve": "fuzzy"}]}, "tag_groups"),
    ({"budget": "max"}, "budget"),
    ({"mode": "fast"}, "mode"),
    ({"min_refresh_interval_seconds": -1}, "min_refresh_interval_seconds"),
])
def test_models_case_06_bad_triggers(bank, trigger, field):
    a = bank.post("/mental-models", {"name": "N", "source_query": "Q", "trigger": trigger})
    assert a.status == 422
    assert a.detail[0]["loc"][:3] == ["body", "trigger"] + ([field] if field else [])
    assert bank.get("/mental-models").status == 404
    made = create(bank, trigger={"refresh_cron": "  ", "mode": "delta"})
    before = read(bank, made["mental_model_id"])["trigger"]
    assert before["refresh_cron"] is None
    assert bank.patch("/mental-models/" + made["mental_model_id"], {"trigger": trigger}).status == 422
    assert read(bank, made["mental_model_id"])["trigger"] == before


def test_models_case_07_limits_and_ids(stack, bank):
    for n in (255, 8193, None, "many"):
        assert bank.post("/mental-models", {"name": "N", "source_query": "Q", "max_tokens": n}).status == 422
    for n in (256, 8192):
        made = create(bank, max_tokens=n)
        assert read(bank, made["mental_model_id"])["max_tokens"] == n
        path = "/mental-models/" + made["mental_model_id"]
        assert bank.patch(path, {"max_tokens": 255}).status == 422
    other = stack.bank()
    create(bank, id="team")
    create(other, id="team")
    a = bank.post("/mental-models", {"name": "N", "source_query": "Q", "id": "team"})
    assert (a.status, a.detail) == (409, f"Mental model 'team' already exists in bank '{bank.id}'")


def test_fault_64_an_id_that_exists(bank):
    create(bank, id="team", name="First", trigger={"keep_trace": True})
    bank.idle()
    operations = ok(bank.get("/operations"))["total"]
    assert bank.post("/mental-models", {"id": "team", "name": "Second", "source_query": "Q"}).status == 409
    model = read(bank, "team")
    assert model["name"] == "First" and model["trigger"]["keep_trace"] is True
    assert ok(bank.get("/operations"))["total"] == operations
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda i: bank.post("/mental-models", {
            "id": "many", "name": f"N{i}", "source_query": "Q"}), range(10)))
    assert sorted(a.status for a in answers) == [200] + [409] * 9
    assert all(isinstance(a.detail, str) for a in answers if a.status == 409)
    bank.idle()
    assert ok(bank.get("/operations"))["total"] == operations + 1
    for generated in ("", None):
        assert create(bank, id=generated)["mental_model_id"].startswith("mm-")
    for bad in ("a/b", "x" * 300, "x" * 65, "-a", "Team", "a_b", "a b", "ä", 5):
        a = bank.post("/mental-models", {"id": bad, "name": "N", "source_query": "Q"})
        assert a.status == 422 and a.detail[0]["loc"] == ["body", "id"]


@pytest.mark.parametrize("model_id", ["a/b", "50%", "a b", "a+b", "мой проект", "x::y", "a%2Fb", "?", "#", "..", "é"])
def test_fault_58_awkward_model_ids(bank, model_id):
    a = bank.post("/mental-models", {"id": model_id, "name": "N", "source_query": "Q"})
    assert a.status == 422 and a.detail[0]["loc"] == ["body", "id"]
    create(bank, id="kept")
    path = "/mental-models/" + urllib.parse.quote(model_id, safe="")
    assert bank.get(path).status == 404
    assert bank.delete(path).status == 404
    assert read(bank, "kept")["id"] == "kept"
    for broken in ("%zz", "%ff", "%00", "kept%00"):
        assert bank.get("/mental-models/" + broken).status == 400


def test_fault_58_awkward_bank_ids(stack, llm):
    banks = [stack.bank(i + stack.bank().id) for i in ("a/b", "50%", "a b", "a+b", "мой проект", "x::y", "a%2Fb",
                                                       "?", "#", "é", "e\u0301")]
    for b in banks:
        create(b, id="one", name=b.id)
    for b in banks:
        page = ok(b.get("/mental-models"))
        assert [(i["name"], i["bank_id"]) for i in page["items"]] == [(b.id, b.id)]
        assert ok(b.delete("/mental-models/one")) == {"status": "deleted"}


def test_fault_22_blank_texts_are_refused(bank, llm):
    for bad in ({"name": " \n", "source_query": "Q"}, {"name": "N", "source_query": ""},
                {"name": "N", "source_query": "\t"}, {"name": "N"}, {"source_query": "Q"},
                {"name": "x" * 257, "source_query": "Q"}, {"name": 5, "source_query": "Q"}):
        assert bank.post("/mental-models", bad).status == 422
    assert bank.get("/mental-models").status == 404
    made = create(bank, name="x" * 256, source_query="Where do quokkas live?")
    path = "/mental-models/" + made["mental_model_id"]
    for bad in ({"name": "  "}, {"source_query": " "}, {"name": "x" * 257}, {"tags": [""]}, {"tags": [1]}):
        assert bank.patch(path, bad).status == 422
    assert read(bank, made["mental_model_id"])["name"] == "x" * 256
    bank.idle()
    assert not [c for c in llm.calls() if "quokkas" in sent(c)]


def test_fault_59_four_byte_characters(stack, bank):
    text = "👨‍👩‍👧‍👦 🎉 𠮷 e\u0301 שלום ‏مرحبا"
    made = create(bank, name=text, source_query=text + "?", tags=[text])
    bank.wait(made["operation_id"])

    def check():
        model = read(bank, made["mental_model_id"])
        assert (model["name"], model["source_query"], model["tags"]) == (text, text + "?", [text])
        assert ok(bank.get("/mental-models", tags=text))["total"] == 1

    check()
    stack.restart("mental-models")
    wait_for("the program", lambda: bank.get("/mental-models").status == 200)
    check()
    ok(bank.patch("/mental-models/" + made["mental_model_id"], {"name": "🎉" * 256}))
    assert read(bank, made["mental_model_id"])["name"] == "🎉" * 256
    assert bank.patch("/mental-models/" + made["mental_model_id"], {"name": "🎉" * 257}).status == 422


def test_models_case_57_unknown_bank(stack, bank):
    a = bank.get("/mental-models")
    assert (a.status, a.detail) == (404, f"Bank '{bank.id}' not found")
    for method, path, text in (("GET", "", "Mental model 'x' not found"), ("PATCH", "", "Mental model 'x' not found"),
                               ("DELETE", "", "Mental model 'x' not found"),
                               ("POST", "/clear", "Mental model 'x' not found"),
                               ("GET", "/history", "Mental model 'x' not found"),
                               ("POST", "/refresh", f"Mental model x not found in bank {bank.id}")):
        a = bank.call(method, "/mental-models/x" + path, {} if method == "PATCH" else None)
        assert (a.status, a.detail) == (404, text)
    assert stack.sql("SELECT COUNT(*) n FROM banks WHERE bank_id = %s", bank.id) == [{"n": 0}]


def test_etag_changes_with_the_body(bank):
    filled(bank)
    made = create(bank)
    bank.wait(made["operation_id"])
    path = "/mental-models/" + made["mental_model_id"]
    a = bank.get(path)
    tag = a.headers["ETag"]
    b = bank.get(path, headers={"If-None-Match": tag})
    assert b.status == 304 and b.body == b"" and b.headers["ETag"] == tag
    assert bank.get(path, headers={"If-None-Match": "W/" + tag}).status == 304
    # a write elsewhere turns only is_stale
    bank.retain("Bob paints.")
    c = bank.get(path, headers={"If-None-Match": tag})
    assert c.status == 200 and c.headers["ETag"] != tag and c.json()["is_stale"] is True


def test_delete_takes_the_history_along(bank):
    filled(bank)
    made = create(bank, id="m")
    bank.wait(made["operation_id"])
    assert versions(bank, "m") == [""]
    assert ok(bank.delete("/mental-models/m")) == {"status": "deleted"}
    assert bank.get("/mental-models/m").status == 404
    assert bank.get("/mental-models/m/history").status == 404
    create(bank, id="m")
    assert history(bank, "m") == []


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


# ---- queue

def test_models_case_21_explicit_refreshes_fold(idle):
    bank = idle.bank()
    made = create(bank)
    for _ in range(5):
        again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))
        assert again == {"operation_id": made["operation_id"], "status": "queued"}
    assert ok(bank.get("/operations"))["total"] == 1


def test_models_case_22_parallel_submits_are_one_row(idle):
    bank = idle.bank()
    made = create(bank)
    idle.sql("UPDATE async_operations SET status = 'completed' WHERE operation_id = %s", made["operation_id"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))
                           ["operation_id"], range(8)))
    assert len(ids) == 1 and made["operation_id"] not in ids
    assert ok(bank.get("/operations", status="pending"))["total"] == 1


def test_models_case_23_a_running_one_is_not_reused(bank, llm):
    filled(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"delay": 1.5}})
    made = create(bank)
    wait_for("the first call", lambda: llm.calls("reflect_tool_call"))
    second = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    third = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    assert second != made["operation_id"] and second == third
    assert bank.operation(second)["status"] == "pending"
    assert bank.wait(made["operation_id"])["status"] == "completed"
    assert bank.wait(second)["status"] == "completed"


def test_models_case_24_two_waiting_refreshes_never_run_together(own_stack):
    s = own_stack()
    bank = filled(s.bank())
    model = made_model(bank)
    s.processes["worker"].stop()
    first = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    second = first[:-4] + ("ffff" if not first.endswith("ffff") else "fffe")
    s.sql("INSERT INTO async_operations (operation_id, bank_no, operation_type, status, task_payload,"
          " result_metadata, subject_id, created_at, updated_at) SELECT %s, bank_no, operation_type, status,"
          " task_payload, result_metadata, subject_id, created_at + INTERVAL 1 SECOND, updated_at"
          " FROM async_operations WHERE operation_id = %s", second, first)
    s.llm.script({"when": {"tool_forced": "recall"}, "reply": {"delay": 0.7}})
    s.start_worker("worker")
    s.start_worker("worker-2")
    seen = set()

    def ended():
        states = {i: bank.operation(i)["status"] for i in (first, second)}
        assert list(states.values()).count("processing") <= 1
        seen.add(tuple(states.values()))
        return all(v == "completed" for v in states.values())

    wait_for("both refreshes", ended, 30, 0.02)
    assert ("processing", "pending") in seen and ("completed", "processing") in seen
    assert bank.operation(first)["completed_at"] < bank.operation(second)["completed_at"]


def test_a_cancelled_refresh_is_no_failure(bank, llm):
    filled(bank)
    model = made_model(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"hang": True}})
    operation_id = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    wait_for("the call that hangs", lambda: [c for c in llm.calls("reflect_tool_call") if c["rule"] is not None])
    ok(bank.delete(f"/operations/{operation_id}"))
    assert bank.wait(operation_id)["status"] == "cancelled"
    wait_for("the end of the call", lambda: all(c["ended"] for c in llm.calls("reflect_tool_call")), 20)
    assert {**read(bank, model["id"]), "is_stale": None} == {**model, "is_stale": None}
    assert versions(bank, model["id"]) == [""] and len(history(bank, model["id"])) == 1
    # the subject is free again
    assert refresh(bank, model["id"])["status"] == "completed"


def test_a_used_up_quota_parks_the_refresh(hasty, hasty_bank):
    bank = filled(hasty_bank)
    model = made_model(bank)
    hasty.llm.script({"scope": "reflect_tool_call", "reply": {
        "status": 429, "headers": {"Retry-After": "3600"}, "body": {"error": {"message": "quota exceeded"}}}})
    operation_id = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    op = wait_for("the park", lambda: (lambda o: o["next_retry_at"] and o)(bank.operation(operation_id)))
    ahead = datetime.fromisoformat(op["next_retry_at"]).timestamp() - time.time()
    assert op["status"] == "pending" and op["retry_count"] == 0 and 3500 < ahead < 3700
    assert len(history(bank, model["id"])) == 1
    assert read(bank, model["id"])["last_refresh_failed_at"] is None


def make_automatic(stack, bank, model_id):
    """Queue a refresh as a trigger does; the row's id."""
    operation_id = ok(bank.post(f"/mental-models/{model_id}/refresh"))["operation_id"]
    stack.sql("UPDATE async_operations SET task_payload = JSON_SET(task_payload, '$._automatic', true)"
              " WHERE operation_id = %s AND status = 'pending'", operation_id)
    return operation_id


@pytest.mark.parametrize("own,of_bank,parks", [(1800, None, True), (None, 1800, True), (0, 1800, False),
                                               (None, None, False)])
def test_models_case_25_automatic_refreshes_keep_their_distance(own_stack, own, of_bank, parks):
    settings = {} if of_bank is None else {"mental_model_min_refresh_interval_seconds": of_bank}
    s = own_stack(settings=settings, worker=False)
    bank = s.bank()
    made = create(bank, trigger={"min_refresh_interval_seconds": own})
    operation_id = make_automatic(s, bank, made["mental_model_id"])
    assert operation_id == made["operation_id"]
    s.sql("UPDATE mental_models SET last_refreshed_at = UTC_TIMESTAMP(6) - INTERVAL 60 SECOND")
    s.start_worker()
    if not parks:
        assert bank.wait(operation_id)["status"] == "completed"
        return
    op = wait_for("the park", lambda: (lambda o: o["next_retry_at"] and o)(bank.operation(operation_id)))
    ahead = datetime.fromisoformat(op["next_retry_at"]).timestamp() - time.time()
    assert 28 * 60 < ahead < 30 * 60
    assert op["status"] == "pending" and op["retry_count"] == 0 and op["error_message"] is None
    assert history(bank, made["mental_model_id"]) == []
    assert read(bank, made["mental_model_id"])["last_refresh_failed_at"] is None
    # by hand: the parked one runs now
    again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    assert again == operation_id
    assert bank.wait(operation_id)["status"] == "completed"


def test_models_case_26_by_hand_onto_a_parked_one(idle):
    bank = idle.bank()
    made = create(bank)
    make_automatic(idle, bank, made["mental_model_id"])
    idle.sql("UPDATE async_operations SET next_retry_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE operation_id = %s",
             made["operation_id"])
    assert bank.operation(made["operation_id"])["next_retry_at"] is not None
    again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    op = bank.operation(again, include_payload=True)
    assert again == made["operation_id"] and op["next_retry_at"] is None
    assert "_automatic" not in op["task_payload"]


def test_models_case_27_only_a_success_lifts_the_pause(hasty, hasty_bank):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank)
    llm.script(refused())
    refresh(bank, model["id"])
    stamp = read(bank, model["id"])["last_refresh_failed_at"]
    assert stamp
    ok(bank.patch(f"/mental-models/{model['id']}", {"name": "Renamed", "trigger": {"mode": "delta"}}))
    ok(bank.post(f"/mental-models/{model['id']}/clear"))
    assert read(bank, model["id"])["last_refresh_failed_at"] == stamp
    llm.reset()
    assert refresh(bank, model["id"])["status"] == "completed"
    assert read(bank, model["id"])["last_refresh_failed_at"] is None


def test_models_case_55_full_mode_once(idle):
    bank = idle.bank()
    made = create(bank, trigger={"mode": "delta"})
    path = f"/mental-models/{made['mental_model_id']}/refresh"
    for body in (None, {}, {"mode": None}):
        assert ok(bank.post(path, body))["operation_id"] == made["operation_id"]
        assert "_mode" not in bank.operation(made["operation_id"], include_payload=True)["task_payload"]
    for bad in ({"mode": "delta"}, {"mode": "fast"}, {"mode": 1}):
        a = bank.post(path, bad)
        assert a.status == 422 and a.detail[0]["loc"] == ["body", "mode"]
    assert ok(bank.post(path, {"mode": "full"}))["operation_id"] == made["operation_id"]
    assert bank.operation(made["operation_id"], include_payload=True)["task_payload"]["_mode"] == "full"
    assert read(bank, made["mental_model_id"])["trigger"]["mode"] == "delta"


# ---- look-up by reflect

def models_found(bank, query):
    answer = ok(bank.post("/reflect", {"query": query, "include": {"tool_calls": {}}}))
    [call] = [c for c in answer["trace"]["tool_calls"] if c["tool"] == "search_mental_models"]
    return call["output"]["mental_models"]


def test_models_case_62_search_follows_names_and_texts(bank, llm):
    filled(bank)
    llm.script(document("Quarterly budget figures of the observatory."))
    made_model(bank, id="first", name="Alpha")
    llm.reset()
    llm.script(document("Recipes for sourdough bread."))
    made_model(bank, id="second", name="Beta")
    llm.reset()
    assert models_found(bank, "sourdough bread recipes")[0]["id"] == "second"
    ok(bank.patch("/mental-models/first", {"name": "Zebra stripes migration"}))
    found = models_found(bank, "Zebra stripes migration")
    assert found[0]["id"] == "first" and found[0]["name"] == "Zebra stripes migration"
    before = {m["id"]: m["relevance"] for m in models_found(bank, "sourdough bread recipes")}
    ok(bank.post("/mental-models/second/clear"))
    after = {m["id"]: m["relevance"] for m in models_found(bank, "sourdough bread recipes")}
    assert after["second"] < before["second"] / 2
