"""Reading and clearing memories, documents, chunks, entities, tags (contract retain-recall 3)."""
import uuid

import pytest

from stack import ok, quote


def retain(bank, *items):
    return ok(bank.post("/memories", {"items": [i if isinstance(i, dict) else {"content": i} for i in items]}))


def texts(items):
    return {i["text"] for i in items}


def chunks_mode(bank):
    """Each chunk is stored as it is: the texts of memories are known."""
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    return bank


@pytest.fixture
def store(plain_bank):
    return chunks_mode(plain_bank)


ITEM_KEYS = {
    "id", "text", "context", "date", "fact_type", "document_id", "mentioned_at", "occurred_start",
    "occurred_end", "entities", "chunk_id", "proof_count", "tags", "metadata", "consolidated_at",
    "consolidation_failed_at", "state", "invalidation_reason", "invalidated_at", "edited_at", "updated_at",
    "source_memory_ids", "attachments",
}


# the list

def test_list_shows_every_declared_key(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "d", "tags": ["b", "a"],
                   "timestamp": "2024-01-15T10:30:00Z", "metadata": {"k": "v"}, "context": "notes"})
    page = ok(store.get("/memories/list"))
    assert {k: page[k] for k in ("total", "limit", "offset")} == {"total": 1, "limit": 100, "offset": 0}
    item, = page["items"]
    assert set(item) == ITEM_KEYS
    assert item["text"] == "Ada plays chess." and item["document_id"] == "d"
    assert item["tags"] == ["b", "a"] and item["metadata"] == {"k": "v"}
    assert item["mentioned_at"] == "2024-01-15T10:30:00+00:00"
    assert item["state"] == "valid" and item["proof_count"] == 1
    assert isinstance(item["entities"], str) and isinstance(item["context"], str)


def test_retain_case_45_limits_of_pages(store):
    retain(store, "One is here.", "Two is here.", "Three is here.")
    for path in ("/memories/list", "/documents", "/entities", "/tags"):
        full = ok(store.get(path))
        none = ok(store.get(path, limit=0))
        assert none["items"] == [] and none["limit"] == 0 and none["total"] == full["total"]
        assert ok(store.get(path, limit=5000))["limit"] == 1000
        assert ok(store.get(path, limit=18446744073709551616))["limit"] == 1000
        past = ok(store.get(path, offset=1000000))
        assert past["items"] == [] and past["total"] == full["total"] and past["offset"] == 1000000
        for bad in ({"limit": -1}, {"offset": -1}, {"limit": "x"}):
            a = store.get(path, **bad)
            assert a.status == 422 and a.detail[0]["loc"] == ["query", next(iter(bad))], a
    document = ok(store.get("/documents"))["items"][0]["id"]
    for limit in (0, 1001, -1):
        a = store.get(f"/documents/{quote(document)}/chunks", limit=limit)
        assert a.status == 422 and a.detail[0]["loc"] == ["query", "limit"]


def test_pages_hold_each_memory_once(store):
    retain(store, *[f"Fact number {i} stands here." for i in range(7)])
    seen = []
    for offset in range(0, 9, 3):
        seen += ok(store.get("/memories/list", limit=3, offset=offset))["items"]
    assert len(seen) == 7 and len({i["id"] for i in seen}) == 7


@pytest.mark.parametrize("path", ["/memories/list", "/documents", "/entities", "/tags"])
def test_retain_case_46_missing_bank_is_404_and_not_made(plain_bank, path):
    a = plain_bank.get(path)
    assert a.status == 404 and a.json() == {"detail": f"Bank '{plain_bank.id}' not found"}
    assert plain_bank.get("/profile").status == 404


