"""Banks, their configuration, stats and directives (contract banks 3, 4, 5, 7)."""
import concurrent.futures
import json
import os
import time

import pytest

from stack import ok, program_path, quote, wait_for

EMOJI = "👨‍👩‍👧‍👦 𠮷 é שלום"


def bank_ids(api, **query):
    return [b["bank_id"] for b in ok(api.get("/v1/default/banks", limit=1000, **query))["banks"]]


def overrides(bank):
    return ok(bank.get("/config"))["overrides"]


def patch(bank, **updates):
    return bank.patch("/config", {"updates": updates})


# unknown banks

@pytest.mark.parametrize("method, path, body", [
    ("GET", "/config", None), ("GET", "/profile", None), ("GET", "/stats", None), ("GET", "/operations", None),
    ("GET", "/directives", None), ("GET", "/documents", None), ("GET", "/tags", None),
    ("GET", "/entities", None), ("GET", "/memories/list", None), ("GET", "/mental-models", None),
    ("POST", "/memories/recall", {"query": "who"}), ("PATCH", "", {"name": "x"}),
    ("POST", "/directives", {"name": "n", "content": "c"}),
])
def test_banks_case_01_unknown_bank_is_404_and_not_made(bank, method, path, body):
    before = bank_ids(bank.api)
    a = bank.call(method, path, body)
    assert a.status == 404, a
    assert a.json() == {"detail": f"Bank '{bank.id}' not found"}
    assert bank_ids(bank.api) == before


def test_banks_case_02_put_makes_a_bank_with_defaults(bank):
    made = ok(bank.put("", {}))
    assert made == {"bank_id": bank.id, "name": bank.id, "mission": "", "background": "",
                    "disposition": {"skepticism": 3, "literalism": 3, "empathy": 3}}
    assert ok(bank.get("/profile")) == made
    for a in (bank.put("/profile", {"disposition": {"skepticism": 1, "literalism": 2, "empathy": 3}}),
              bank.post("/background", {"content": "text"})):
        assert a.status == 410 and "/config" in a.detail
    assert bank.put("/profile", {"disposition": {"skepticism": 1}}).status == 422
    assert bank.post("/background", {}).status == 422


def test_banks_case_03_rejected_changes_leave_no_bank(bank):
    assert bank.patch("", {"retain_chunk_size": 0}).status == 404
    a = bank.put("", {"retain_chunk_size": 0})
    assert a.status == 400 and "retain_chunk_size" in a.detail
    assert bank.get("/profile").status == 404
    assert bank.id not in bank_ids(bank.api)


def test_banks_case_04_first_mission_and_single_traits_win(bank):
    a = ok(bank.put("", {"mission": "x", "reflect_mission": "y", "background": "z", "disposition_empathy": 5,
                         "disposition": {"skepticism": 1, "literalism": 2, "empathy": 3}}))
    assert a["mission"] == a["background"] == "y"
    assert a["disposition"] == {"skepticism": 1, "literalism": 2, "empathy": 5}
    assert ok(bank.put("", {"mission": "", "reflect_mission": ""}))["mission"] == "y"
    assert ok(bank.put("", {"reflect_mission": "", "mission": "m"}))["mission"] == "m"
    assert ok(bank.put("", {"background": ""}))["mission"] == ""
    assert ok(bank.put("", {"name": None}))["disposition"]["empathy"] == 5


def test_banks_case_05_ids_that_cannot_be_made(stack, api):
    def path(raw):
        return "/v1/default/banks/" + raw

    good = "x" * 186 + os.urandom(3).hex()
    assert len(good) == 192
    assert api.put(path(good), {}).status == 200
    for raw in (good + "y", quote("€" * 65), "_x", "a%09b", "a%C2%85b"):
        assert api.put(path(raw), {}).status == 400, raw
        assert api.patch(path(raw) + "/config", {"updates": {}}).status == 400, raw
        assert api.get(path(raw) + "/config").status == 404, raw
        assert api.delete(path(raw)).json()["deleted_count"] == 0
    for raw in ("%00", "a%00b", "%ff", "%ed%a0%80", "a%zz"):
        for a in (api.put(path(raw), {}), api.get(path(raw) + "/config")):
            assert a.status == 400 and isinstance(a.detail, str), raw
    short = "ab" + os.urandom(4).hex()
    assert api.put(path(short), {}).status == 200
    assert api.get(path("ab%07" + short[2:]) + "/profile").status == 404
    assert api.delete(path("ab%07" + short[2:])).json()["deleted_count"] == 0
    assert api.get(path(short) + "/profile").status == 200


