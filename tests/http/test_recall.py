"""Recall: contract retain-recall 4, cases 23-30; faults 31-33, 59 where they touch recall."""
import json
import math

import pytest

from stack import ok, wait_for


def retain(bank, *items):
    items = [i if isinstance(i, dict) else {"content": i} for i in items]
    return ok(bank.post("/memories", {"items": [{"document_id": f"doc-{n}-{i['content'][:40]}", **i}
                                                for n, i in enumerate(items)]}))


@pytest.fixture
def store(plain_bank):
    """Each chunk is stored as it is: the texts of memories are known."""
    plain_bank.make(retain_extraction_mode="chunks", enable_observations=False)
    return plain_bank


def texts(answer):
    return [r["text"] for r in answer["results"]]


def found(bank, query, **body):
    return set(texts(bank.recall(query, **body)))


# 4.1 the request

@pytest.mark.parametrize("query", ["", "  ", "!!!", "???", "🎉", "\n"])
def test_retain_case_23_fault_33_queries_without_a_word(store, query):
    answer = store.post("/memories/recall", {"query": query})
    assert answer.status == 422
    assert "query must contain at least one word character after normalization" in answer.detail[0]["msg"]


@pytest.mark.parametrize("query", ["日本語", "_", "é", "a", "5", "¿qué?"])
def test_fault_33_queries_with_a_word(store, query):
    assert store.recall(query)["results"] == []


def test_retain_case_23_types(store):
    retain(store, "Ada plays chess.")
    answer = store.post("/memories/recall", {"query": "chess", "types": ["bogus", "world", "worse"]})
    assert answer.status == 422 and answer.detail[0]["loc"] == ["body", "types"]
    assert answer.detail[0]["msg"].endswith(
        "Invalid fact type(s): bogus, worse. Must be one of: experience, observation, world")
    empty = store.recall("chess", types=["opinion"])
    assert empty["results"] == [] and empty["entities"] is None
    for types in ([], None, ["world"], ["opinion", "world"]):
        assert found(store, "chess", types=types) == {"Ada plays chess."}
    assert found(store, "chess", types=["experience"]) == set()


def test_retain_case_23_long_queries_are_cut(store):
    retain(store, "Ada plays chess.", "Bob paints.")
    assert "Ada plays chess." in found(store, "chess " + "filler words go on " * 3000)
    assert "Bob paints." not in found(store, "chess " * 600 + " paints", min_scores={"semantic": 1.1})


def test_retain_case_46_order_of_checks(plain_bank):
    def status(**body):
        return plain_bank.post("/memories/recall", {"query": "x", **body}).status

    answer = plain_bank.post("/memories/recall", {"query": "x"})
    assert answer.status == 404 and answer.detail == f"Bank '{plain_bank.id}' not found"
    assert status(types=["bogus"]) == 422 and status(types=["opinion"]) == 200
    assert status(query_timestamp="yesterday") == 400 and status(budget="huge") == 422
    assert plain_bank.get("/stats").status == 404


@pytest.mark.parametrize("body", [
    {"budget": "huge"}, {"max_tokens": "many"}, {"tags_match": "some"}, {"include": None}, {"include": 5},
    {"min_scores": {"final": "x"}}, {"temporal_window": {"start": "2026-01-02", "end": "2026-01-01"}},
    {"temporal_window": {"start": "2026-01-02"}}, {"tags": "a"}, {"tag_groups": [{}]},
    {"tag_groups": [{"and": []}]}, {"query": None}, {"query": 5},
])
def test_faults_of_the_request(store, body):
    answer = store.post("/memories/recall", {"query": "x", **body})
    assert answer.status == 422 and isinstance(answer.detail, list)


def test_budget_faults_are_of_type_enum(store):
    assert store.post("/memories/recall", {"query": "x", "budget": "huge"}).detail[0]["type"] == "enum"


