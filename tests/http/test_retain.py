"""Retain: contract retain-recall 2, cases 1-4, 8-10, 14, 16, 18, 64-66; faults 28, 30, 31, 36-38, 59."""
import json
import re
import threading
import time
import uuid

import pytest

from stack import ok, wait_for


def retain(bank, *items, status=200, **body):
    items = [i if isinstance(i, dict) else {"content": i} for i in items]
    return ok(bank.post("/memories", {"items": items, **body}), status)


def chunks_mode(bank, **body):
    """Each chunk is stored as it is: the texts of memories are known."""
    bank.make(retain_extraction_mode="chunks", enable_observations=False, **body)
    return bank


def facts(bank, **query):
    return bank.memories(type="world", **query)


def texts(bank, **query):
    return sorted(m["text"] for m in facts(bank, **query))


def document(bank, document_id):
    return ok(bank.get("/documents/" + document_id))


def chunks(bank, document_id):
    return ok(bank.get(f"/documents/{document_id}/chunks", limit=1000))["items"]


def extraction_calls(llm):
    return llm.calls("retain_extract_facts")


@pytest.fixture
def store(plain_bank):
    return chunks_mode(plain_bank)


# 2.1 the request

def test_retain_case_01_blank_content_is_refused(bank, llm):
    for content in ["", " ", "\n\t ", "\u3000", []]:
        answer = bank.post("/memories", {"items": [{"content": content}]})
        assert answer.status == 422 and "content cannot be empty" in answer.detail[0]["msg"]
        assert answer.detail[0]["loc"] == ["body", "items", 0, "content"]
    assert bank.get("/stats").status == 404
    assert llm.calls() == []


def test_retain_case_01_special_tokens_and_half_emoji_are_content(store):
    raw = b'{"items": [{"content": "before <|endoftext|> \\ud83d after"}]}'
    ok(store.api.raw("POST", store.path + "/memories", raw, {"Content-Type": "application/json"}))
    assert texts(store) == ["before <|endoftext|>  after"]


def test_retain_case_02_unset_time_stores_none(stack, bank, llm):
    for value in ["UNSET", "unset"]:
        retain(bank, {"content": f"Mara sings today, {value}.", "timestamp": value, "document_id": value})
    for m in facts(bank):
        assert m["mentioned_at"] is None and m["date"] == "" and m["occurred_start"] is None
    assert "Unknown" in json.dumps(extraction_calls(llm)[0]["body"]["messages"])


@pytest.mark.parametrize("tags,want", [('["a","b"]', ["a", "b"]), ("abc", ["abc"]), (["b", "a", "b"], ["b", "a"]),
                                       (None, []), ([], [])])
def test_retain_case_03_fault_37_lists_sent_as_strings(store, tags, want):
    retain(store, {"content": "Ada plays chess.", "tags": tags})
    assert facts(store)[0]["tags"] == want


@pytest.mark.parametrize("tags", [[""], [1], 5, {"a": 1}])
def test_retain_case_03_fault_37_bad_tags_are_refused(bank, llm, tags):
    assert bank.post("/memories", {"items": [{"content": "x", "tags": tags}]}).status == 422
    assert bank.get("/stats").status == 404 and llm.calls() == []


@pytest.mark.parametrize("body", [
    {"items": [{"content": 5}]}, {}, {"items": None}, [], "x", {"items": [{}]}, {"items": ["text"]},
    {"items": [{"content": "x", "timestamp": "soon"}]}, {"items": [{"content": "x", "timestamp": 17}]},
    {"items": [{"content": "x", "timestamp": "2026-02-30"}]}, {"items": [{"content": "x", "metadata": {"a": 1}}]},
    {"items": [{"content": "x", "update_mode": "merge"}]}, {"items": [{"content": "x", "observation_scopes": "some"}]},
    {"items": [{"content": "x", "entities": ["Ada"]}]}, {"items": [{"content": [{"type": "image"}]}]},
    {"items": [{"content": "x"}], "operation_id": "no-uuid"},
    {"items": [{"content": "x", "timestamp": "0001-01-01T00:00:00Z"}]},
    {"items": [{"content": "x", "timestamp": "9999-12-31T00:00:00Z"}]},
])
def test_fault_38_strange_bodies_are_refused_before_any_work(bank, llm, body):
    answer = bank.post("/memories", body)
    assert answer.status == 422 and isinstance(answer.detail, list) and answer.detail[0]["msg"]
    assert bank.get("/stats").status == 404 and llm.calls() == []