def test_banks_case_06_limits_of_the_list(stack, api, bank):
    bank.make()
    total = ok(api.get("/v1/default/banks"))["total"]
    empty = ok(api.get("/v1/default/banks", limit=0))
    assert empty["banks"] == [] and empty["total"] == total >= 1
    a = api.get("/v1/default/banks", limit=-1)
    assert a.status == 422 and a.detail[0]["loc"] == ["query", "limit"]
    assert ok(api.get("/v1/default/banks", limit=5000))["limit"] == 1000
    past = ok(api.get("/v1/default/banks", offset=100000))
    assert past["banks"] == [] and past["total"] == total and past["offset"] == 100000


def test_list_is_sorted_and_filtered_literally(stack, api):
    mark = os.urandom(4).hex()
    names = [f"{mark}-a%b", f"{mark}-A_c", f"{mark}-c"]
    for n in names:
        assert api.put("/v1/default/banks/" + quote(n), {"name": f"Bank Ü {n[-1]}"}).status == 200
    assert bank_ids(api, q=mark) == names[::-1]
    assert bank_ids(api, q=mark.upper() + "-a") == [names[1], names[0]]
    assert bank_ids(api, q=mark + "-a%") == [names[0]]
    assert bank_ids(api, q=mark + "-a_") == [names[1]]
    assert set(bank_ids(api, q="bank ü")) >= set(names)
    row = ok(api.get("/v1/default/banks", q=names[2]))["banks"][0]
    assert row["fact_count"] == 0 and row["last_document_at"] is None and row["last_write_at"] is None
    assert row["display_alias"] is None and row["matched_aliases"] == []
    assert row["created_at"] <= row["updated_at"]


# configuration

def test_banks_case_08_keys_are_normalised(bank):
    for key in ("HINDSIGHT_API_RETAIN_MISSION", "RETAIN_MISSION", "retain_mission", "Retain_Mission"):
        a = ok(bank.patch("/config", {"updates": {key: key}}))
        assert a["overrides"] == {"retain_mission": key}
    assert patch(bank, hindsight_api_retain_mission="x").status == 400


def test_banks_case_09_null_clears(bank):
    ok(patch(bank, retain_chunk_size=100, retain_mission="m"))
    a = ok(patch(bank, retain_chunk_size=None))
    assert a["overrides"] == {"retain_mission": "m"}
    assert a["config"]["retain_chunk_size"] == 3000
    assert ok(bank.get("/config")) == a
    assert ok(bank.delete("/config"))["overrides"] == {}
    assert ok(bank.get("/config"))["config"]["retain_mission"] is None


@pytest.mark.parametrize("updates, status", [
    ({"observations_mission": {}}, 400), ({"retain_chunk_size": True}, 400),
    ({"retain_chunk_size": "3000"}, 400), ({"recall_budget_adaptive_low": 1}, 200),
    ({"retain_chunk_size": 1.5}, 400), ({"enable_observations": 1}, 400),
])
def test_banks_case_10_types_are_strict(bank, updates, status):
    bank.make()
    a = patch(bank, **updates)
    assert a.status == status, a
    if status == 400:
        assert next(iter(updates)) in a.detail
        assert overrides(bank) == {}


@pytest.mark.parametrize("key, word", [("llm_api_key", "credential"), ("port", "server"), ("foo", "nknown")])
def test_banks_case_11_what_cannot_be_overridden(bank, key, word):
    bank.make()
    a = patch(bank, **{key: "x"})
    assert a.status == 400 and key in a.detail and word in a.detail
    shown = ok(bank.get("/config"))
    assert key not in shown["config"] and key not in shown["overrides"]


def test_config_never_shows_secrets(stack, bank):
    bank.make()
    text = bank.get("/config").body.decode()
    for secret in ("test-key-123", stack.llm.base_url, str(stack.run)):
        assert secret not in text
    for ending in ("_api_key", "_base_url", "_password", "_secret"):
        assert not [k for k in json.loads(text)["config"] if k.endswith(ending)]