def test_equal_window_bounds_are_accepted(store):
    retain(store, "Ada plays chess.")
    window = {"start": "2020-01-01T00:00:00Z", "end": "2020-01-01T00:00:00"}
    assert found(store, "chess", temporal_window=window) == {"Ada plays chess."}


# 4.2 the answer

def test_shape_of_the_answer(store):
    retain(store, {"content": "Ada plays chess.", "document_id": "d", "tags": ["t"], "metadata": {"k": "v"},
                   "context": "club night", "timestamp": "2024-01-15T10:30:00Z", "entities": [{"text": "Ada"}]})
    answer = store.recall("chess")
    assert set(answer) == {"results", "trace", "entities", "chunks", "source_facts", "source_facts_truncated"}
    assert answer["trace"] is answer["chunks"] is answer["source_facts"] is answer["source_facts_truncated"] is None
    hit, = answer["results"]
    assert set(hit) == {"id", "text", "type", "entities", "context", "occurred_start", "occurred_end", "mentioned_at",
                        "document_id", "metadata", "chunk_id", "tags", "source_fact_ids", "scores", "attachments"}
    assert hit["type"] == "world" and hit["entities"] == ["Ada"] and hit["context"] == "club night"
    assert hit["mentioned_at"] == "2024-01-15T10:30:00+00:00" and hit["occurred_start"] is None
    assert hit["document_id"] == "d" and hit["chunk_id"] == f"{store.id}_d_0"
    assert hit["metadata"] == {"k": "v"} and hit["tags"] == ["t"]
    assert set(hit["scores"]) == {"final", "reranker", "semantic", "keyword"} and hit["scores"]["reranker"] is None
    assert hit["scores"]["final"] > 0 and hit["scores"]["keyword"] > 0
    ada = answer["entities"]["Ada"]
    assert ada["canonical_name"] == "Ada" and ada["observations"] == [] and ada["entity_id"]
    off = store.recall("chess", include={"entities": None})
    assert off["entities"] is None and off["results"][0]["entities"] is None
    assert store.recall("chess", include={"source_facts": {}})["source_facts"] == {}


def test_an_untagged_fact_has_an_empty_list(store):
    retain(store, "Ada plays chess.")
    assert store.recall("chess")["results"][0]["tags"] == []


def test_words_of_context_and_entities_are_found(store):
    retain(store, {"content": "It went well.", "context": "lighthouse inspection"},
           {"content": "They met again.", "entities": [{"text": "Zebulon"}]})
    assert "It went well." in found(store, "lighthouses")
    assert "They met again." in found(store, "zebulon")
    scores = {r["text"]: r["scores"]["keyword"] for r in store.recall("zebulon")["results"]}
    assert scores["They met again."] > 0


def test_switches_of_the_arms(store):
    retain(store, "Ada plays chess.")
    assert store.recall("chess")["results"][0]["scores"]["semantic"] is not None
    ok(store.patch("/config", {"updates": {"enable_text_search": False}}))
    hit, = store.recall("chess")["results"]
    assert hit["scores"]["keyword"] is None and hit["scores"]["semantic"] is not None


# 4.3 tags

TABLE = {
    ("any", "ab"): {"none", "a", "b", "ab"}, ("all", "ab"): {"none", "ab"}, ("any_strict", "ab"): {"a", "b", "ab"},
    ("all_strict", "ab"): {"ab"}, ("exact", "ab"): {"ab"}, ("exact", ""): {"none"}, ("any", ""): {"none", "a", "b", "ab"},
    ("any_strict", ""): {"none", "a", "b", "ab"}, ("exact", "a"): {"a"}, ("all_strict", "a"): {"a", "ab"},
    ("any_strict", "A"): set(),
}


@pytest.mark.parametrize("match,tags", TABLE)
def test_fault_32_retain_case_24_tag_matching_table(extractive_stack, tagged, match, tags):
    for sent in (list(tags), list(reversed(tags)) + list(tags)):
        got = found(tagged, "lantern", tags=sent, tags_match=match)
        assert {t.split()[-1] for t in got} == TABLE[match, tags]