def test_fault_38_bodies_that_are_no_json(bank, llm):
    answer = bank.api.raw("POST", bank.path + "/memories", b"content=hello", {"Content-Type": "application/json"})
    assert answer.status == 422 and answer.detail[0]["type"] == "json_invalid"
    assert llm.calls() == []


@pytest.mark.parametrize("background", [False, True])
def test_fault_38_no_items_do_nothing(bank, background):
    answer = retain(bank, **{"async": background})
    assert answer["items_count"] == 0 and answer["operation_id"] is None and answer["async"] is background
    assert (answer["usage"] is None) == background
    assert bank.get("/stats").status == 404


def test_answer_of_a_sync_retain(bank):
    answer = retain(bank, "Mara sings.")
    assert set(answer) == {"success", "bank_id", "items_count", "async", "operation_id", "operation_ids", "usage"}
    assert answer["success"] is True and answer["bank_id"] == bank.id and answer["async"] is False
    usage = answer["usage"]
    assert usage["input_tokens"] > 0 and usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["cached_tokens"] == usage["thoughts_tokens"] == 0


def test_text_blocks_are_joined(store):
    retain(store, {"content": [{"type": "text", "text": "Ada "}, {"type": "text", "text": "sings."}]})
    assert texts(store) == ["Ada sings."]


def test_append_is_refused_before_anything_is_stored(bank, llm):
    for background in (False, True):
        answer = bank.post("/memories", {"items": [{"content": "x", "update_mode": "append"}], "async": background})
        assert answer.status == 400 and answer.detail == "update_mode='append' requires a document_id"
    item = {"content": "x", "update_mode": "append", "document_id": "d"}
    assert bank.post("/memories", {"items": [item]}).status == 501
    bank.make()
    ok(bank.patch("/config", {"updates": {"store_document_text": False}}))
    answer = bank.post("/memories", {"items": [item]})
    assert answer.status == 400 and "store_document_text" in answer.detail
    assert answer.detail.endswith("use update_mode='replace'")
    assert llm.calls() == []


def test_retain_case_64_limits(store):
    def status(**item):
        return store.post("/memories", {"items": [{"content": "x", **item}]}).status

    assert status(tags=["t" * 255]) == 200 and status(tags=["t" * 256]) == 422
    assert status(tags=["é" * 255]) == 200 and status(tags=["é" * 256]) == 422
    assert status(tags=[f"t{i}" for i in range(1000)]) == 200
    assert status(tags=[f"t{i}" for i in range(1001)]) == 422
    assert status(document_id="d" * 512) == 200 and status(document_id="d" * 513) == 422
    assert status(document_id="é" * 256) == 200 and status(document_id="é" * 257) == 422
    mixed = {"items": [{"content": "x", "tags": [f"t{i}" for i in range(999)]}], "document_tags": ["a", "b"]}
    assert store.post("/memories", mixed).status == 422
    items = [{"content": f"Item {i}", "document_id": "all"} for i in range(10001)]
    assert store.post("/memories", {"items": items}).status == 422
    ok(store.post("/memories", {"items": items[:10000]}))
    assert ok(store.get("/memories/list", document_id="all", limit=0))["total"] == 10000


def test_document_tags_are_added(store):
    retain(store, {"content": "Ada sings.", "tags": ["a"], "document_id": "d"}, document_tags=["b", "a"])
    assert facts(store)[0]["tags"] == ["a", "b"] and document(store, "d")["tags"] == ["a", "b"]