def test_what_is_checked_before_and_after_the_bank(plain_bank):
    get = plain_bank.get
    assert get("/memories/list", start_date="soon").status == 400
    assert get("/memories/list", tags_match="most").status == 422
    assert get("/memories/list", time_field="born_at").status == 422
    assert get("/memories/list", state="gone").status == 404
    assert get("/memories/list", start_date="2024-02-01", end_date="2024-01-01").status == 404
    plain_bank.make()
    for query, text in [
        ({"state": "gone"}, "Invalid state 'gone': expected 'valid' or 'invalidated'."),
        ({"consolidation_state": "x"}, "Invalid consolidation_state 'x': expected 'failed', 'pending', or 'done'."),
        ({"entity_id": "x"}, "Invalid entity_id: 'x' is not a valid UUID"),
        ({"start_date": "soon"}, "Invalid start_date: 'soon' is not an ISO-8601 datetime."),
        ({"end_date": "2024-13-01"}, "Invalid end_date: '2024-13-01' is not an ISO-8601 datetime."),
        ({"start_date": "2024-02-01", "end_date": "2024-02-01"},
         "Invalid time window: end_date must be after start_date."),
    ]:
        a = get("/memories/list", **query)
        assert a.status == 400 and a.detail == text


def test_search_is_literal_and_without_case(store):
    retain(store, {"content": "Growth was 100% in May."}, {"content": "The file is a_b here."},
           {"content": "Growth was 1000 in June."}, {"content": "Nothing of it.", "context": "Annual REPORT"})
    q = lambda text: texts(store.memories(q=text))
    assert q("GROWTH") == {"Growth was 100% in May.", "Growth was 1000 in June."}
    assert q("100%") == {"Growth was 100% in May."}
    assert q("a_b") == {"The file is a_b here."}
    assert q("report") == {"Nothing of it."}
    assert q("'; DROP TABLE banks; --") == set()
    assert q("\\") == set()


def test_filters_of_the_list(store):
    retain(store, {"content": "Ada Lovelace wrote notes.", "document_id": "one", "entities": [{"text": "Ada"}],
                   "timestamp": "2024-01-10T00:00:00Z"},
           {"content": "Bob was there.", "document_id": "two", "timestamp": "2024-03-01T00:00:00Z"},
           {"content": "No date at all.", "document_id": "three", "timestamp": "unset"})
    everything = store.memories()
    assert len(everything) == 3
    assert texts(store.memories(document_id="one")) == {"Ada Lovelace wrote notes."}
    kinds = {i["fact_type"] for i in everything}
    for kind in kinds:
        assert {i["fact_type"] for i in store.memories(type=kind)} == {kind}
    assert store.memories(type="opinion") == []
    assert len(store.memories(state="valid")) == 3 and store.memories(state="invalidated") == []
    assert len(store.memories(consolidation_state="Pending")) == 3
    assert store.memories(consolidation_state="done") == store.memories(consolidation_state="failed") == []
    ada = [e for e in ok(store.get("/entities"))["items"] if e["canonical_name"] == "Ada"][0]
    assert texts(store.memories(entity_id=ada["id"])) == {"Ada Lovelace wrote notes."}
    assert store.memories(entity_id=str(uuid.uuid4())) == []
    # newest first, those without a date last
    assert [i["text"] for i in everything] == ["Bob was there.", "Ada Lovelace wrote notes.", "No date at all."]
    # a window drops rows without its date, from the total too
    page = ok(store.get("/memories/list", time_field="mentioned_at"))
    assert page["total"] == 2
    assert texts(store.memories(time_field="mentioned_at", start_date="2024-01-10", end_date="2024-03-01")) == {
        "Ada Lovelace wrote notes."}
    assert texts(store.memories(time_field="mentioned_at", start_date="2024-01-10T00:00:00.000001")) == {
        "Bob was there."}
    assert len(store.memories(start_date="2020-01-01")) == 3