@pytest.fixture(scope="module")
def tagged(extractive_stack):
    bank = extractive_stack.bank()
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    retain(bank, *[{"content": f"The lantern is {name}", "tags": tags} for name, tags in
                   {"none": [], "a": ["a"], "b": ["b"], "ab": ["a", "b"]}.items()])
    return bank


def test_retain_case_24_tags_and_groups_exclude_each_other(tagged):
    for tags in ([], ["a"]):
        answer = tagged.post("/memories/recall", {"query": "x", "tags": tags, "tag_groups": []})
        assert answer.status == 422 and "mutually exclusive" in answer.detail[0]["msg"]
    ok(tagged.post("/memories/recall", {"query": "x", "tags": None, "tag_groups": [{"tags": ["a"]}]}))


def test_fuzzy_leaves_wait_for_their_release(tagged):
    fuzzy = {"tags": ["a"], "resolve": "fuzzy"}
    for groups in ([fuzzy], [{"not": {"or": [{"tags": ["b"]}, fuzzy]}}]):
        answer = tagged.post("/memories/recall", {"query": "tags", "tag_groups": groups})
        assert answer.status == 501 and "fuzzy" in answer.detail
    assert tagged.post("/memories/recall", {"query": "tags", "tag_groups": [{"tags": [], "resolve": "fuzzy"}]}).status == 200


def test_retain_case_25_not_keeps_untagged_facts(tagged):
    def names(*groups, **body):
        return {t.split()[-1] for t in found(tagged, "lantern", tag_groups=list(groups), **body)}

    assert names({"not": {"tags": ["a"]}}) == {"none", "b"}
    assert names({"tags": ["a"]}) == {"a", "ab"}
    assert names({"or": [{"tags": ["a"], "match": "exact"}, {"tags": [], "match": "exact"}]}) == {"a", "none"}
    assert names({"tags": ["a"]}, {"tags": ["b"]}) == {"ab"}
    assert names({"and": [{"tags": ["a"]}, {"not": {"tags": ["b"]}}]}) == {"a"}
    assert names({"tags": ["a"], "match": "any"}, tags_match="exact") == {"none"}


# 4.7 scores

def test_retain_case_26_fused_order_without_a_reranker(store):
    retain(store, {"content": "The zebra zebra zebra crossing is closed.", "timestamp": "2020-01-01T00:00:00Z"},
           {"content": "A long report on streets, traffic lights and one zebra in the far corner of the town map.",
            "timestamp": "2026-11-01T00:00:00Z"})
    for fusion in ("scores", "rrf"):
        ok(store.patch("/config", {"updates": {"recall_fusion": fusion}}))
        results = store.recall("zebra crossing closed")["results"]
        assert results[0]["text"].startswith("The zebra")
        finals = [r["scores"]["final"] for r in results]
        assert finals == sorted(finals, reverse=True) and all(r["scores"]["reranker"] is None for r in results)


def recency_of(bank, text, at):
    """The recency that a final score of a lone result tells: base 1, no proof."""
    hit, = [r for r in bank.recall(text, query_timestamp=at)["results"] if text in r["text"]]
    return (hit["scores"]["final"] - 1) / 0.2 + 0.5


@pytest.mark.parametrize("said,want", [
    ("2026-03-15T12:00:00Z", 1.0), ("2027-01-01T00:00:00Z", 1.0), ("2025-02-08T12:00:00Z", 0.1), ("unset", 0.5),
    ("2026-01-01T12:00:00Z", 1 - 73 / 365),
])
def test_retain_case_27_recency(plain_bank, said, want):
    plain_bank.make(retain_extraction_mode="chunks", enable_observations=False)
    retain(plain_bank, {"content": "quagga", "timestamp": said})
    got = recency_of(plain_bank, "quagga", "2026-03-15T12:00:00Z")
    assert math.isclose(got, want, abs_tol=1e-6)


