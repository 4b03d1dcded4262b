"""Consolidation of facts into observations: what a reply may do, failures, rounds."""
import threading
import time

import pytest

from stack import ok, wait_for

CHUNKS = {"retain_extraction_mode": "chunks", "enable_auto_consolidation": False}


@pytest.fixture
def facts_bank(bank):
    """A bank whose items are stored as they are and consolidated only when asked."""
    configure(bank, **CHUNKS)
    return bank


def configure(bank, **updates):
    ok(bank.patch("/config", {"updates": updates}))


def add(bank, *texts, **item):
    """Store each text as one fact; their ids in order."""
    ids = []
    for text in texts:
        bank.retain(text, **item)
        ids.append(next(m["id"] for m in bank.memories(type="world") if m["text"] == text and m["id"] not in ids))
    return ids


def observations(bank):
    """As the list shows them (with proof_count)."""
    return bank.memories(type="observation")


def texts(bank):
    return sorted(o["text"] for o in observations(bank))


def counts(op):
    assert op["status"] == "completed", op
    return op["result_metadata"]


def reply(*creates, updates=(), deletes=(), **rule):
    """A rule: the consolidation call answers with these actions."""
    value = {"creates": [{"text": t, "source_fact_ids": ids, "reason": "r"} for t, ids in creates],
             "updates": [{"observation_id": o, "text": t, "source_fact_ids": ids, "reason": "r"}
                         for o, t, ids in updates],
             "deletes": list(deletes)}
    return {"scope": "consolidation", "reply": {"json": value, **rule.pop("answer", {})}, **rule}


def calls(llm):
    return [c for c in llm.calls("consolidation")]


def row(stack, memory_id):
    return stack.sql("SELECT u.*, c.last_write_at FROM memory_units u JOIN bank_clock c ON c.bank_no = u.bank_no "
                     "WHERE u.id = %s", memory_id)[0]


def waiting(stack, bank):
    return stack.sql("SELECT COUNT(*) AS n FROM memory_units u JOIN banks b ON b.bank_no = u.bank_no WHERE "
                     "b.bank_id = %s AND u.fact_type <> 'observation' AND u.consolidated_at IS NULL AND "
                     "u.consolidation_failed_at IS NULL", bank.id)[0]["n"]


def sources(stack, observation_id):
    return {r["id"] for r in stack.sql(
        "SELECT s.id FROM observation_sources x JOIN memory_units o ON o.bank_no = x.bank_no AND o.unit_no = "
        "x.observation_no JOIN memory_units s ON s.bank_no = x.bank_no AND s.unit_no = x.source_no WHERE o.id = %s",
        observation_id)}


def test_retain_case_35_proof_count_is_distinct_sources(facts_bank, llm, stack):
    a, b, c = add(facts_bank, "Ana likes green tea", "Ana drinks tea daily", "Ana bought tea in Porto")
    llm.script(reply(("Ana loves tea", [a, b, c, a]), times=1))
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert (o["text"], o["proof_count"]) == ("Ana loves tea", 3)
    [d] = add(facts_bank, "Ana ordered more tea")
    llm.script(reply(updates=[(o["id"], "Ana loves tea a lot", [d, d])], times=1))
    result = counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert (o["text"], o["proof_count"]) == ("Ana loves tea a lot", 4)
    assert sources(stack, o["id"]) == {a, b, c, d}
    assert (result["observations_created"], result["observations_updated"], result["memories_processed"]) == (0, 1, 1)