def test_banks_case_12_rules_hold_against_what_is_stored(bank):
    ok(patch(bank, recall_budget_min=500))
    assert patch(bank, recall_budget_max=100).status == 400
    assert patch(bank, recall_budget_min=None).status == 400
    ok(patch(bank, recall_budget_max=1500))
    for _ in range(5):
        ok(bank.delete("/config"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            got = [f.result().status for f in [pool.submit(patch, bank, recall_budget_min=900),
                                               pool.submit(patch, bank, recall_budget_max=800)]]
        assert sorted(got) == [200, 400]
        assert len(overrides(bank)) == 1


def test_concurrent_patches_to_other_keys_both_survive(bank):
    bank.make()
    keys = ["retain_mission", "observations_mission", "reflect_mission", "retain_custom_instructions"]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda k: patch(bank, **{k: k}).status, keys))
    assert got == [200] * 4
    assert overrides(bank) == {k: k for k in keys}


@pytest.mark.parametrize("value, status", [(0, 400), (6, 400), (2.5, 400), (True, 400), ("3", 400), (5, 200)])
def test_banks_case_13_traits(bank, value, status):
    bank.make()
    assert patch(bank, disposition_empathy=value).status == status


def test_banks_case_13_put_bank_coerces(bank):
    assert ok(bank.put("", {"disposition_empathy": "3", "disposition_literalism": 4.0}))[
        "disposition"]["literalism"] == 4
    for bad in (0, 6, 2.5, "x"):
        assert bank.put("", {"disposition_empathy": bad}).status == 422


@pytest.mark.parametrize("updates", [
    {"retain_strategies": {"": {}}}, {"retain_strategies": {"a": 1}},
    {"retain_strategies": {"a": {"retain_chunk_size": None}}}, {"reflect_default_options": {"foo": 1}},
    {"knowledge_page_default_trigger": {"refresh_cron": "nonsense"}}, {"default_observation_scopes": "all"},
])
def test_banks_case_14_nested_values(bank, updates):
    bank.make()
    a = patch(bank, **updates)
    assert a.status == 400 and isinstance(a.detail, str)
    assert overrides(bank) == {}


def test_fault_46_a_patch_that_says_200_has_stored_it(bank):
    assert bank.get("/config").status == 404
    assert bank.get("/profile").status == 404
    a = ok(patch(bank, enable_observations=False))
    assert a["config"]["enable_observations"] is False and a["overrides"] == {"enable_observations": False}
    assert ok(bank.get("/config")) == a
    assert bank.id in bank_ids(bank.api)


def test_empty_updates_make_the_bank_and_change_nothing(bank):
    assert ok(patch(bank))["overrides"] == {}
    row = ok(bank.api.get("/v1/default/banks", q=bank.id))["banks"][0]
    assert row["created_at"] == row["updated_at"]
    assert bank.patch("/config", {}).status == 422
    assert bank.patch("/config", {"updates": []}).status == 422
    ok(patch(bank, retain_mission="m"))
    assert ok(bank.api.get("/v1/default/banks", q=bank.id))["banks"][0]["updated_at"] > row["updated_at"]


def test_delete_config_of_a_missing_bank_answers_defaults(bank):
    a = ok(bank.delete("/config"))
    assert a["bank_id"] == bank.id and a["overrides"] == {} and a["config"]["retain_chunk_size"] == 3000
    assert bank.get("/config").status == 404