@pytest.mark.parametrize("tags, match, wanted", [
    (["a", "b"], "any", {"none", "a", "b", "ab"}),
    (["a", "b"], "all", {"none", "ab"}),
    (["a", "b"], "any_strict", {"a", "b", "ab"}),
    (["a", "b"], "all_strict", {"ab"}),
    (["a", "b"], "exact", {"ab"}),
    (["b", "a", "b"], "exact", {"ab"}),
    (["A"], "any_strict", set()),
    ([], "exact", {"none"}),
    ([], "any", {"none", "a", "b", "ab"}),
])
def test_fault_32_tag_matching_table_of_lists(store, tags, match, wanted):
    for name in ("none", "a", "b", "ab"):
        retain(store, {"content": f"Item {name}.", "document_id": name, "tags": [] if name == "none" else list(name)})
    assert texts(store.memories(tags=tags, tags_match=match)) == {f"Item {n}." for n in wanted}
    documents = ok(store.get("/documents", tags=tags, tags_match=match))["items"]
    assert {d["id"] for d in documents} == wanted


def test_fault_31_control_characters_in_reads(extractive_stack, store):
    retain(store, {"content": "a\u0000b\u0007c\td\ne", "context": "x\u0001y", "tags": ["t\u0000ag"],
                   "document_id": "d\u0007oc"})
    item, = store.memories()
    assert item["text"] == "abc\td\ne" and item["context"] == "xy"
    assert item["tags"] == ["tag"] and item["document_id"] == "doc"
    assert ok(store.get("/memories/list?q=%00"))["total"] == 1
    assert ok(store.get("/memories/list?q=%00abc"))["total"] == 1
    assert ok(store.get("/memories/list?q=%ED%A0%BDabc%07"))["total"] == 1
    assert store.get("/documents/doc").status == 200
    assert store.get("/documents/d%07oc").status == 404
    ab = extractive_stack.bank()
    ab.make()
    assert ab.api.get(ab.path + "%00/memories/list").status == 400
    assert ab.api.get(ab.path[:-1] + "%07" + ab.path[-1] + "/memories/list").status == 404
    assert ab.api.get(ab.path + "%ff/memories/list").status == 400


def test_consolidation_states_of_facts(extractive_stack, store):
    retain(store, "Waiting fact.", "Finished fact.", "Failed fact.")
    for text, columns in (("Finished", "consolidated_at = NOW(6)"),
                          ("Failed", "consolidated_at = NOW(6), consolidation_failed_at = NOW(6)")):
        extractive_stack.sql(f"UPDATE memory_units u JOIN banks b USING (bank_no) SET {columns}"
                             " WHERE b.bank_id = %s AND u.text LIKE %s", store.id, text + "%")
    state = lambda name: texts(store.memories(consolidation_state=name))
    assert state("pending") == {"Waiting fact."}
    assert state("DONE") == {"Finished fact."}
    assert state("failed") == {"Failed fact."}
    failed, = store.memories(consolidation_state="failed")
    assert failed["consolidation_failed_at"] and failed["consolidated_at"]
    assert ok(store.get("/stats", refresh=True))["failed_consolidation"] == 1


# one memory

def test_retain_case_20_reading_one_memory(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "d", "tags": ["a"], "metadata": {"k": "v"},
                   "entities": [{"text": "Ada"}]})
    listed, = store.memories()
    m = ok(store.get(f"/memories/{listed['id']}"))
    assert m["type"] == listed["fact_type"] and "fact_type" not in m
    assert "Ada" in m["entities"] and isinstance(m["entities"], list)
    for key in ("text", "context", "date", "mentioned_at", "document_id", "chunk_id", "tags", "metadata", "state"):
        assert m[key] == listed[key]
    for key in ("observation_scopes", "invalidation_reason", "invalidated_at", "edited_at", "consolidated_at",
                "consolidation_failed_at", "occurred_start", "occurred_end"):
        assert m[key] is None
    assert ok(store.get(f"/memories/{listed['id'].upper()}"))["id"] == listed["id"]