def test_fault_34_event_times(bank, llm):
    retain(bank, {"content": "Mara sings.", "timestamp": "2026-06-12T19:17:00+08:00"})
    assert facts(bank)[0]["mentioned_at"] == "2026-06-12T11:17:00+00:00"
    assert "2026-06-12T19:17:00+08:00" in json.dumps(extraction_calls(llm)[0]["body"]["messages"])
    retain(bank, {"content": "Mara dances.", "timestamp": "2026-06-12T19:17:00"})
    assert {m["mentioned_at"] for m in facts(bank)} == {"2026-06-12T11:17:00+00:00", "2026-06-12T19:17:00+00:00"}


# texts of every kind

HARD = "🎉 👨‍👩‍👧‍👦 𠮷 a\u0301 שלום مرحبا"


def test_fault_59_four_byte_characters_everywhere(store):
    retain(store, {"content": HARD, "context": HARD, "tags": [HARD], "document_id": HARD, "metadata": {HARD: HARD},
                   "entities": [{"text": HARD}]})
    m, = facts(store)
    assert m["text"] == HARD and m["context"] == HARD and m["tags"] == [HARD] and m["document_id"] == HARD
    assert m["metadata"] == {HARD: HARD} and m["entities"] == HARD
    assert len(facts(store, q="𠮷")) == 1
    found = store.recall("𠮷 שלום", tags=[HARD], tags_match="all_strict")["results"]
    assert [r["text"] for r in found] == [HARD] and found[0]["entities"] == [HARD]


def test_fault_31_control_characters_are_removed(store):
    dirty = "a\u0000b\u0007c\td\ne"
    raw = json.dumps({"items": [{"content": dirty, "context": dirty, "tags": [dirty], "metadata": {"k": dirty}}]})
    ok(store.api.raw("POST", store.path + "/memories", raw.encode(), {"Content-Type": "application/json"}))
    m, = facts(store)
    assert m["text"] == m["context"] == m["metadata"]["k"] == "abc\td\ne" and m["tags"] == ["abc\td\ne"]
    for query in [b'"deploy the \\ud83d service"', b'"abc\\u0000"', b'"pair \\ud83c\\udf89 abc"']:
        raw = b'{"query": ' + query + b'}'
        ok(store.api.raw("POST", store.path + "/memories/recall", raw, {"Content-Type": "application/json"}))


# 2.2, 2.4, 2.5 documents

def test_retain_case_04_the_same_again_is_no_work(bank, llm):
    item = {"content": "Mara sings in Lund.", "document_id": "d", "tags": ["a"], "metadata": {"v": "1"}}
    first = retain(bank, item)
    before = facts(bank)
    again = retain(bank, {**item, "tags": ["b"], "metadata": {"v": "2"}})
    assert first["usage"]["total_tokens"] > 0 and again["usage"]["total_tokens"] == 0
    assert len(llm.calls("retain_extract_facts")) == 1
    after = facts(bank)
    assert [m["id"] for m in after] == [m["id"] for m in before]
    assert all(m["tags"] == ["b"] and m["metadata"] == {"v": "2"} for m in after)
    assert document(bank, "d")["tags"] == ["b"] and document(bank, "d")["document_metadata"] == {"v": "2"}


def test_the_same_again_touches_no_unit(store):
    item = {"content": "Mara sings in Lund.", "document_id": "d", "tags": ["a"], "metadata": {"v": "1"}}
    retain(store, item)
    unit, doc = facts(store)[0], document(store, "d")
    retain(store, item)
    again = facts(store)[0]
    assert again["updated_at"] == unit["updated_at"] and again["id"] == unit["id"]
    assert document(store, "d")["updated_at"] > doc["updated_at"]
    assert document(store, "d")["created_at"] == doc["created_at"]


def test_a_changed_document_is_replaced_whole(store):
    retain(store, {"content": "Old words.", "document_id": "d"})
    created = document(store, "d")["created_at"]
    retain(store, {"content": "New words.", "document_id": "d"})
    assert texts(store) == ["New words."]
    doc = document(store, "d")
    assert doc["original_text"] == "New words." and doc["created_at"] == created and doc["memory_unit_count"] == 1