def test_retain_case_36_who_may_update_what(facts_bank, llm):
    [a] = add(facts_bank, "The harbour office opens at nine", tags=["a", "b"])
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert sorted(o["tags"]) == ["a", "b"]

    [b] = add(facts_bank, "The harbour office opens at ten")
    llm.script(reply(updates=[(o["id"], "The harbour office opens at ten", [b])], times=1))
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert (o["text"], sorted(o["tags"])) == ("The harbour office opens at ten", ["a", "b"])

    [c] = add(facts_bank, "The harbour office opens at eight", tags=["a"])
    llm.script(reply(updates=[(o["id"], "The harbour office opens at eight", [c])], times=1))
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert (o["text"], sorted(o["tags"])) == ("The harbour office opens at eight", ["a", "b"])

    # a fact tagged [c] does not see it
    [d] = add(facts_bank, "The harbour office opens at seven", tags=["c"])
    llm.script(reply(updates=[(o["id"], "The harbour office opens at seven", [d])], times=1))
    result = counts(facts_bank.consolidate())
    assert result["unresolved_actions"] == 1
    assert texts(facts_bank) == ["The harbour office opens at eight"]


def test_retain_case_37_equal_texts_fold(facts_bank, llm, stack):
    [a] = add(facts_bank, "Bob sails on Sundays")
    llm.script(reply(("Bob is a sailor on Sundays", [a]), times=1))
    counts(facts_bank.consolidate())
    [b] = add(facts_bank, "Bob was seen sailing on Sunday")
    llm.script(reply(("Bob is  a sailor\non Sundays", [b]), times=1))
    result = counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert (o["text"], o["proof_count"]) == ("Bob is a sailor on Sundays", 2)
    assert (result["observations_created"], result["observations_merged"]) == (0, 1)

    c, d = add(facts_bank, "Cleo paints boats", "Cleo painted a boat again")
    llm.script(reply(("Cleo paints", [c]), ("Cleo paints", [d]), ("", [d]), ("  ", [c]), times=1))
    counts(facts_bank.consolidate())
    cleo = [o for o in observations(facts_bank) if o["text"] == "Cleo paints"]
    assert len(cleo) == 1 and cleo[0]["proof_count"] == 2
    assert sources(stack, cleo[0]["id"]) == {c, d}

    [e] = add(facts_bank, "Cleo paints boats at night")
    llm.script(reply(("cleo paints", [e]), times=1))
    counts(facts_bank.consolidate())
    assert texts(facts_bank) == ["Bob is a sailor on Sundays", "Cleo paints", "cleo paints"]


def test_retain_case_38_shown_for_a_sibling(facts_bank, llm):
    add(facts_bank, "Dora keeps bees on the roof", "Quentin repairs violins")
    counts(facts_bank.consolidate())
    bees = next(o for o in observations(facts_bank) if "bees" in o["text"])
    a, b = add(facts_bank, "Dora has more bees on her roof", "The weather turned cold")
    # shown for the first fact only, updated on behalf of the second
    llm.script(reply(("Dora has more bees", [a]), updates=[
        (bees["id"], "Dora keeps bees, in the cold too", [b]),
        ("00000000-0000-7000-8000-000000000000", "Nobody knows this one", [b])], times=1))
    result = counts(facts_bank.consolidate())
    assert result["unresolved_actions"] == 1 and result["observations_updated"] == 1
    assert texts(facts_bank) == ["Dora has more bees", "Dora keeps bees, in the cold too", "Quentin repairs violins"]


def test_miscopied_ids_are_repaired(facts_bank, llm):
    [a] = add(facts_bank, "Emil owns a red bicycle")
    wrong = ("0" if a[20] != "0" else "1").join((a[:20], a[21:]))
    llm.script(reply(("Emil cycles", [wrong]), times=1))
    result = counts(facts_bank.consolidate())
    assert result["observations_created"] == 1 and texts(facts_bank) == ["Emil cycles"]