def test_unknown_memories(extractive_stack, store, plain_bank):
    a = store.get("/memories/xyz")
    assert a.status == 400 and a.detail == "Invalid memory_id: 'xyz' is not a valid UUID"
    missing = str(uuid.uuid4())
    a = store.get(f"/memories/{missing}")
    assert a.status == 404 and a.detail == f"Memory unit '{missing}' not found"
    retain(store, "Mine alone.")
    mine = store.memories()[0]["id"]
    other = extractive_stack.bank()
    assert other.get(f"/memories/{mine}").status == 404
    other.make()
    assert other.get(f"/memories/{mine}").status == 404


# documents and chunks

def test_documents_are_listed_and_read(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "one", "tags": ["x"], "metadata": {"k": "v"},
                   "context": "notes"})
    listed, = ok(store.get("/documents"))["items"]
    assert listed["id"] == "one" and listed["bank_id"] == store.id
    assert listed["text_length"] == len("Ada plays chess.") and listed["memory_unit_count"] == 1
    assert listed["tags"] == ["x"] and listed["document_metadata"] == {"k": "v"}
    assert listed["matched_fields"] == [] and listed["retain_params"]["context"] == "notes"
    d = ok(store.get("/documents/one"))
    assert d["original_text"] == "Ada plays chess." and d["content_hash"] == listed["content_hash"]
    assert set(d["nodes_by_fact_type"]) == {"world", "experience", "observation"}
    assert sum(d["nodes_by_fact_type"].values()) == 1
    assert d["observation_scopes"] is None and d["attachments"] is None
    assert "original_text" not in listed
    a = store.get("/documents/none")
    assert a.status == 404 and a.detail == "Document not found"
    assert store.delete("/documents/none").detail == "Document not found"


def test_a_document_carries_an_etag(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "one"})
    first = store.get("/documents/one")
    tag = first.headers["ETag"]
    again = store.get("/documents/one", headers={"If-None-Match": tag})
    assert again.status == 304 and not again.body
    retain(store, {"content": "Ada plays go.", "document_id": "one"})
    changed = store.get("/documents/one", headers={"If-None-Match": tag})
    assert changed.status == 200 and changed.headers["ETag"] != tag


def test_retain_case_54_document_search(store):
    retain(store, {"content": "The word is Quartz.", "document_id": "plain"},
           {"content": "Half of it is 50% done.", "document_id": "a_b"},
           {"content": "Half of it is 501 done.", "document_id": "axb"})
    search = lambda q: {d["id"]: d["matched_fields"] for d in ok(store.get("/documents", q=q))["items"]}
    assert search("qUARTZ") == {"plain": ["original_text"]}
    assert search("A_B") == {"a_b": ["id"]}
    assert search("50%") == {"a_b": ["original_text"]}
    assert search("half") == {"a_b": ["original_text"], "axb": ["original_text"]}
    assert ok(store.get("/documents", q="half"))["total_is_estimate"] is False
    assert ok(store.get("/documents"))["total_is_estimate"] is False


def test_document_ids_with_awkward_characters(store):
    for name in ("a/b", "a b", "ä%", "x" * 512, "q'\"; DROP", "..", "~_~"):
        retain(store, {"content": f"Stored under {len(name)}.", "document_id": name})
        d = ok(store.get("/documents/" + quote(name)))
        assert d["id"] == name
        chunk, = ok(store.get(f"/documents/{quote(name)}/chunks"))["items"]
        assert ok(store.api.get("/v1/default/chunks/" + quote(chunk["chunk_id"]))) == chunk
    assert ok(store.get("/documents"))["total"] == 7