def test_retain_case_27_a_whole_month_counts_half_at_most(bank, llm):
    bank.make(enable_observations=False)
    llm.script({"scope": "retain_*", "reply": {"json": {"facts": [{
        "what": "quagga", "fact_kind": "event", "fact_type": "world", "entities": [],
        "occurred_start": "2026-03-01T00:00:00Z", "occurred_end": "2026-03-31T23:59:59Z"}]}}})
    retain(bank, {"content": "The quagga month.", "timestamp": "2026-03-15T00:00:00Z"})
    assert recency_of(bank, "quagga", "2026-03-15T12:00:00Z") <= 0.5 + 1e-6


def test_retain_case_28_floors(store):
    retain(store, "Ada plays chess.", "Bob paints boats.")
    assert found(store, "unrelated gibberish", min_scores={"semantic": 1.1}) == set()
    only_words = store.recall("chess", min_scores={"semantic": 1.1})["results"]
    assert [r["text"] for r in only_words] == ["Ada plays chess."] and only_words[0]["scores"]["semantic"] is None
    assert found(store, "chess", min_scores={"final": 99}) == set()
    assert found(store, "chess", min_scores={"keyword": 99, "semantic": 1.1}) == set()
    score = store.recall("chess")["results"][0]["scores"]
    assert found(store, "chess", min_scores={"keyword": score["keyword"], "semantic": 1.1}) == {"Ada plays chess."}
    assert found(store, "chess", min_scores={"final": None, "semantic": None}) >= {"Ada plays chess."}


# 4.8 selection

def test_retain_case_29_what_fits_is_packed(store):
    first, long, third = "zebra zebra zebra", "zebra zebra" + " word and more" * 40, "one zebra"
    retain(store, first, long, third)
    floors = {"min_scores": {"semantic": 1.1}}
    order = texts(store.recall("zebra", **floors))
    assert set(order) == {first, long, third}
    assert texts(store.recall("zebra", max_tokens=12, **floors)) == [t for t in order if len(t) < 30]
    assert len(texts(store.recall("zebra", max_tokens=1, **floors))) == 1
    assert texts(store.recall("zebra", max_tokens=1, **floors)) == order[:1]


def test_retain_case_30_no_results_but_chunks(store):
    retain(store, "zebra one two three", "zebra four five six", "zebra seven eight nine")
    for max_tokens in (0, -5):
        answer = store.recall("zebra", max_tokens=max_tokens, include={"chunks": {}})
        assert answer["results"] == [] and len(answer["chunks"]) == 3
    answer = store.recall("zebra", max_tokens=0, include={"chunks": {"max_tokens": 7}})
    chunks = list(answer["chunks"].values())
    assert len(chunks) == 2 and [c["truncated"] for c in chunks] == [False, True]
    assert set(chunks[0]) == {"id", "text", "chunk_index", "truncated", "attachments"}
    assert chunks[1]["text"] and "zebra seven eight nine zebra four".find(chunks[1]["text"].split()[0]) >= 0


def test_retain_case_58_chunks_follow_their_documents_tags(store):
    retain(store, {"content": "zebra stripes", "document_id": "d", "tags": ["a"]})
    answer = store.recall("zebra", tags=["a"], tags_match="all_strict", include={"chunks": {}})
    assert len(answer["chunks"]) == 1
    # a second item of the document carries another tag: the document has both, which is not exactly [a]
    retain(store, {"content": "zebra hooves", "document_id": "e", "tags": ["a"]},
           {"content": "other words", "document_id": "e", "tags": ["b"]})
    answer = store.recall("zebra", tags=["a"], tags_match="exact", include={"chunks": {}})
    assert set(texts(answer)) == {"zebra stripes", "zebra hooves"}
    assert [c["text"] for c in answer["chunks"].values()] == ["zebra stripes"]