def test_retain_case_39_one_fact_always_fails(facts_bank, llm, stack):
    lines = [f"Fact number {n} of the ledger" for n in range(7)] + ["POISON in the ledger"]
    add(facts_bank, *lines)
    llm.script({"scope": "consolidation", "when": {"contains": "POISON"}, "reply": {"text": "no json here"}})
    result = counts(facts_bank.consolidate())
    assert (result["memories_processed"], result["memories_failed"]) == (7, 1)
    assert result["llm_batch_failures"] >= 1
    assert len(observations(facts_bank)) == 7 and waiting(stack, facts_bank) == 0
    # marked: the next run ignores it
    n = len(calls(llm))
    assert counts(facts_bank.consolidate())["status"] == "no_new_memories"
    assert len(calls(llm)) == n
    stack.sql("UPDATE memory_units u JOIN banks b ON b.bank_no = u.bank_no SET consolidation_failed_at = NULL "
              "WHERE b.bank_id = %s", facts_bank.id)
    llm.reset()
    assert counts(facts_bank.consolidate())["memories_processed"] == 1
    assert "POISON in the ledger" in texts(facts_bank)


def test_retain_case_40_rounds_of_a_limit(facts_bank, llm):
    configure(facts_bank, consolidation_max_memories_per_round=20)
    ok(facts_bank.post("/memories", {"items": [{"content": f"Parcel {n} arrived in room {n}"} for n in range(50)]}))
    first = counts(facts_bank.consolidate())
    facts_bank.idle()
    ops = [o for o in ok(facts_bank.get("/operations", limit=100, type="consolidation"))["operations"]]
    done = [facts_bank.operation(o["id"])["result_metadata"]["memories_processed"] for o in ops]
    assert sorted(done) == [10, 20, 20] and first["memories_processed"] == 20
    assert len(observations(facts_bank)) == 50


def test_switched_off_chain_stops_but_a_manual_one_goes_on(facts_bank, llm, stack):
    """Auto-consolidation is off here: the chain of a manual run ends only when nothing waits."""
    configure(facts_bank, consolidation_max_memories_per_round=2)
    add(facts_bank, "One", "Two", "Three")
    facts_bank.consolidate()
    facts_bank.idle()
    assert waiting(stack, facts_bank) == 0


def test_retain_case_41_source_deleted_during_the_call(facts_bank, llm, stack):
    a, b = add(facts_bank, "Fay moved to Rome", "Fay rents a flat in Rome", document_id=None)
    doc = stack.sql("SELECT document_id FROM memory_units WHERE id = %s", a)[0]["document_id"]
    llm.script(reply(("Fay lives in Rome", [a, b]), ("Fay moved", [a]), times=1, answer={"delay": 1.5}))
    op = ok(facts_bank.post("/consolidate"))["operation_id"]
    wait_for("the call", lambda: calls(llm))
    ok(facts_bank.delete("/documents/" + doc))
    counts(facts_bank.wait(op))
    [o] = observations(facts_bank)
    assert (o["text"], o["proof_count"]) == ("Fay lives in Rome", 1)
    assert sources(stack, o["id"]) == {b}


def test_retain_case_48_facts_left_over(facts_bank, llm, stack):
    a, b, c = add(facts_bank, "Gus has a dog", "Gus has a cat", "Gus has a bird")
    llm.script(reply(("Gus has pets", [a, b]), times=1), reply(times=1))
    counts(facts_bank.consolidate())
    got = calls(llm)
    assert len(got) == 2
    second = str(got[1]["body"]["messages"])
    assert c in second and "[" + a not in second and "[" + b not in second
    assert waiting(stack, facts_bank) == 0
    assert texts(facts_bank) == ["Gus has pets"]


def test_retain_case_48_empty_replies(facts_bank, llm, stack):
    ids = add(facts_bank, "Hal swims", "Hal runs", "Hal rows")
    llm.script(reply())
    result = counts(facts_bank.consolidate())
    shown = [sum("[" + i + "]" in str(c["body"]["messages"]) for i in ids) for c in calls(llm)]
    assert shown == [3, 3, 1, 1, 1]
    assert waiting(stack, facts_bank) == 0 and result["skipped"] == 3 and texts(facts_bank) == []