def test_retain_case_47_chunk_ids_do_not_collide(extractive_stack):
    stem = extractive_stack.bank().id
    one, two = extractive_stack.bank(), extractive_stack.bank()
    one.id, one.path = stem + "_b", "/v1/default/banks/" + quote(stem + "_b")
    two.id, two.path = stem, "/v1/default/banks/" + quote(stem)
    chunks_mode(one), chunks_mode(two)
    retain(one, {"content": "First text.", "document_id": "c"})
    retain(two, {"content": "Second text.", "document_id": "b_c"})
    first = ok(one.get("/documents/c/chunks"))["items"][0]
    second = ok(two.get("/documents/b_c/chunks"))["items"][0]
    assert first["chunk_id"] != second["chunk_id"]
    for chunk, text in ((first, "First text."), (second, "Second text.")):
        assert chunk["chunk_text"] == text
        assert ok(one.api.get("/v1/default/chunks/" + quote(chunk["chunk_id"])))["chunk_text"] == text


def test_chunks_are_paged_in_order(store):
    words = " ".join(f"word{i}." for i in range(2000))
    ok(store.patch("/config", {"updates": {"retain_chunk_size": 1000}}))
    retain(store, {"content": words, "document_id": "long"})
    page = ok(store.get("/documents/long/chunks", limit=4, offset=2))
    assert [c["chunk_index"] for c in page["items"]] == [2, 3, 4, 5]
    assert page["total"] > 6 and page["limit"] == 4 and page["offset"] == 2
    assert {c["document_id"] for c in page["items"]} == {"long"}
    assert store.get("/documents/none/chunks").status == 404
    for bad in ("x", "x_y", "a_b_-1", "a_b_99999999999999999999", store.id + "_long_9999"):
        assert store.api.get("/v1/default/chunks/" + quote(bad)).status == 404


def test_deleting_a_document(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "one", "entities": [{"text": "Ada"}]},
           {"content": "Ada plays go.", "document_id": "two", "entities": [{"text": "Ada"}]})
    count = lambda: {e["canonical_name"]: e["mention_count"] for e in ok(store.get("/entities"))["items"]}["Ada"]
    assert count() == 2
    a = ok(store.delete("/documents/one"))
    assert a == {"success": True, "document_id": "one", "memory_units_deleted": 1,
                 "message": "Document 'one' and 1 associated memory units deleted successfully"}
    assert count() == 1
    assert texts(store.memories()) == {"Ada plays go."}
    assert store.get("/documents/one").status == 404 and store.get("/documents/one/chunks").status == 404
    assert store.delete("/documents/one").status == 404
    assert ok(store.get("/stats"))["total_documents"] == 1


# entities and tags

def test_entities_are_listed_and_read(store):
    retain(store, {"content": "First.", "entities": [{"text": "Ada"}], "timestamp": "2024-01-01T00:00:00Z"},
           {"content": "Second.", "entities": [{"text": "ada"}, {"text": "Bob"}], "timestamp": "2024-02-01T00:00:00Z"})
    items = ok(store.get("/entities"))["items"]
    assert [(e["canonical_name"], e["mention_count"]) for e in items] == [("Ada", 2), ("Bob", 1)]
    assert items[0]["first_seen"] == "2024-01-01T00:00:00+00:00"
    assert items[0]["last_seen"] == "2024-02-01T00:00:00+00:00"
    assert ok(store.get(f"/entities/{items[0]['id']}")) == {**items[0], "observations": []}
    assert store.get("/entities/xyz").status == 400
    missing = str(uuid.uuid4())
    a = store.get(f"/entities/{missing}")
    assert a.status == 404 and a.detail == f"Entity {missing} not found"


def test_tags_are_counted_and_matched_by_pattern(store):
    for i, tags in enumerate([["user:ada", "x_y"], ["user:bob", "xzy"], ["User:Cy"], ["user:ada"]]):
        retain(store, {"content": f"Item {i}.", "tags": tags})
    listed = lambda **q: [(t["tag"], t["count"]) for t in ok(store.get("/tags", **q))["items"]]
    assert listed() == [("user:ada", 2), ("User:Cy", 1), ("user:bob", 1), ("x_y", 1), ("xzy", 1)]
    assert listed(q="user:*") == [("user:ada", 2), ("User:Cy", 1), ("user:bob", 1)]
    assert listed(q="x_y") == [("x_y", 1)]
    assert listed(q="user") == listed(q=" ") == listed(q="%") == []
    assert listed(q="*") == listed(q="") == listed()
    assert listed(limit=1, offset=1) == [("User:Cy", 1)]
    assert listed(source="mental_models") == []
    a = store.get("/tags", source="both")
    assert a.status == 422 and a.detail[0]["type"] == "literal_error"