def test_large_numbers_are_defined(store):
    retain(store, "Ada plays chess.")
    for n in (2147483648, 9223372036854775807, -9223372036854775808):
        ok(store.post("/memories/recall", {"query": "chess", "max_tokens": n, "include": {
            "chunks": {"max_tokens": n}, "source_facts": {"max_tokens": n, "max_tokens_per_observation": n}}}))
    answer = store.post("/memories/recall", {"query": "chess", "max_tokens": 1e300})
    assert answer.status in (200, 422)


# observations

def test_source_facts_of_observations(bank):
    retain(bank, "Alice likes green tea.")
    bank.idle()
    answer = bank.recall("green tea", types=["observation"], include={"source_facts": {}})
    hit, = answer["results"]
    assert hit["type"] == "observation" and len(hit["source_fact_ids"]) == 1
    source = answer["source_facts"][hit["source_fact_ids"][0]]
    assert source["text"] == "Alice likes green tea." and source["scores"] is None and source["tags"] is None
    assert answer["source_facts_truncated"] is False
    tight = bank.recall("green tea", types=["observation"], include={"source_facts": {"max_tokens": 0}})
    assert tight["source_facts"] == {} and tight["source_facts_truncated"] is True
    assert tight["results"][0]["source_fact_ids"] == hit["source_fact_ids"]
    own = bank.recall("green tea", types=["observation"],
                      include={"source_facts": {"max_tokens": 0, "max_tokens_per_observation": 500}})
    assert len(own["source_facts"]) == 1


def test_observations_inherit_the_entities_of_their_sources(bank):
    retain(bank, {"content": "Alice likes green tea.", "entities": [{"text": "Teahouse"}]})
    bank.idle()
    hit, = bank.recall("green tea", types=["observation"])["results"]
    assert "Teahouse" in hit["entities"]


def test_retain_case_31_preferred_observations(bank):
    retain(bank, "Alice likes green tea.")
    bank.idle()
    assert {r["type"] for r in bank.recall("green tea")["results"]} == {"world", "observation"}
    preferred = bank.recall("green tea", prefer_observations=True)["results"]
    assert [r["type"] for r in preferred] == ["observation"]
    assert [r["type"] for r in bank.recall("green tea", prefer_observations=True, types=["world"])["results"]] == ["world"]
    ok(bank.patch("/config", {"updates": {"recall_prefer_observations": True}}))
    assert [r["type"] for r in bank.recall("green tea", prefer_observations=None)["results"]] == ["observation"]
    assert len(bank.recall("green tea", prefer_observations=False)["results"]) == 2


def test_deleted_memories_are_not_found(store):
    retain(store, {"content": "zebra one", "document_id": "one"}, {"content": "zebra two", "document_id": "two"})
    ok(store.delete("/documents/one"))
    assert found(store, "zebra") == {"zebra two"}
    ok(store.delete("/memories"))
    assert found(store, "zebra") == set()


# services

def test_a_lost_embedding_service_leaves_the_keyword_arm(own_stack):
    stack = own_stack(settings={"embeddings_provider": "openai", "embeddings_max_retries": 0, "llm_provider": "none"})
    stack.settings["embeddings_openai_base_url"] = stack.llm.base_url
    stack.settings["embeddings_openai_api_key"] = "test-key-123"
    stack.settings["embeddings_openai_model"] = "scripted"
    stack.write_config()
    stack.restart("memories")
    bank = stack.bank(make=True)
    wait_for("hindsight-memories", lambda: bank.get("/memories/list").status == 200)
    retain(bank, "Ada plays chess.")
    assert bank.recall("chess")["results"][0]["scores"]["semantic"] is not None
    stack.llm.script({"scope": "embeddings", "reply": {"status": 500, "body": {"error": {"message": "no"}}}})
    hit, = bank.recall("chess")["results"]
    assert hit["scores"]["semantic"] is None and hit["scores"]["keyword"] > 0
    ok(bank.patch("/config", {"updates": {"enable_text_search": False}}))
    answer = bank.post("/memories/recall", {"query": "chess"})
    assert answer.status == 500 and isinstance(json.loads(answer.body)["detail"], str)