def test_retain_case_48_one_fact_one_call(facts_bank, llm, stack):
    add(facts_bank, "Ida knits")
    llm.script(reply())
    counts(facts_bank.consolidate())
    assert len(calls(llm)) == 1 and waiting(stack, facts_bank) == 0


def test_retain_case_49_edited_during_the_call(facts_bank, llm, stack):
    [a] = add(facts_bank, "Jon works in Bern")
    llm.script(reply(("Jon works in Bern", [a]), times=1, answer={"delay": 1.5}))
    op = ok(facts_bank.post("/consolidate"))["operation_id"]
    wait_for("the call", lambda: calls(llm))
    stack.sql("UPDATE memory_units SET text = 'Jon works in Basel', updated_at = NOW(6), edited_at = NOW(6) "
              "WHERE id = %s", a)
    counts(facts_bank.wait(op))
    assert texts(facts_bank) == ["Jon works in Basel"]
    assert "Jon works in Basel" in str(calls(llm)[1]["body"]["messages"])


def test_retain_case_50_update_beats_delete(facts_bank, llm):
    add(facts_bank, "Kim plays chess")
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    [b] = add(facts_bank, "Kim plays chess and go")
    llm.script(reply(updates=[(o["id"], "Kim plays chess and go", [b])],
                     deletes=[{"observation_id": o["id"], "reason": "old"}], times=1))
    result = counts(facts_bank.consolidate())
    assert (result["observations_updated"], result["observations_deleted"]) == (1, 0)
    assert texts(facts_bank) == ["Kim plays chess and go"]


def test_retain_case_50_delete_with_merged_into(facts_bank, llm, stack):
    a, b = add(facts_bank, "Lea teaches maths in Graz", "Lea is a maths teacher in Graz")
    counts(facts_bank.consolidate())
    first, second = sorted(observations(facts_bank), key=lambda o: o["text"])
    [c] = add(facts_bank, "Lea still teaches maths in Graz")
    llm.script(reply(updates=[(first["id"], "Lea teaches maths in Graz, still", [c])],
                     deletes=[{"id": second["id"], "merged_into": first["id"], "reason": "same"}], times=1))
    result = counts(facts_bank.consolidate())
    assert (result["observations_deleted"], result["observations_merged"]) == (1, 1)
    [o] = observations(facts_bank)
    assert (o["text"], o["proof_count"]) == ("Lea teaches maths in Graz, still", 3)
    assert sources(stack, o["id"]) == {a, b, c}


def test_retain_case_63_marks_do_not_move_clocks(facts_bank, llm, stack):
    [a] = add(facts_bank, "Max collects stamps of Malta")
    before = row(stack, a)
    llm.script(reply(times=1))
    counts(facts_bank.consolidate())
    after = row(stack, a)
    assert after["consolidated_at"] is not None
    assert (after["updated_at"], after["last_write_at"]) == (before["updated_at"], before["last_write_at"])

    [b] = add(facts_bank, "Max still collects stamps of Malta")
    before = row(stack, b)
    llm.script({"scope": "consolidation", "reply": {"text": "junk"}, "times": 20})
    assert counts(facts_bank.consolidate())["memories_failed"] == 1
    after = row(stack, b)
    assert after["consolidation_failed_at"] is not None
    assert (after["updated_at"], after["last_write_at"]) == (before["updated_at"], before["last_write_at"])


def test_retain_case_63_a_fold_moves_no_updated_at(facts_bank, llm, stack):
    when = "2024-03-01T00:00:00Z"
    [a] = add(facts_bank, "Nia grows lemons", timestamp=when)
    counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    before = row(stack, o["id"])
    [b] = add(facts_bank, "Nia grows lemons, they say", timestamp=when)
    llm.script(reply(("Nia grows lemons", [b]), times=1))
    counts(facts_bank.consolidate())
    after = row(stack, o["id"])
    assert (after["updated_at"], after["proof_count"], before["proof_count"]) == (before["updated_at"], 2, 1)