# clearing

def test_retain_case_59_clearing_memories(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "one", "tags": ["t"], "entities": [{"text": "Ada"}]},
           {"content": "Bob plays go.", "document_id": "two"})
    everything = store.memories()
    for query, body in (("?ids=x", None), ("?type=world&foo=1", None), ("", {"ids": ["x"]}), ("", {}), ("", None)):
        if query == "" and body is None:
            a = store.api.raw("DELETE", store.path + "/memories", b"not json", {"Content-Type": "text/plain"})
        else:
            a = store.call("DELETE", "/memories" + query, body)
        assert a.status == 422, a
    assert store.memories() == everything
    assert ok(store.delete("/memories?type=opinion"))["deleted_count"] == 0
    kind = everything[0]["fact_type"]
    of_kind = sum(i["fact_type"] == kind for i in everything)
    a = ok(store.delete(f"/memories?type={kind}"))
    assert a == {"success": True, "deleted_count": of_kind,
                 "message": f"Cleared {of_kind} memory unit(s) of type '{kind}' from bank '{store.id}'"}
    assert ok(store.get("/documents"))["total"] == 2
    retain(store, "A third one.")
    left = len(store.memories())
    a = ok(store.delete("/memories"))
    assert a == {"success": True, "deleted_count": left,
                 "message": f"Cleared {left} memory unit(s) from bank '{store.id}'"}
    for path in ("/memories/list", "/documents", "/entities", "/tags"):
        assert ok(store.get(path))["total"] == 0
    assert ok(store.get("/profile"))["bank_id"] == store.id
    assert ok(store.get("/stats"))["total_nodes"] == 0


def test_clearing_a_missing_bank_is_zero(plain_bank):
    a = ok(plain_bank.delete("/memories"))
    assert a["deleted_count"] == 0 and a["success"] is True
    assert plain_bank.get("/profile").status == 404


def test_mention_count_falls_with_a_deleted_fact(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "one", "entities": [{"text": "Ada"}]},
           {"content": "Ada sings.", "document_id": "two", "entities": [{"text": "Ada"}, {"text": "Bob"}]})
    ok(store.delete("/documents/two"))
    assert [(e["canonical_name"], e["mention_count"]) for e in ok(store.get("/entities"))["items"]] == [("Ada", 1)]


def test_deleting_facts_sweeps_their_observations(plain_bank):
    plain_bank.make()
    retain(plain_bank, {"content": "Ada Lovelace likes chess.", "document_id": "one"},
           {"content": "Bob Stone likes rowing.", "document_id": "two"})
    plain_bank.idle()
    observations = plain_bank.memories(type="observation")
    assert observations, "consolidation made no observation"
    cited = {s for o in observations for s in o["source_memory_ids"]}
    one = {m["id"] for m in plain_bank.memories(document_id="one")}
    assert one & cited
    read = ok(plain_bank.get(f"/memories/{observations[0]['id']}"))
    assert read["history"] == [] and read["source_memory_ids"] == observations[0]["source_memory_ids"]
    assert {s["id"] for s in read["source_memories"]} == set(read["source_memory_ids"])
    assert ok(plain_bank.get("/documents/one"))["nodes_by_fact_type"]["observation"] >= 1
    ok(plain_bank.delete("/documents/one"))
    plain_bank.idle()
    for o in plain_bank.memories(type="observation"):
        assert not one & set(o["source_memory_ids"])
        assert o["proof_count"] == len(o["source_memory_ids"]) > 0