def marked(n):
    return "".join(f"Marker {i:03d} stands here. " + "It is followed by plain words. " * 31 for i in range(n))


@pytest.mark.parametrize("background", [False, True])
def test_fault_28_retain_case_08_a_large_document_keeps_all_its_parts(bank, llm, background):
    text = marked(90)
    assert len(text) > 85000
    answer = retain(bank, {"content": text, "document_id": "big"}, **{"async": background})
    if background:
        assert bank.wait(answer["operation_id"])["status"] == "completed"
    doc = document(bank, "big")
    assert doc["original_text"] == text
    parts = chunks(bank, "big")
    assert [c["chunk_index"] for c in parts] == list(range(len(parts)))
    markers = re.findall(r"Marker (\d+)", "".join(c["chunk_text"] for c in parts))
    assert markers == [f"{i:03d}" for i in range(90)]
    shown = "".join(json.dumps(c["body"]["messages"]) for c in extraction_calls(llm))
    assert all(f"Marker {i:03d}" in shown for i in range(90))
    assert doc["memory_unit_count"] == len(parts) == len(extraction_calls(llm))


def test_retain_case_08_chunks_after_a_replace(store):
    retain(store, {"content": marked(20), "document_id": "big"})
    retain(store, {"content": marked(30), "document_id": "big"})
    parts = chunks(store, "big")
    assert [c["chunk_index"] for c in parts] == list(range(len(parts)))
    assert re.findall(r"Marker (\d+)", "".join(c["chunk_text"] for c in parts)) == [f"{i:03d}" for i in range(30)]
    assert document(store, "big")["memory_unit_count"] == len(parts)


def test_retain_case_09_one_document_on_two_items(store):
    items = [{"content": "Part one.", "document_id": "d"}, {"content": "Part two.", "document_id": "d"}]
    retain(store, *items)
    doc = document(store, "d")
    assert doc["original_text"] == "Part one.\nPart two." and doc["memory_unit_count"] == 2
    assert [c["chunk_text"] for c in chunks(store, "d")] == ["Part one.", "Part two."]
    answer = store.post("/memories", {"items": items, "async": True})
    assert answer.status == 400 and "'d'" in answer.detail and "async=false" in answer.detail


def test_items_without_ids(store):
    retain(store, "One.", "Two.")
    assert len({m["document_id"] for m in facts(store)}) == 1
    retain(store, "Three.", {"content": "Four.", "document_id": "d"}, "Five.")
    ids = {m["text"]: m["document_id"] for m in facts(store)}
    assert ids["Four."] == "d" and len({ids["Three."], ids["Four."], ids["Five."], ids["One."]}) == 4


def test_text_that_is_not_stored(plain_bank):
    bank = chunks_mode(plain_bank)
    ok(bank.patch("/config", {"updates": {"store_document_text": False}}))
    item = {"content": "Secret words stay out.", "document_id": "d"}
    retain(bank, item)
    assert document(bank, "d")["original_text"] is None
    assert [c["chunk_text"] for c in chunks(bank, "d")] == [""]
    assert texts(bank) == ["Secret words stay out."]
    unit = facts(bank)[0]["id"]
    retain(bank, item)
    assert facts(bank)[0]["id"] == unit


def test_a_strategy_lays_settings_over_the_bank(plain_bank):
    plain_bank.make(enable_observations=False)
    ok(plain_bank.patch("/config", {"updates": {"retain_strategies": {
        "raw": {"retain_extraction_mode": "chunks", "no_such_field": 1}}}}))
    text = "Alice likes tea. Bob likes milk."
    retain(plain_bank, {"content": text, "strategy": "raw", "document_id": "a"},
           {"content": text, "strategy": "unknown", "document_id": "b"})
    assert texts(plain_bank, document_id="a") == [text]
    assert len(facts(plain_bank, document_id="b")) + len(plain_bank.memories(document_id="b", type="experience")) > 1


# 2.3 async