def test_fault_35_consolidation_failure_loses_nothing(facts_bank, llm, stack):
    ids = add(facts_bank, *[f"Olga visited museum {n}" for n in range(5)])
    llm.script({"scope": "consolidation", "reply": {"text": "junk"}})
    result = counts(facts_bank.consolidate())
    assert (result["memories_failed"], result["memories_processed"]) == (5, 0)
    assert waiting(stack, facts_bank) == 0 and texts(facts_bank) == []
    marks = [row(stack, i) for i in ids]
    assert all(m["consolidation_failed_at"] and not m["consolidated_at"] for m in marks)
    stats = ok(facts_bank.get("/stats"))
    assert stats["failed_consolidation"] == 5 and stats["pending_consolidation"] == 0
    stack.sql("UPDATE memory_units u JOIN banks b ON b.bank_no = u.bank_no SET consolidation_failed_at = NULL "
              "WHERE b.bank_id = %s", facts_bank.id)
    llm.reset()
    assert counts(facts_bank.consolidate())["memories_processed"] == 5
    assert len(observations(facts_bank)) == 5


def test_a_provider_that_refuses_the_key_fails_the_job_and_marks_nothing(own_stack):
    s = own_stack(settings={"worker_max_retries": 0, "llm_max_retries": 0})
    bank = s.bank()
    configure(bank, **CHUNKS)
    add(bank, "Pia sings", "Pia dances")
    s.llm.script({"scope": "consolidation", "reply": {"status": 401, "body": {"error": {"message": "bad key"}}}})
    op = bank.wait(ok(bank.post("/consolidate"))["operation_id"])
    assert op["status"] == "failed" and op["error_message"]
    assert waiting(s, bank) == 2


def test_fault_36_the_same_fact_twice_is_one_observation(facts_bank, llm, stack):
    [a] = add(facts_bank, "Quinn drives a tram in Linz")
    llm.script(reply(("Quinn drives a tram in Linz", [a]), times=1))
    counts(facts_bank.consolidate())
    facts_bank.retain("Quinn drives a tram in Linz", document_id="again")
    b = next(m["id"] for m in facts_bank.memories(type="world") if m["id"] != a)
    llm.script(reply(("Quinn drives a tram in Linz", [b]), times=1))
    result = counts(facts_bank.consolidate())
    [o] = observations(facts_bank)
    assert o["proof_count"] == 2 and sources(stack, o["id"]) == {a, b}
    assert result["observations_deleted"] == 0


def test_facts_of_different_tags_never_share_a_call(facts_bank, llm):
    add(facts_bank, "Rosa is in team one", tags=["one"])
    add(facts_bank, "Sam is in team two", tags=["two"])
    counts(facts_bank.consolidate())
    sent = [str(c["body"]["messages"]) for c in calls(llm)]
    assert len(sent) == 2 and not any("Rosa" in s and "Sam" in s for s in sent)
    assert sorted(o["tags"][0] for o in observations(facts_bank)) == ["one", "two"]


def test_scoped_run_takes_only_its_facts(facts_bank, llm, stack):
    add(facts_bank, "Tess is in team one", tags=["one", "x"])
    add(facts_bank, "Uwe is in team two", tags=["two"])
    op = ok(facts_bank.post("/consolidate", {"observation_scopes": [["one"], ["x", "two"]]}))
    result = counts(facts_bank.wait(op["operation_id"]))
    assert result["memories_processed"] == 1 and texts(facts_bank) == ["Tess is in team one"]
    assert waiting(stack, facts_bank) == 1


def test_free_slots_limit_creates(facts_bank, llm):
    configure(facts_bank, max_observations_per_scope=2)
    add(facts_bank, "Vera has one", "Vera has two", "Vera has three", tags=["v"])
    counts(facts_bank.consolidate())
    assert len(observations(facts_bank)) == 2