def test_config_carries_an_etag(bank):
    bank.make()
    first = bank.get("/config")
    tag = first.headers["ETag"]
    same = bank.get("/config", headers={"If-None-Match": tag})
    assert same.status == 304 and same.body == b"" and same.headers["ETag"] == tag
    ok(patch(bank, retain_mission="new"))
    changed = bank.get("/config", headers={"If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag


# ids and text

def test_banks_case_42_ids_are_compared_byte_by_byte(stack, api):
    mark = os.urandom(4).hex()
    names = [f"{mark} Ä b", f"{mark}A", f"{mark}a", f"{mark}a "]
    for n in names:
        ok(api.put("/v1/default/banks/" + quote(n), {"name": "name of " + n}))
    for n in names:
        assert ok(api.get("/v1/default/banks/" + quote(n) + "/profile"))["name"] == "name of " + n
    assert sorted(bank_ids(api, q=mark)) == sorted(names)


def test_fault_58_bank_ids_with_awkward_characters(stack, api):
    names = ["a/b", "50%", "a b", "a+b", "мой проект", "x::y", "a%2Fb", "?", "#", "..", "\u00e9", "e\u0301", ".",
             "memories", "a//b", "'\"\\;--", "a,b", "config/"]
    for n in names:
        ok(api.put("/v1/default/banks/" + quote(n), {"reflect_mission": "of " + n}))
    listed = bank_ids(api)
    for n in names:
        path = "/v1/default/banks/" + quote(n)
        assert listed.count(n) == 1
        got = ok(api.get(path + "/profile"))
        assert got["bank_id"] == n and got["mission"] == "of " + n
        d = ok(api.post(path + "/directives", {"name": "d", "content": n}))
        assert [i["id"] for i in ok(api.get(path + "/directives"))["items"]] == [d["id"]]
    for n in names:
        assert ok(api.delete("/v1/default/banks/" + quote(n)))["success"] is True
        assert api.get("/v1/default/banks/" + quote(n) + "/profile").status == 404
    assert not set(names) & set(bank_ids(api))


def test_fault_59_four_byte_characters(stack, bank):
    ok(bank.put("", {"name": EMOJI, "reflect_mission": EMOJI}))
    d = ok(bank.post("/directives", {"name": EMOJI, "content": EMOJI, "tags": [EMOJI]}))
    stack.restart("banks")
    wait_for("banks", lambda: bank.api.get("/health").status == 200)
    got = ok(bank.get("/profile"))
    assert got["name"] == EMOJI and got["mission"] == EMOJI
    assert ok(bank.get(f"/directives/{d['id']}")) == d
    assert d["name"] == d["content"] == EMOJI and d["tags"] == [EMOJI]
    assert ok(bank.get("/directives", tags=EMOJI))["total"] == 1
    assert bank.id in bank_ids(bank.api, q="👨‍👩‍👧‍👦 𠮷")
    missing = bank.api.get("/v1/default/banks/" + quote(EMOJI) + "/config")
    assert missing.detail == f"Bank '{EMOJI}' not found"


def test_control_characters_leave_text_and_the_request_goes_on(bank):
    a = ok(bank.put("", {"name": "a\u0007b\tc\nd\u007f", "reflect_mission": "x\ud800y"}))
    assert a["name"] == "ab\tc\nd" and a["mission"] == "xy"


# stats, delete

def test_banks_case_52_last_write_is_live(bank):
    bank.make()
    # nothing but the retain may write here
    ok(bank.patch("/config", {"updates": {"enable_auto_consolidation": False}}))
    empty = ok(bank.get("/stats"))
    assert empty["total_nodes"] == 0 and empty["last_memory_write_at"] is None
    assert empty["links_by_fact_type"] == {} and empty["links_breakdown"] == {}
    bank.retain("Ada wrote the first program in 1843.")
    newest = max(m["updated_at"] for m in bank.memories())
    cached = ok(bank.get("/stats"))
    assert cached["last_memory_write_at"] == newest
    assert cached["total_nodes"] == 0
    fresh = ok(bank.get("/stats", refresh=True))
    assert fresh["last_memory_write_at"] == newest
    assert fresh["total_nodes"] == len(bank.memories()) == sum(fresh["nodes_by_fact_type"].values())
    assert ok(bank.get("/stats"))["total_nodes"] == fresh["total_nodes"]
    assert fresh["total_documents"] == 1


def test_deleted_bank_is_gone_and_its_name_is_free(stack, bank):
    ok(bank.put("", {"name": "old"}))
    bank.retain("Grace found a moth in the relay.")
    n = len(bank.memories())
    ok(bank.post("/directives", {"name": "n", "content": "c"}))
    gone = ok(bank.delete(""))
    assert gone["success"] is True and gone["deleted_count"] >= n + 1
    assert gone["message"] == f"Bank '{bank.id}' and all associated data deleted successfully"
    assert bank.get("/profile").status == 404
    assert bank.id not in bank_ids(bank.api)
    assert ok(bank.put("", {}))["name"] == bank.id
    assert ok(bank.get("/stats"))["total_nodes"] == 0
    assert ok(bank.get("/directives"))["total"] == 0
    assert ok(bank.delete(""))["deleted_count"] == 0
    assert ok(bank.delete(""))["deleted_count"] == 0


# directives

def make(bank, name, **more):
    return ok(bank.post("/directives", {"name": name, "content": "c", **more}))


def names(bank, **query):
    return [d["name"] for d in ok(bank.get("/directives", **query))["items"]]


def test_banks_case_16_tag_filters_keep_untagged_directives(bank):
    bank.make()
    make(bank, "none")
    make(bank, "a", tags=["a"])
    make(bank, "ab", tags=["b", "a"])
    make(bank, "c", tags=["c"])
    make(bank, "off", tags=["a"], is_active=False)
    assert set(names(bank, tags="a")) == {"none", "a", "ab"}
    assert set(names(bank, tags=["a", "b"], tags_match="all")) == {"none", "ab"}
    assert set(names(bank, tags=["a", "b"], tags_match="exact")) == {"none", "ab"}
    assert set(names(bank, tags=["a"], tags_match="exact")) == {"none", "a"}
    assert set(names(bank, tags="A")) == {"none"}
    assert set(names(bank)) == {"none", "a", "ab", "c"}
    assert set(names(bank, active_only=False, tags="a")) == {"none", "a", "ab", "off"}
    a = bank.get("/directives", tags="a", tags_match="all_strict")
    assert a.status == 422 and a.detail[0]["type"] == "literal_error"


def test_banks_case_46_null_tags(bank):
    bank.make()
    a = bank.post("/directives", {"name": "n", "content": "c", "tags": None})
    assert a.status == 422 and a.detail[0]["loc"] == ["body", "tags"] and a.detail[0]["type"] == "list_type"
    d = make(bank, "n", tags=["x"])
    assert ok(bank.patch(f"/directives/{d['id']}", {"tags": None}))["tags"] == ["x"]
    assert ok(bank.patch(f"/directives/{d['id']}", {"tags": []}))["tags"] == []
    assert names(bank, tags="other") == ["n"]


def test_directives_are_made_changed_and_deleted(bank):
    bank.make()
    d = make(bank, "first", priority="7")
    assert d["bank_id"] == bank.id and d["priority"] == 7 and d["is_active"] is True and d["tags"] == []
    assert ok(bank.get(f"/directives/{d['id']}")) == d
    changed = ok(bank.patch(f"/directives/{d['id']}", {"content": "new", "is_active": False}))
    assert changed["content"] == "new" and changed["name"] == "first" and changed["is_active"] is False
    touched = ok(bank.patch(f"/directives/{d['id']}", {}))
    assert touched["updated_at"] > changed["updated_at"] and touched["content"] == "new"
    assert touched["created_at"] == d["created_at"]
    assert ok(bank.post("/directives", {"name": "", "content": ""}))["name"] == ""
    assert ok(bank.delete(f"/directives/{d['id']}")) == {"status": "deleted"}
    for a in (bank.delete(f"/directives/{d['id']}"), bank.get(f"/directives/{d['id']}"),
              bank.patch(f"/directives/{d['id']}", {})):
        assert a.status == 404 and a.detail == f"Directive '{d['id']}' not found"


def test_directives_are_ordered_and_paged(bank):
    bank.make()
    for n, p in (("low", -1), ("mid1", 0), ("mid2", 0), ("top", 9)):
        make(bank, n, priority=p)
    assert names(bank) == ["top", "mid2", "mid1", "low"]
    page = ok(bank.get("/directives", limit=2, offset=1))
    assert [d["name"] for d in page["items"]] == ["mid2", "mid1"]
    assert page["total"] == 4 and page["limit"] == 2 and page["offset"] == 1
    for bad in (0, 1001):
        assert bank.get("/directives", limit=bad).status == 422


def test_directives_of_another_bank_are_missing(stack, bank):
    bank.make()
    d = make(bank, "mine")
    other = stack.bank(make=True)
    nowhere = stack.bank()
    for b in (other, nowhere):
        assert b.get(f"/directives/{d['id']}").status == 404
        assert b.patch(f"/directives/{d['id']}", {"name": "x"}).detail == f"Directive '{d['id']}' not found"
        assert b.delete(f"/directives/{d['id']}").status == 404
    assert other.get("/directives/no-uuid").detail == "Directive 'no-uuid' not found"
    assert names(bank) == ["mine"]


# start

def banks_alone(own_stack, **kw):
    return own_stack(programs=["banks"], worker=False, llm=False, **kw)


def test_banks_case_58_start_without_a_database(own_stack):
    s = banks_alone(own_stack)
    s.processes["mariadbd"].kill()
    s.restart("banks")
    wait_for("an answer", lambda: s.api().get("/health/live").status == 200)
    a = s.api().get("/v1/default/banks")
    assert a.status == 503 and int(a.headers["Retry-After"]) >= 1
    s.start_mariadb()
    wait_for("the database", lambda: s.api().get("/v1/default/banks").status == 200)


@pytest.mark.parametrize("version, word", [(0, "migrate"), (99, "99")])
def test_banks_case_58_another_schema_stops_the_start(own_stack, version, word):
    s = banks_alone(own_stack)
    s.processes["banks"].stop()
    if version == 0:
        s.sql("DELETE FROM schema_migrations")
    else:
        s.sql("INSERT INTO schema_migrations (version, checksum, applied_at) VALUES (%s, '', NOW())", version)
    s.processes["banks"].start()
    assert s.processes["banks"].child.wait(20) != 0
    assert word in s.processes["banks"].log_text().splitlines()[-1]


def test_banks_case_58_unknown_key_in_the_file_stops_the_start(own_stack):
    s = banks_alone(own_stack)
    s.config.write_text(s.config.read_text() + "no_such_key: 1\n")
    line = len(s.config.read_text().splitlines())
    s.processes["banks"].stop()
    s.processes["banks"].start()
    assert s.processes["banks"].child.wait(20) != 0
    last = s.processes["banks"].log_text().splitlines()[-1]
    assert "hindsight.yaml" in last and "no_such_key" in last and str(line) in last


def test_banks_case_58_unknown_variable_is_one_warning(own_stack):
    s = banks_alone(own_stack, env={"HINDSIGHT_API_X": "1"})
    lines = [n for n in s.processes["banks"].log_text().splitlines() if "HINDSIGHT_API_X" in n]
    assert len(lines) == 1 and "warn" in lines[0]


def test_banks_case_37_database_down(own_stack):
    s = banks_alone(own_stack)
    b = s.bank(make=True)
    s.processes["mariadbd"].kill()
    began = time.monotonic()
    assert s.api().get("/health/live").json()["status"] == "alive"
    assert time.monotonic() - began < 1
    for path in ("/health", "/health/ready"):
        a = s.api().get(path)
        assert a.status == 503 and a.json()["status"] == "unhealthy" and a.json()["database"] == "error"
        assert int(a.headers["Retry-After"]) >= 1
    for method, path in (("GET", "/config"), ("GET", "/stats"), ("GET", "/directives"), ("DELETE", ""),
                         ("DELETE", "/config")):
        a = b.call(method, path)
        assert a.status == 503 and isinstance(a.detail, str) and int(a.headers["Retry-After"]) >= 1, path
    assert s.api().get("/version").json() == s.api().get("/v1/version").json()
    assert s.api().get("/metrics").status == 200


def test_fault_65_probes(own_stack):
    s = banks_alone(own_stack, settings={"tenant_api_key": "secret"})
    assert s.api().get("/v1/default/banks").status == 401
    for path in ("/health", "/health/ready", "/health/live", "/version", "/v1/version", "/metrics"):
        assert s.api().get(path).status == 200, path
    assert s.api().get("/version").json()["api_version"] == "1.1.0"
    s.processes["mariadbd"].kill()
    assert s.api().get("/health").status == 503
    a = s.api(headers={"Authorization": "Bearer secret"}).get("/v1/default/banks")
    assert a.status == 503 and a.headers["Retry-After"]
    log = s.processes["banks"].log_text()
    line = next(n for n in log.splitlines() if a.headers["X-Request-Id"] in n)
    assert "level=error" in line and "HS_E_DB_DOWN" in line
    s.start_mariadb()
    assert s.api().get("/health").status == 200
    assert s.api(headers={"Authorization": "Bearer secret"}).get("/v1/default/banks").status == 200


def test_fault_71_errors_of_the_database_stay_inside(own_stack):
    s = banks_alone(own_stack)
    b = s.bank(make=True)
    s.sql("DROP TABLE directives")
    a = b.get("/directives", headers={"X-Request-Id": "trace-71"})
    assert a.status == 500 and a.json() == {"detail": "database error"}
    line = next(n for n in s.processes["banks"].log_text().splitlines() if "trace-71" in n)
    assert "directives" in line and "level=error" in line
    s.sql("UPDATE banks SET config = '[broken'")
    a = b.get("/config")
    assert a.status == 500 and a.json() == {"detail": "stored data could not be read"}
    assert s.api().get("/health").status == 200


def test_routes_are_printed():
    import subprocess
    text = subprocess.run([program_path("banks"), "--routes"], capture_output=True, text=True, check=True).stdout
    rows = text.splitlines()
    assert "GET /health" in rows and "PATCH /v1/default/banks/{bank_id}/config" in rows
    assert len(rows) == len(set(rows))