def test_retain_case_10_the_same_operation_id_twice(stack, bank, llm):
    mine = str(uuid.uuid4())
    first = retain(bank, "Mara sings.", "Mara dances.", **{"async": True, "operation_id": mine.upper()})
    assert first["operation_id"] == mine and first["usage"] is None and first["items_count"] == 2
    again = retain(bank, "Something else.", **{"async": True, "operation_id": mine})
    assert again["operation_id"] == mine and again["items_count"] == 2
    parent = bank.wait(mine)
    assert parent["status"] == "completed" and len(parent["child_operations"]) == 1
    assert not any("Something else" in m["text"] for m in bank.memories())
    other = stack.bank()
    answer = other.post("/memories", {"items": [{"content": "x"}], "async": True, "operation_id": mine})
    assert answer.status == 409 and answer.detail == f"operation_id {mine} is already in use"
    job = ok(bank.post("/consolidate"))["operation_id"]
    answer = bank.post("/memories", {"items": [{"content": "x"}], "async": True, "operation_id": job})
    assert answer.status == 409


def test_retain_case_10_simultaneous_submissions_are_one(bank):
    mine = str(uuid.uuid4())
    answers = []

    def submit(i):
        answers.append(bank.post("/memories", {"items": [{"content": f"Try {i}."}], "async": True, "operation_id": mine}))

    threads = [threading.Thread(target=submit, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {a.status for a in answers} == {200} and {a.json()["operation_id"] for a in answers} == {mine}
    assert len(bank.wait(mine)["child_operations"]) == 1
    assert len(facts(bank)) == 1


def test_metadata_of_parent_and_child(bank):
    answer = retain(bank, {"content": "Mara sings.", "document_id": "d"}, **{"async": True})
    parent = bank.wait(answer["operation_id"])
    assert parent["operation_type"] == "batch_retain"
    meta = parent["result_metadata"]
    assert meta["items_count"] == 1 and meta["num_sub_batches"] == 1 and meta["is_parent"] is True
    assert meta["total_tokens"] > 0 and meta["document_id"] == "d" and meta["unit_ids_count"] == 1
    child = bank.operation(parent["child_operations"][0]["operation_id"])
    assert child["operation_type"] == "retain"
    meta = child["result_metadata"]
    assert meta["parent_operation_id"] == parent["operation_id"] and meta["document_id"] == "d"
    assert (meta["sub_batch_index"], meta["total_sub_batches"], meta["items_count"]) == (1, 1, 1)
    assert meta["unit_ids_count"] == 1 and meta["extraction_errors_count"] == 0 and meta["document_ids"] == ["d"]


def test_strategies_become_operations_of_their_own(bank):
    items = [{"content": "One.", "strategy": "a"}, {"content": "Two.", "strategy": "b"}, {"content": "Three.", "strategy": "a"}]
    answer = bank.post("/memories", {"items": items, "async": True, "operation_id": str(uuid.uuid4())})
    assert answer.status == 400 and "single strategy" in answer.detail
    answer = retain(bank, *items, **{"async": True})
    assert len(answer["operation_ids"]) == 2 and answer["operation_id"] == answer["operation_ids"][0]
    assert answer["items_count"] == 3
    counts = [bank.wait(i)["result_metadata"]["items_count"] for i in answer["operation_ids"]]
    assert counts == [2, 1]


def test_retain_case_65_a_long_item_is_a_child_of_its_own(plain_bank):
    bank = chunks_mode(plain_bank)
    long = "Plain words follow each other here. " * 5000
    items = [{"content": f"Short item {i}.", "document_id": f"s{i}"} for i in range(10)]
    items.insert(4, {"content": long, "document_id": "long"})
    answer = retain(bank, *items, **{"async": True})
    parent = bank.wait(answer["operation_id"])
    children = [bank.operation(c["operation_id"], include_payload=True) for c in parent["child_operations"]]
    held = [[i["document_id"] for i in c["task_payload"]["contents"]] for c in children]
    assert sorted(held, key=len) == [["long"], [f"s{i}" for i in range(10)]]
    assert parent["status"] == "completed"
    assert len(texts(bank, document_id="long")) == len(chunks(bank, "long")) > 40


def test_retain_case_65_62_cancelled_after_its_first_batch(own_stack):
    stack = own_stack(settings={"retain_chunk_batch_size": 2, "retain_max_concurrent": 1})
    bank = stack.bank(make=True, enable_observations=False)
    stack.llm.script({"scope": "retain_*", "when": {"n": 3}, "reply": {"delay": 3}})
    answer = retain(bank, {"content": marked(18), "document_id": "d"}, **{"async": True})
    child = wait_for("the child", lambda: bank.operation(answer["operation_id"])["child_operations"])[0]["operation_id"]
    wait_for("the third call", lambda: len(stack.llm.calls("retain_extract_facts")) >= 3)
    ok(bank.delete(f"/operations/{child}"))
    bank.wait(answer["operation_id"])
    time.sleep(4)
    assert len(stack.llm.calls("retain_extract_facts")) == 3
    assert [c["chunk_index"] for c in chunks(bank, "d")] == [0, 1]
    assert len(facts(bank)) == 2 and document(bank, "d")["original_text"] == marked(18)


# 2.7 entities

def test_retain_case_14_names_are_cleaned_and_counted_once(store):
    retain(store, {"content": "At the harbor.", "entities": [{"text": "Blue\nHarbor"}, {"text": "blue  harbor"},
                                                            {"text": " "}, {"text": "x" * 513}]})
    entities = ok(store.get("/entities"))["items"]
    assert [(e["canonical_name"], e["mention_count"]) for e in entities] == [("Blue Harbor", 1)]
    assert facts(store)[0]["entities"] == "Blue Harbor"


def test_retain_case_16_names_taken_literally(store):
    retain(store, {"content": "Both came.", "entities": [{"text": "Mara"}, {"text": "Mara Lindt"}],
                   "resolve_entities": False})
    retain(store, {"content": "One came.", "entities": [{"text": "MARA"}], "resolve_entities": False})
    entities = {e["canonical_name"]: e["mention_count"] for e in ok(store.get("/entities"))["items"]}
    assert entities == {"Mara": 2, "Mara Lindt": 1}


def test_retain_case_66_counters_are_exact_under_eight_writers(extractive_stack, store):
    rounds, errors = 12, []

    def write(n):
        for i in range(rounds):
            answer = store.post("/memories", {"items": [{
                "content": f"Writer {n} round {i}.", "document_id": f"{n}-{i % 3}",
                "entities": [{"text": "Ada"}, {"text": "Bob"}, {"text": f"Own {n}"}]}]})
            if answer.status != 200:
                errors.append(answer)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors
    # each writer rewrote its three documents: three live facts a writer
    entities = {e["canonical_name"]: e["mention_count"] for e in ok(store.get("/entities"))["items"]}
    assert entities == {"Ada": 24, "Bob": 24, **{f"Own {n}": 3 for n in range(8)}}
    pairs = extractive_stack.sql(
        "SELECT cooccurrence_count AS n FROM entity_cooccurrences c JOIN banks b USING (bank_no) "
        "WHERE b.bank_id = %s ORDER BY n", store.id)
    assert [p["n"] for p in pairs] == [3] * 16 + [24]
    stats = extractive_stack.sql("SELECT s.units, (SELECT COUNT(DISTINCT unit_no) FROM postings p "
                                 "WHERE p.bank_no = s.bank_no) AS indexed FROM posting_stats s JOIN banks b USING (bank_no) "
                                 "WHERE b.bank_id = %s", store.id)
    assert stats == [{"units": 24, "indexed": 24}]


# what is written is there

def test_retain_case_66_acknowledged_is_stored_and_consolidated_once(own_stack):
    stack = own_stack(llm=False, worker=False)
    bank = stack.bank()
    retain(bank, {"content": "Alice likes green tea.", "document_id": "d"})
    stack.kill_all()
    stack.with_worker = False
    stack.start_again()
    assert any("green tea" in m["text"] for m in bank.memories())
    jobs = ok(bank.get("/operations", type="consolidation"))["operations"]
    assert len(jobs) == 1 and jobs[0]["status"] == "pending"


def test_fault_30_accept_first_think_later(own_stack):
    stack = own_stack(settings={"worker_lease_seconds": 3, "llm_timeout": 600})
    bank = stack.bank()
    stack.llm.script({"scope": "retain_*", "reply": {"hang": True}})
    started = time.monotonic()
    answer = retain(bank, {"content": "Alice likes green tea.", "document_id": "d"}, **{"async": True})
    assert time.monotonic() - started < 1 and answer["operation_id"]
    wait_for("the first call", lambda: stack.llm.calls("retain_extract_facts"))
    stack.kill_all()
    stack.llm.reset()
    stack.start_again()
    assert bank.wait(answer["operation_id"])["status"] == "completed"
    assert texts(bank) == ["Alice likes green tea."]


def test_fault_29_a_failed_sync_retain_leaves_nothing(bank, llm):
    llm.script({"scope": "retain_*", "reply": {"status": 401, "body": {"error": {"message": "no"}}}})
    answer = bank.post("/memories", {"items": [{"content": "Alice likes green tea.", "document_id": "d"}]})
    assert answer.status == 500 and isinstance(answer.detail, str)
    assert bank.memories() == [] and bank.get("/documents/d").status == 404


def test_a_document_without_facts_is_stored(bank, llm):
    llm.script({"scope": "retain_*", "reply": {"json": {"facts": []}}})
    retain(bank, {"content": "Hm.", "document_id": "d"})
    doc = document(bank, "d")
    assert doc["memory_unit_count"] == 0 and doc["original_text"] == "Hm." and chunks(bank, "d") == []


def test_fault_36_the_same_fact_twice_is_one_observation(bank):
    for i in range(2):
        retain(bank, {"content": "Alice likes green tea.", "document_id": f"d{i}"})
        bank.idle()
    observation, = bank.memories(type="observation")
    assert observation["proof_count"] == 2 and len(observation["source_memory_ids"]) == 2
    assert len(facts(bank)) == 2


# 2.9 provider none

def test_retain_case_18_provider_none(own_stack):
    stack = own_stack(settings={"llm_provider": "none"}, llm=False)
    bank = stack.bank()
    text = "Alice likes green tea. Bob likes milk."
    answer = retain(bank, {"content": text, "entities": [{"text": "Alice"}]})
    assert answer["usage"]["total_tokens"] == 0
    unit, = bank.memories()
    assert unit["text"] == text and unit["fact_type"] == "world" and unit["entities"] == "Alice"
    assert [r["text"] for r in bank.recall("green tea")["results"]] == [text]
    job = bank.consolidate()
    assert job["status"] == "completed" and job["result_metadata"]["memories_processed"] == 0
    assert bank.post("/reflect", {"query": "tea?"}).status == 400


# consolidate

def test_consolidate_is_queued_once(own_stack):
    stack = own_stack(llm=False, worker=False)
    bank = stack.bank()
    assert bank.post("/consolidate").status == 404 and bank.get("/stats").status == 404
    bank.make()
    first = ok(bank.post("/consolidate"))
    assert first["deduplicated"] is False
    assert ok(bank.post("/consolidate", {})) == {**first, "deduplicated": True}
    scoped = ok(bank.post("/consolidate", {"observation_scopes": [["a"], ["b", "c"]]}))
    assert scoped["deduplicated"] is False and scoped["operation_id"] != first["operation_id"]
    for body in [{"observation_scopes": "a"}, {"observation_scopes": ["a"]}, {"observation_scopes": [[1]]}]:
        assert bank.post("/consolidate", body).status == 422


# everything at once

COUNTERS = {
    "frequencies": "SELECT COUNT(*) AS n FROM (SELECT term, COUNT(*) AS df FROM postings WHERE bank_no = %(b)s GROUP BY term) p "
                   "LEFT JOIN posting_terms t ON t.bank_no = %(b)s AND t.term = p.term WHERE t.df IS NULL OR t.df <> p.df",
    "indexed units": "SELECT (SELECT units FROM posting_stats WHERE bank_no = %(b)s) - COUNT(*) AS n FROM memory_units "
                     "WHERE bank_no = %(b)s",
    "mentions": "SELECT COUNT(*) AS n FROM entities e WHERE bank_no = %(b)s AND mention_count <> (SELECT COUNT(*) "
                "FROM unit_entities u WHERE u.bank_no = e.bank_no AND u.entity_no = e.entity_no)",
    "pairs": "SELECT COUNT(*) AS n FROM entity_cooccurrences c WHERE bank_no = %(b)s AND cooccurrence_count <> (SELECT COUNT(*) "
             "FROM unit_entities x JOIN unit_entities y ON y.unit_no = x.unit_no WHERE x.bank_no = c.bank_no AND "
             "x.entity_no = c.entity_no_1 AND y.entity_no = c.entity_no_2)",
    "proofs": "SELECT COUNT(*) AS n FROM memory_units u WHERE bank_no = %(b)s AND fact_type = 'observation' AND proof_count <> "
              "(SELECT COUNT(*) FROM observation_sources s WHERE s.bank_no = u.bank_no AND s.observation_no = u.unit_no)",
    "chunks": "SELECT COUNT(*) AS n FROM chunks c LEFT JOIN documents d USING (bank_no, document_id) WHERE c.bank_no = %(b)s "
              "AND d.document_id IS NULL",
    **{f"rows of {table}.{column}": f"SELECT COUNT(*) AS n FROM {table} t LEFT JOIN memory_units u ON u.bank_no = t.bank_no AND "
                                    f"u.unit_no = t.{column} WHERE t.bank_no = %(b)s AND u.unit_no IS NULL"
       for table, column in [("unit_tags", "unit_no"), ("unit_entities", "unit_no"), ("postings", "unit_no"),
                             ("unit_embeddings", "unit_no"), ("observation_sources", "source_no"),
                             ("observation_sources", "observation_no"), ("memory_links", "from_no"),
                             ("memory_links", "to_no"), ("observation_history", "observation_no")]},
}


def test_fault_60_writers_deleters_and_readers_at_once(extractive_stack):
    bank = extractive_stack.bank(make=True)
    bad, end = [], time.monotonic() + 8
    names = ["Alice", "Bob", "Carol", "Dora"]
    things = ["green tea", "old maps", "loud music", "long walks", "fresh bread"]

    def work(n):
        i = n
        while time.monotonic() < end:
            i += 7
            sentence = f"{names[i % 4]} likes {things[i % 5]}. {names[i % 3]} bought {i % 11} tickets."
            kind = i % 10
            if kind < 5:
                answer = bank.post("/memories", {"items": [{
                    "content": sentence, "document_id": f"d{i % 13}", "tags": ["a", "b"][:i % 3],
                    "entities": [{"text": "Ada"}]}], "async": i % 4 == 0})
            elif kind == 5:
                answer = bank.delete(f"/documents/d{i % 13}")
            elif kind == 6:
                answer = bank.delete("/memories", type=["world", "observation"][i % 2]) if i % 3 == 0 else bank.post("/consolidate")
            elif kind == 7:
                answer = bank.patch("/config", {"updates": {"retain_mission": sentence}})
            else:
                answer = bank.post("/memories/recall", {"query": sentence, "tags": ["a"], "include": {
                    "chunks": {}, "source_facts": {}}})
            if answer.status not in (200, 404):
                bad.append(answer)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad, bad[:3]
    bank.idle()
    assert ok(bank.get("/operations", status="failed"))["total"] == 0
    number = extractive_stack.sql("SELECT bank_no AS b FROM banks WHERE bank_id = %s", bank.id)[0]
    with extractive_stack.connect() as c, c.cursor() as cur:
        wrong = {}
        for what, statement in COUNTERS.items():
            cur.execute(statement, number)
            wrong[what] = int(cur.fetchone()[0] or 0)
    assert not any(wrong.values()), {k: v for k, v in wrong.items() if v}
