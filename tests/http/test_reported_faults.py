"""Reported faults whose whole case spans several programs; the parts of one program stand beside its tests."""
import json
import time

import pytest

from stack import PROGRAMS, Stack, ok, quote, wait_for

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


@pytest.fixture(scope="module")
def short():
    """A server whose model calls end soon and are not repeated by the worker."""
    s = Stack(settings={"llm_timeout": 1, "reflect_llm_timeout": 1, "llm_max_retries": 1, "worker_max_retries": 0}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def hasty(short):
    short.llm.reset()
    yield short.bank()
    short.llm.reset()


# A, B

def test_fault_02_a_refresh_without_an_answer_changes_nothing(short, hasty):
    hasty.retain("Carol leads the design team.")
    hasty.idle()
    model = hasty.model("Design", "Who leads the design team?")
    before = {k: v for k, v in model.items() if k != "last_refresh_failed_at"}
    path = "/mental-models/" + model["id"]
    failures = 0
    empty_document = {"sections": [{"heading": "", "level": 2, "blocks": []}]}
    silent = [{"scope": "reflect", "when": {"tools": False}, "reply": {"text": ""}}]
    for closing in ({"value": {"answer": "  ", "document": None}}, {"value": {"document": empty_document}},
                    {"value": {"document": {"sections": []}}}, {"text": "", "tool_calls": []}):
        short.llm.reset()
        short.llm.script({"when": {"tool_forced": "done"}, "reply": closing}, *silent)
        op = hasty.wait(ok(hasty.post(path + "/refresh"))["operation_id"])
        failures += 1
        assert op["status"] == "failed" and op["error_message"], closing
        assert op["result_metadata"]["failure_reason"] == "no_answer", (closing, op["error_message"])
        after = ok(hasty.get(path))
        assert after.pop("last_refresh_failed_at")
        assert after == before
        history = ok(hasty.get(path + "/history"))
        assert [e["kind"] for e in history if "kind" in e] == ["refresh_failed"] * failures
        assert len([e for e in history if "kind" not in e]) == 1


def test_fault_11_an_empty_patch_answers_the_model(bank):
    bank.retain("Carol leads the design team.")
    bank.idle()
    model = bank.model("Design", "Who leads the design team?", tags=["a"], trigger={"tags_match": "any"})
    assert "Carol" in model["content"]
    for body in ({}, {"nothing": 1, "unknown": [2]}):
        answer = ok(bank.patch("/mental-models/" + model["id"], body))
        assert answer == {**model, "is_stale": None, "is_knowledge_page": None}
        assert ok(bank.get("/mental-models/" + model["id"])) == model


def test_fault_13_metadata_is_what_a_list_shows(bank):
    bank.retain("Carol leads the design team.")
    bank.idle()
    model = bank.model("Design", "Who leads the design team?")
    assert model["content"] and model["reflect_response"]
    shown = ok(bank.get("/mental-models"))
    assert shown == ok(bank.get("/mental-models", detail="metadata"))
    item, = shown["items"]
    assert item["content"] is None and item["reflect_response"] is None
    assert ok(bank.get("/mental-models", detail="full"))["items"][0]["reflect_response"]


@pytest.mark.parametrize("content", [None, ""])
def test_fault_17_an_async_retain_tells_what_went_wrong(short, hasty, content):
    short.llm.script({"scope": "retain_*", "reply": {"text": content}})
    parent = ok(hasty.post("/memories", {"items": [{"content": "A note."}], "async": True}))["operation_id"]
    op = hasty.wait(parent)
    assert op["status"] == "failed"
    child = hasty.operation(op["child_operations"][0]["operation_id"])
    assert child["status"] == "failed" and "returned nothing" in child["error_message"]
    assert 1 <= len(short.llm.calls("retain_extract_facts")) <= 2
    assert hasty.memories() == []


def test_fault_21_nothing_found_is_an_object_of_lists(bank):
    answer = ok(bank.post("/reflect", {"query": "Who?", "include": {"facts": {}}}))
    assert answer["based_on"] == {"memories": [], "mental_models": [], "directives": []}
    assert "based_on" not in ok(bank.post("/reflect", {"query": "Who?"}))


# C

def test_fault_30_a_sync_retain_under_a_hanging_model_leaves_nothing(short, hasty):
    short.llm.script({"scope": "retain_*", "reply": {"hang": True}})
    started = time.monotonic()
    answer = hasty.post("/memories", {"items": [{"content": "Alice likes tea.", "document_id": "d"}]})
    assert 500 <= answer.status < 600 and isinstance(answer.detail, str) and time.monotonic() - started < 10
    assert hasty.memories() == [] and hasty.get("/documents/d").status == 404


def test_fault_31_half_emoji_nul_and_ids(stack, bank):
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    raw = (b'{"items":[{"content":"a\\u0000b\\u0007c\\td\\ne \\ud83c\\udf89 \\ud83d","context":"a\\u0000b\\u0007c",'
           b'"tags":["a\\u0000b\\ud83d"],"document_id":"a\\u0000b"}]}')
    ok(bank.api.raw("POST", bank.path + "/memories", raw, JSON))
    memory, = bank.memories()
    assert memory["text"].rstrip() == "abc\td\ne 🎉" and memory["context"] == "abc" and memory["tags"] == ["ab"]
    assert ok(bank.get("/documents/ab"))["original_text"].startswith("abc\td\ne 🎉")
    for path in ("/memories/recall", "/reflect"):
        ok(bank.api.raw("POST", bank.path + path, b'{"query":"deploy the \\ud83d service"}', JSON))
    assert ok(bank.get("/memories/list?q=%00"))["total"] == 1
    # ids in the path are refused, never cleaned
    stem = bank.path[:-1]
    for escape, reads, writes in (("%00", 400, 400), ("%07", 404, 400)):
        other = stem + escape + bank.path[-1]
        assert bank.api.get(other + "/memories/list").status == reads
        assert bank.api.post(other + "/memories", {"items": [{"content": "x"}]}).status == writes
        assert bank.api.post(other + "/mental-models", {"name": "n", "source_query": "q"}).status == writes
        assert bank.api.post(other + "/reflect", {"query": "q"}).status == writes
        assert bank.api.put(other, {}).status == writes
    assert len(bank.memories()) == 1


TABLE = {("any", "ab"): {"none", "a", "b", "ab"}, ("all", "ab"): {"none", "ab"}, ("any_strict", "ab"): {"a", "b", "ab"},
         ("all_strict", "ab"): {"ab"}, ("exact", "ab"): {"ab"}, ("exact", ""): {"none"},
         ("any", ""): {"none", "a", "b", "ab"}, ("any_strict", "A"): set()}


@pytest.fixture(scope="module")
def tagged(extractive_stack):
    bank = extractive_stack.bank()
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    for name in ("none", "a", "b", "ab"):
        bank.retain(f"The lantern is {name}", tags=[] if name == "none" else list(name), document_id=name)
    return bank


def last_words(texts):
    return {t.split()[-1] for t in texts}


@pytest.mark.parametrize("match, tags", TABLE)
def test_fault_32_one_table_for_every_reader(tagged, match, tags):
    want = TABLE[match, tags]
    for sent in (list(tags), list(reversed(tags)) + list(tags)):
        scope = {"tags": sent, "tags_match": match}
        assert last_words(r["text"] for r in tagged.recall("lantern", **scope)["results"]) == want
        answer = ok(tagged.post("/reflect", {"query": "lantern", "include": {"facts": {}}, **scope}))
        assert last_words(m["text"] for m in answer["based_on"]["memories"]) == want
    if tags:
        listed = tagged.memories(tags=list(tags), tags_match=match)
        assert last_words(m["text"] for m in listed) == want
    model = tagged.model("Lantern", "lantern", tags=list(tags), trigger={"tags_match": match})
    read = (model["reflect_response"] or {}).get("based_on", {}).get("world", [])
    assert last_words(f["text"] for f in read) == want


# E, G

def test_fault_46_a_later_retain_uses_what_was_stored(bank):
    assert bank.get("/config").status == 404
    assert bank.get("/config").status == 404, "reading makes no bank"
    ok(bank.patch("/config", {"updates": {"enable_observations": False}}))
    got = ok(bank.get("/config"))
    assert got["config"]["enable_observations"] is False and got["overrides"] == {"enable_observations": False}
    bank.retain("Carol leads the design team.")
    bank.idle()
    assert [m["fact_type"] for m in bank.memories()] == ["world"]
    assert ok(bank.get("/operations", type="consolidation"))["total"] == 0


AWKWARD = ["a/b", "50%", "a b", "a+b", "мой проект", "x::y", "a%2Fb", "?", "#", "..", "é", "e\u0301"]


def test_fault_58_awkward_banks_hold_what_is_theirs(extractive_stack):
    api = extractive_stack.api()
    banks = [extractive_stack.bank(name) for name in AWKWARD]
    for b in banks:
        b.make(retain_extraction_mode="chunks", enable_observations=False)
        b.retain(f"This is {b.id}.", document_id=b.id)
        ok(b.post("/mental-models", {"id": "one", "name": b.id, "source_query": "q"}))
    listed = [b["bank_id"] for b in ok(api.get("/v1/default/banks", limit=1000))["banks"]]
    for b in banks:
        assert listed.count(b.id) == 1
        assert [m["text"] for m in b.memories()] == [f"This is {b.id}."]
        assert ok(b.get("/documents/" + quote(b.id)))["original_text"] == f"This is {b.id}."
        assert [m["name"] for m in ok(b.get("/mental-models"))["items"]] == [b.id]
        assert b.post("/mental-models", {"id": b.id, "name": "n", "source_query": "q"}).status == 422
        assert b.get("/memories/" + quote(b.id)).status == 400
        for broken in ("%zz", "%ff", "%00"):
            assert b.api.get(b.path + broken + "/memories/list").status == 400
            assert b.get("/documents/" + quote(b.id) + broken).status == 400
    for b in banks:
        ok(b.delete("/documents/" + quote(b.id)))
        assert b.memories() == []
        ok(b.delete(""))
        assert b.get("/profile").status == 404
    left = {b["bank_id"] for b in ok(api.get("/v1/default/banks", limit=1000))["banks"]}
    assert not left & set(AWKWARD)


def test_fault_59_error_texts_name_what_was_sent(bank):
    text = "🎉👨‍👩‍👧𠮷e\u0301שלום"
    bank.make()
    assert text in bank.get("/documents/" + quote(text)).detail + bank.get("/mental-models/" + quote(text)).detail
    answer = bank.post("/mental-models", {"id": text, "name": "n", "source_query": "q"})
    assert answer.status == 422 and answer.detail[0]["input"] == text


def test_fault_61_large_documents_are_taken(own_stack):
    stack = own_stack(llm=False, worker=False)
    bank = stack.bank()
    for mib in (1, 8, 19):
        sent = {"items": [{"content": "word " * (mib * MIB // 5), "document_id": f"d{mib}"}], "async": True}
        parent = ok(bank.post("/memories", sent, timeout=120))["operation_id"]
        child = bank.operation(parent)["child_operations"][0]["operation_id"]
        kept = bank.operation(child, include_payload="true")["task_payload"]
        assert kept["contents"][0]["content"] == sent["items"][0]["content"]
        ok(bank.delete("/operations/" + child))
    answer = bank.post("/memories", {"items": [{"content": "x" * (21 * MIB)}], "async": True})
    assert answer.status == 413 and isinstance(answer.detail, str)


WITH_DATABASE = {"banks": "/config", "memories": "/memories/list", "mental-models": "/mental-models",
                 "operations": "/operations"}


def test_fault_65_every_program_says_503_and_comes_back(own_stack):
    stack = own_stack(llm=False)
    bank = stack.bank(make=True)
    bank.retain("Alice likes tea.")
    stack.processes["mariadbd"].kill()
    for path in ("/health/ready", "/health"):
        answer = bank.api.get(path)
        assert answer.status == 503 and answer.json()
    started = time.monotonic()
    assert bank.api.get("/health/live").status == 200 and time.monotonic() - started < 1
    answers = {name: bank.get(path) for name, path in WITH_DATABASE.items()}
    answers["reflect"] = bank.post("/reflect", {"query": "tea?"})
    for name, answer in answers.items():
        assert answer.status == 503 and isinstance(answer.detail, str), name
        assert int(answer.headers["Retry-After"]) >= 1, name
        line = next(n for n in stack.processes[name].log_text().splitlines() if answer.headers["X-Request-Id"] in n)
        assert "level=error" in line, line
    pids = {n: stack.processes[n].pid for n in PROGRAMS}
    stack.start_mariadb()
    wait_for("readiness", lambda: bank.api.get("/health/ready").status == 200)
    for path in WITH_DATABASE.values():
        ok(bank.get(path))
    assert "tea" in ok(bank.post("/reflect", {"query": "Who likes tea?"}))["text"]
    assert {n: stack.processes[n].pid for n in PROGRAMS if stack.processes[n].alive()} == pids


def test_fault_72_numbers_and_amounts(plain_bank):
    bank = plain_bank
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    items = [{"content": f"Item {i}."} for i in range(5000)]
    assert ok(bank.post("/memories", {"items": items}, timeout=120))["items_count"] == 5000
    assert ok(bank.get("/memories/list", limit="18446744073709551616"))["total"] == 5000
    assert len(ok(bank.get("/memories/list", limit="18446744073709551616"))["items"]) == 1000
    for big in (2147483648, 2**63, 2**64, 10**30):
        assert bank.post("/memories/recall", {"query": "item", "max_tokens": big}).status in (200, 422)
        assert bank.post("/reflect", {"query": "item", "max_tokens": big}).status in (200, 422)
        assert bank.post("/mental-models", {"name": "n", "source_query": "q", "max_tokens": big}).status == 422
    deep = json.loads('{"m":' * 200 + "1" + "}" * 200)
    for path, body in (("/memories", {"items": [{"content": "x", "metadata": deep}]}), ("/reflect", {"query": "x", "include": deep}),
                       ("/memories/recall", {"query": "x", "tag_groups": [deep]}),
                       ("/mental-models", {"name": "n", "source_query": "q", "trigger": deep})):
        assert bank.post(path, body).status == 422, path
    assert ok(bank.get("/memories/list"))["total"] == 5000