def test_observations_switched_off(facts_bank, llm):
    add(facts_bank, "Will reads")
    configure(facts_bank, enable_observations=False)
    answer = facts_bank.post("/consolidate")
    if answer.status == 200:
        assert counts(facts_bank.wait(answer.json()["operation_id"]))["status"] == "disabled"
    assert calls(llm) == [] and texts(facts_bank) == []


def test_automatic_after_retain(bank, llm):
    bank.retain("Xenia lives in Oslo. She works as a nurse.")
    bank.idle()
    assert len(observations(bank)) >= 1


def test_retain_while_a_call_runs_is_not_blocked(facts_bank, llm):
    """No transaction is open during a model call."""
    add(facts_bank, "Yara bakes bread")
    llm.script(reply(times=1, answer={"delay": 2}))
    op = ok(facts_bank.post("/consolidate"))["operation_id"]
    wait_for("the call", lambda: calls(llm))
    started = time.monotonic()
    facts_bank.retain("Zeno sells bread")
    assert time.monotonic() - started < 1.5
    facts_bank.wait(op)


def test_cancel_during_a_call_writes_nothing_more(facts_bank, llm, stack):
    configure(facts_bank, consolidation_llm_batch_size=1)
    add(facts_bank, "First of two", "Second of two")
    llm.script({"scope": "consolidation", "times": 1, "reply": {"delay": 1.5}})
    op = ok(facts_bank.post("/consolidate"))["operation_id"]
    wait_for("the call", lambda: calls(llm))
    threading.Thread(target=lambda: facts_bank.delete("/operations/" + op)).start()
    assert facts_bank.wait(op)["status"] == "cancelled"
    wait_for("the call's end", lambda: calls(llm)[0]["ended"])
    assert len(calls(llm)) == 1 and waiting(stack, facts_bank) >= 1


def test_extractive_consolidation(extractive_stack, plain_bank):
    plain_bank.retain("Ana lives in Lisbon.", document_id="1")
    plain_bank.idle()
    plain_bank.retain("Ana is living in Lisbon", document_id="2")
    plain_bank.retain("Bob likes strong coffee.", document_id="3")
    plain_bank.idle()
    got = {o["text"]: o["proof_count"] for o in observations(plain_bank)}
    assert got == {"Ana is living in Lisbon": 2, "Bob likes strong coffee.": 1}


def broken_observations(stack, bank):
    """Observations whose proof count is not the number of their live sources, or that have none."""
    return stack.sql(
        "SELECT o.id, o.proof_count, COUNT(s.unit_no) AS live, COUNT(x.source_no) AS rows_ FROM memory_units o "
        "JOIN banks b ON b.bank_no = o.bank_no LEFT JOIN observation_sources x ON x.bank_no = o.bank_no AND "
        "x.observation_no = o.unit_no LEFT JOIN memory_units s ON s.bank_no = x.bank_no AND s.unit_no = x.source_no "
        "WHERE b.bank_id = %s AND o.fact_type = 'observation' GROUP BY o.unit_no "
        "HAVING live = 0 OR live <> o.proof_count OR live <> rows_", bank.id)


def test_retain_case_42_deletes_race_consolidation(facts_bank, llm, stack):
    configure(facts_bank, consolidation_llm_batch_size=2)
    ok(facts_bank.post("/memories", {"items": [
        {"content": f"Crate {n} holds {n * 3} lamps", "document_id": f"doc-{n}"} for n in range(24)]}))
    llm.script({"scope": "consolidation", "reply": {"delay": 0.1}})
    op = ok(facts_bank.post("/consolidate"))["operation_id"]
    for n in range(0, 24, 2):
        ok(facts_bank.delete(f"/documents/doc-{n}"))
        time.sleep(0.05)
    counts(facts_bank.wait(op))
    facts_bank.idle()
    counts(facts_bank.consolidate())
    assert not broken_observations(stack, facts_bank)
    assert texts(facts_bank) == sorted(f"Crate {n} holds {n * 3} lamps" for n in range(1, 24, 2))
    assert waiting(stack, facts_bank) == 0
