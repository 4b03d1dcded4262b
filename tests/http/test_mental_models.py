"""Mental models over HTTP: shape and changes; contract mental-models, cases 1-8, 57."""
import concurrent.futures
import urllib.parse

import pytest

from model_calls import (MODEL_KEYS, TRIGGER_KEYS, BASED_ON, idle, sent, create, read, refresh, history,
                         versions, filled)  # noqa: E402,F401
from stack import ok, wait_for  # noqa: E402

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
