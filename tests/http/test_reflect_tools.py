"""Reflect: the tools and what they show; contract reflect A9, A10."""
import json
import re

from reflect_calls import (reflect, everything, call, calls, loop, closing, loop_calls, tool_messages,
                           output, memory_texts, quiet, facts, fact_ids, modelled)  # noqa: F401
from stack import ok

# ---- tools ----

ARGUMENTS = [("None", True), (0, True), (None, True), (" null ", True), (False, True), ("", True), (10, True),
             ("2000", True), (2000.9, True), (90000, True), ("bogus", False), ("1.5x", False), ([], False)]


def test_reflect_case_29_integer_arguments(facts, llm):
    turn = [("recall", {"query": "apples", "reason": "r", "max_tokens": v}) for v, _ in ARGUMENTS]
    llm.script(loop(calls(*turn), tool_forced="recall"))
    answer = everything(facts)
    results = [t["output"] for t in answer["trace"]["tool_calls"] if t["tool"] == "recall"]
    for (value, good), result in zip(ARGUMENTS, results):
        assert ("error" not in result) == good, value
        assert good or "max_tokens" in result["error"]
    messages = tool_messages(loop_calls(llm)[2])
    assert len(messages) == 1 + len(ARGUMENTS)


def test_reflect_query_is_needed(facts, llm):
    llm.script(loop(calls(("recall", {"reason": "r"}), ("search_observations", {"query": ""}),
                          ("recall", {"query": "apples"})), tool_forced="recall"))
    answer = everything(facts)
    results = [t["output"] for t in answer["trace"]["tool_calls"]][1:]
    assert "recall" in results[0]["error"] and "search_observations" in results[1]["error"]
    assert results[2]["memories"]


def test_reflect_case_30_expand(bank, llm):
    quiet(bank)
    bank.retain("Alice likes green apples.", document_id="da")
    bank.retain("Bob likes old trains.", document_id="db")
    ids = fact_ids(bank)
    a, b = ids["Alice likes green apples."], ids["Bob likes old trains."]
    missing = "99999999-9999-4999-8999-999999999999"
    llm.script(loop(call("search_observations", query="zzz", reason="r"), n=1),
               loop(call("expand", memory_ids=["bad", a, b, missing, a], depth="chunk", reason="r"), tool_forced="recall"),
               closing(call("done", answer="A.", answer_found=True, memory_ids=[b, missing])))
    answer = everything(bank)
    result = output(answer, "expand")
    assert result["count"] == 5
    rows = result["results"]
    assert [r["memory_id"] for r in rows] == ["bad", a, b, missing, a]
    assert "error" in rows[0] and "memory" not in rows[0] and "error" in rows[3]
    assert rows[1]["memory"] == {"id": a, "text": "Alice likes green apples.", "type": "world", "context": None} or \
        rows[1]["memory"]["text"] == "Alice likes green apples."
    assert rows[1]["chunk"]["document_id"] == "da" and rows[2]["chunk"]["document_id"] == "db"
    assert "Bob" in rows[2]["chunk"]["text"]
    assert memory_texts(answer) == ["Bob likes old trains."]


def test_reflect_expand_refusals(facts, llm):
    llm.script(loop(calls(("expand", {"depth": "chunk"}), ("expand", {"memory_ids": ["x", "y"], "depth": "chunk"}),
                          ("expand", {"memory_ids": "x", "depth": "chunk"})), n=2))
    results = [t["output"] for t in everything(facts)["trace"]["tool_calls"] if t["tool"] == "expand"]
    assert results[0].keys() == {"error"}
    assert set(results[1]["details"]) == {"x", "y"} and results[1]["error"]
    assert set(results[2]["details"]) == {"x"}


def test_reflect_case_31_source_text_follows_its_document(bank, llm, stack):
    quiet(bank)
    bank.retain("Alice likes green apples.", document_id="da", tags=["a"])
    bank.retain("Bob likes old trains.", document_id="db", tags=["b"])
    ids = fact_ids(bank)
    a, b = ids["Alice likes green apples."], ids["Bob likes old trains."]
    # the fact stays in scope, its document leaves it
    stack.sql("UPDATE documents SET tags = '[\"b\"]' WHERE document_id = 'da' AND bank_no ="
              " (SELECT bank_no FROM banks WHERE bank_id = %s)", bank.id)
    missing = "99999999-9999-4999-8999-999999999999"
    llm.script(loop(call("expand", memory_ids=[a, b, missing], depth="document", reason="r"), n=2))
    rows = output(everything(bank, tags=["a"], tags_match="any_strict"), "expand")["results"]
    assert rows[0]["source_withheld"] and "chunk" not in rows[0] and "document" not in rows[0]
    assert rows[0]["memory"]["text"] == "Alice likes green apples."
    assert rows[1]["error"] == rows[2]["error"] and "memory" not in rows[1]


