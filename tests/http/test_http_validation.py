"""The 422 list over HTTP: shapes, coercions, nested places (contract banks 1.2, 1.4)."""
import json

import pytest

from stack import ok


def faults(answer):
    assert answer.status == 422, answer
    for entry in answer.detail:
        assert "url" not in entry and {"type", "loc", "msg", "input"} <= set(entry) <= {"type", "loc", "msg", "input", "ctx"}
    return {(e["type"], tuple(e["loc"])): e for e in answer.detail}


@pytest.mark.parametrize("item, kind, loc, message", [
    ({}, "missing", ("content",), "Field required"),
    ({"content": "x", "tags": [1]}, "string_type", ("tags", 0), "Input should be a valid string"),
    ({"content": "x", "tags": [""]}, "string_too_short", ("tags", 0), "String should have at least 1 character"),
    ({"content": "x", "metadata": []}, "dict_type", ("metadata",), "Input should be a valid dictionary"),
    ({"content": "x", "context": 1}, "string_type", ("context",), "Input should be a valid string"),
    ({"content": "x", "resolve_entities": "maybe"}, "bool_parsing", ("resolve_entities",),
     "Input should be a valid boolean, unable to interpret input"),
    ({"content": "x", "update_mode": "merge"}, "literal_error", ("update_mode",),
     "Input should be 'replace' or 'append'"),
])
def test_nested_faults_of_a_retain_name_their_place(bank, item, kind, loc, message):
    a = bank.post("/memories", {"items": [{"content": "fine"}, item]})
    found = faults(a)
    assert (kind, ("body", "items", 1, *loc)) in found, a
    assert found[kind, ("body", "items", 1, *loc)]["msg"] == message
    assert bank.get("/profile").status == 404, "a refused retain makes no bank"


def test_all_faults_of_a_body_are_listed(bank):
    found = faults(bank.post("/memories", {"items": [{"content": 1}, "x", {"content": "y", "tags": {}}], "async": 3}))
    assert {loc for _, loc in found} >= {("body", "items", 1), ("body", "items", 2, "tags"), ("body", "async")}


def test_recall_faults(bank):
    bank.make()
    found = faults(bank.post("/memories/recall", {"budget": "huge", "max_tokens": 1.5, "tags_match": "most"}))
    assert ("missing", ("body", "query")) in found
    assert found["enum", ("body", "budget")]["ctx"] == {"expected": "'low', 'mid' or 'high'"}
    assert ("int_from_float", ("body", "max_tokens")) in found
    assert ("literal_error", ("body", "tags_match")) in found


@pytest.mark.parametrize("value, kind", [
    ("x", "int_parsing"), ("", "int_parsing"), ("1.5", "int_parsing"), ("-1", "greater_than_equal"),
    ("0x10", "int_parsing"), ("-99999999999999999999", "greater_than_equal"),
])
def test_query_numbers(bank, value, kind):
    bank.make()
    found = faults(bank.get("/memories/list", limit=value))
    entry = found[kind, ("query", "limit")]
    assert entry["input"] == value
    if kind == "greater_than_equal":
        assert entry["ctx"] == {"ge": 0}


@pytest.mark.parametrize("value, shown", [("3", 3), ("3.0", 3), ("+3", 3), (" 3 ", 3), ("007", 7)])
def test_query_numbers_are_read_laxly(bank, value, shown):
    bank.make()
    assert ok(bank.get("/memories/list", limit=value))["limit"] == shown


def test_the_last_of_a_repeated_parameter_counts(bank):
    bank.make()
    assert ok(bank.get("/memories/list?limit=1&limit=2"))["limit"] == 2


@pytest.mark.parametrize("text, offset", [
    (b'{"name": }', 9), (b"", None), (b"nonsense", 0), (b'{"name": "\xff"}', None), ('{"ä": x}'.encode(), 6),
    (b"{'name': 1}", 1), (b'{"name": "a"} {}', 14), (b'{"name": "\t"}', None), (b'{"name": NaN}', 9),
])
def test_bodies_that_are_no_json_say_where(bank, text, offset):
    a = bank.api.raw("PUT", bank.path, text, {"Content-Type": "application/json"})
    assert a.status == 422
    entry, = a.detail
    if text == b"":
        assert entry["type"] == "missing" and entry["loc"] == ["body"] and entry["input"] is None
        return
    assert entry["type"] == "json_invalid" and entry["loc"][0] == "body" and entry["input"] == {}
    assert entry["msg"] == "JSON decode error" and entry["ctx"]["error"]
    if offset is not None:
        assert entry["loc"] == ["body", offset]
    assert bank.get("/profile").status == 404


def test_numbers_print_as_the_shortest_that_reads_back(bank):
    values = {"recall_budget_adaptive_low": 0.1, "recall_budget_adaptive_mid": 1e-7,
              "recall_budget_adaptive_high": 123456789.125, "recall_semantic_weight": 1}
    a = bank.patch("/config", {"updates": values})
    assert {k: ok(a)["overrides"][k] for k in values} == values
    assert b'"recall_budget_adaptive_low":0.1,' in a.body


def test_integers_beyond_64_bits_never_break_a_request(bank):
    bank.make()
    huge = 18446744073709551616
    assert bank.patch("/config", {"updates": {"retain_chunk_size": huge}}).status == 400
    found = faults(bank.put("", {"retain_chunk_size": huge}))
    assert ("int_parsing_size", ("body", "retain_chunk_size")) in found
    found = faults(bank.put("", {"disposition_empathy": huge}))
    assert found["less_than_equal", ("body", "disposition_empathy")]["ctx"] == {"le": 5}
    found = faults(bank.post("/memories", {"items": [{"content": "x", "metadata": {"n": huge}}]}))
    assert found


def test_fault_72_hostile_items(bank):
    for item in (
        {"content": "x", "tags": [f"t{i}" for i in range(10000)]},
        {"content": "x", "tags": ["t" * 1_000_000]},
        {"content": "x", "tags": ["t" * 256]},
        {"content": "x", "document_id": "d" * 513},
        {"content": "x", "document_id": "ä" * 257},
    ):
        a = bank.post("/memories", {"items": [item]})
        assert a.status == 422 and a.detail[0]["loc"][:3] == ["body", "items", 0], a
        assert len(json.dumps(a.detail)) < 20000
    deep = {}
    for _ in range(200):
        deep = {"m": deep}
    assert bank.post("/memories", {"items": [{"content": "x", "metadata": deep}]}).status == 422
    a = bank.post("/memories", {"items": [{"content": "x"}] * 10001})
    assert a.status == 422
    assert bank.get("/profile").status == 404