def test_reflect_case_32_expand_to_the_document(bank, llm, stack):
    quiet(bank)
    bank.retain("Alice likes green apples. She ate nine.", document_id="da", metadata={"source": "mail"})
    a = list(fact_ids(bank).values())[0]

    def document():
        llm.reset()
        llm.script(loop(call("expand", memory_ids=[a], depth="document", reason="r"), n=2))
        return output(everything(bank), "expand")["results"][0]["document"]

    got = document()
    assert got["id"] == "da" and got["full_text"] == "Alice likes green apples. She ate nine."
    where = "WHERE document_id = 'da' AND bank_no = (SELECT bank_no FROM banks WHERE bank_id = %s)"
    inner = json.dumps({"metadata": {"k": "v"}})
    for stored, metadata in ((inner, {"k": "v"}), (json.dumps(inner), {"k": "v"}), ("{oops", None), ("[]", None),
                             ('{"metadata": "x"}', None)):
        stack.sql(f"UPDATE documents SET retain_params = '{stored.replace(chr(92), chr(92) * 2)}' {where}", bank.id)
        assert document()["metadata"] == metadata, stored


def test_reflect_case_40_models_budget(modelled, llm, stack):
    long = "Alice likes apples. " * 60
    where = "WHERE bank_no = (SELECT bank_no FROM banks WHERE bank_id = %s)"
    modelled.model("Second", "What else does Alice like?")
    modelled.model("Third", "And what does Alice like?")
    stack.sql(f"UPDATE mental_models SET content = '{long}' {where}", modelled.id)
    ids = [m["id"] for m in ok(modelled.get("/mental-models"))["items"]]
    llm.reset()
    llm.script(loop(call("read_mental_models", mental_model_ids=ids, max_tokens=1, reason="r"), n=2))
    answer = everything(modelled, reflect_search_mental_models_max_tokens=1)
    first, *rest = output(answer, "search_mental_models")["mental_models"]
    assert first["content"] == long and "snippet" not in first
    assert len(rest) == 2
    for m in rest:
        assert m["snippet"] == long[:280].strip() and m["content_chars"] == len(long) and "content" not in m
    read = output(answer, "read_mental_models")
    assert len(read["mental_models"]) == 3 and "not_read" not in read


def test_reflect_case_40_excluded_models_cannot_be_read(modelled, llm):
    ids = [m["id"] for m in ok(modelled.get("/mental-models"))["items"]]
    llm.reset()
    llm.script(loop(calls(("read_mental_models", {"mental_model_ids": ids, "reason": "r"}),
                          ("read_mental_models", {"mental_model_ids": "other", "reason": "r"})), n=2))
    results = [t["output"] for t in everything(modelled, exclude_mental_model_ids=ids)["trace"]["tool_calls"]
               if t["tool"] == "read_mental_models"]
    assert results[0].keys() == {"error"}
    assert results[1] == {"mental_models": [], "not_read": ["other"]}


def test_reflect_case_41_entities_and_their_default(bank, llm):
    bank.make()
    bank.retain("We saw that Alice met Robert in Paris.")
    bank.idle()

    def observations(**body):
        return output(everything(bank, "Whom did Alice meet?", **body), "search_observations")["observations"]

    on = observations()
    off = observations(reflect_search_observations_include_entities=False)
    assert on and any("entities" in o for o in on)
    assert [o["id"] for o in on] == [o["id"] for o in off]
    assert not any("entities" in o for o in off)
    ok(bank.patch("/config", {"updates": {"reflect_default_options":
                                          {"reflect_search_observations_include_entities": False}}}))
    assert not any("entities" in o for o in observations())
    assert any("entities" in o for o in observations(reflect_search_observations_include_entities=True))
    assert bank.patch("/config", {"updates": {"reflect_default_options": {"foo": 1}}}).status == 400


def test_reflect_case_44_metadata_and_context(bank, llm):
    quiet(bank)
    context = "c" * 1000
    bank.retain("Alice likes green apples.", metadata={"source": "mail"}, context=context)
    answer = everything(bank)
    shown = tool_messages(loop_calls(llm)[2])[1]["memories"][0]
    assert shown["metadata"] == {"source": "mail"}
    assert shown["context"] == "c" * 200 + "..."
    fact = answer["based_on"]["memories"][0]
    assert fact["context"] == context and fact["metadata"] == {"source": "mail"}


def test_reflect_shown_results_are_short(facts, llm):
    reflect(facts)
    found = tool_messages(loop_calls(llm)[2])[1]
    assert "count" not in found
    for m in found["memories"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", m["mentioned_at"])
        assert not {"chunk_id", "document_id", "scores"} & set(m)
        assert m["fact_type"] == "world"
