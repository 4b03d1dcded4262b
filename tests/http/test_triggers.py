"""Refreshes that nobody asked for: after consolidation, by schedule; pause, interval, folding."""
import concurrent.futures
import re
import signal
import subprocess
import time
from datetime import datetime, timedelta, timezone

import pytest

from stack import Stack, ok, program_path, wait_for

AFTER = {"refresh_after_consolidation": True}
QUERY = "Who leads the design team?"


@pytest.fixture(scope="module")
def server():
    """A server of this file's own: a tick looks at the models of all banks."""
    s = Stack(settings={"llm_max_retries": 0, "consolidation_reconcile_interval_seconds": 0,
                        "worker_lease_seconds": 3}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def calls(server):
    """The scripted model, with nothing recorded and no rules."""
    server.llm.reset()
    yield server.llm
    server.llm.reset()


@pytest.fixture
def bank(server, calls):
    """A fresh bank: items are stored as they are, consolidated only when asked."""
    b = server.bank(make=True)
    configure(b, retain_extraction_mode="chunks", enable_auto_consolidation=False)
    yield b
    ok(b.delete())
    # its models are looked at until they are purged
    wait_for("the purge", lambda: not server.sql("SELECT 1 FROM purge_queue"))


def configure(bank, **updates):
    ok(bank.patch("/config", {"updates": updates}))


def model(bank, model_id, trigger=None, tags=()):
    """A model after its first refresh."""
    made = ok(bank.post("/mental-models", {"id": model_id, "name": model_id.title(), "source_query": QUERY,
                                           "tags": list(tags), "trigger": trigger or {}}))
    bank.wait(made["operation_id"])
    return read(bank, model_id)


def read(bank, model_id):
    return ok(bank.get(f"/mental-models/{model_id}"))


def refresh(bank, model_id):
    return bank.wait(ok(bank.post(f"/mental-models/{model_id}/refresh"))["operation_id"])


def refreshes(stack, bank, model_id=None):
    """Automatic refreshes ever queued, oldest first."""
    return stack.sql(
        "SELECT o.* FROM async_operations o JOIN banks b ON b.bank_no = o.bank_no WHERE b.bank_id = %s AND "
        "o.operation_type = 'refresh_mental_model' AND o.task_payload LIKE '%%\"_automatic\":true%%' AND "
        "(%s IS NULL OR o.subject_id = %s) ORDER BY o.created_at, o.operation_id", bank.id, model_id, model_id)


def refreshed(stack, bank):
    return sorted(r["subject_id"] for r in refreshes(stack, bank))


def rounds(stack, bank):
    """Counts of the bank's consolidations in their order."""
    ops = ok(bank.get("/operations", limit=100, type="consolidation"))["operations"]
    done = [bank.operation(o["id"]) for o in ops]
    assert all(o["status"] == "completed" for o in done), done
    return [o["result_metadata"] for o in sorted(done, key=lambda o: (o["created_at"], o["operation_id"]))]


def consolidate(bank):
    op = bank.consolidate()
    assert op["status"] == "completed", op
    bank.idle()
    return op["result_metadata"]


# after consolidation

def test_models_case_69_any_consolidation_finds_what_is_stale(server, bank):
    """Left stale by an older write in another tag: a consolidation without news queues it, once."""
    model(bank, "first", AFTER, ["a"])
    model(bank, "other", AFTER, ["b"])
    model(bank, "by-hand", {}, ["a"])
    bank.retain("Carol leads the design team.", tags=["a"])
    assert consolidate(bank)["mental_models_refreshed"] == 1
    assert refreshed(server, bank) == ["first"]
    assert "Carol leads" in read(bank, "first")["content"] and not read(bank, "first")["is_stale"]
    bank.retain("Dora paints.", tags=["b"])
    server.sql("UPDATE memory_units u JOIN banks b ON b.bank_no = u.bank_no SET u.consolidated_at = u.created_at "
               "WHERE b.bank_id = %s AND u.fact_type <> 'observation'", bank.id)
    result = consolidate(bank)
    assert (result["status"], result["mental_models_refreshed"]) == ("no_new_memories", 1)
    assert refreshed(server, bank) == ["first", "other"]
    assert read(bank, "by-hand")["is_stale"]
    # nothing is stale any more: nothing is queued
    assert consolidate(bank)["mental_models_refreshed"] == 0
    assert refreshed(server, bank) == ["first", "other"]


def test_progress_names_the_stage(bank):
    bank.retain("Carol leads the design team.")
    op = bank.consolidate()
    assert (op["progress"]["stage"], op["progress"]["processed"], op["progress"]["total"]) == (
        "refreshing_mental_models", 1, 1)


def test_retain_case_40_models_are_considered_once(server, bank):
    """250 facts, 100 a round: three jobs; the model whose facts were all in the first is refreshed too."""
    model(bank, "early", AFTER, ["early"])
    configure(bank, consolidation_max_memories_per_round=100)
    bank.retain("Carol leads the design team.", tags=["early"])
    ok(bank.post("/memories", {"items": [{"content": f"Parcel {n} arrived in room {n}"} for n in range(249)]}))
    consolidate(bank)
    done = rounds(server, bank)
    assert [r["memories_processed"] for r in done] == [100, 100, 50]
    assert [r["mental_models_refreshed"] for r in done] == [0, 0, 1]
    assert refreshed(server, bank) == ["early"] and not read(bank, "early")["is_stale"]


def test_fault_04_a_backlog_over_rounds_refreshes_every_model(server, bank, calls):
    names = [f"m{i}" for i in range(8)]
    for name in names:
        model(bank, name, AFTER, [name])
    configure(bank, consolidation_max_memories_per_round=2)
    for name in names:
        bank.retain(f"Person {name} leads the design team.", tags=[name])
    consolidate(bank)
    assert [r["mental_models_refreshed"] for r in rounds(server, bank)] == [0, 0, 0, 8]
    assert refreshed(server, bank) == names
    assert not any(read(bank, n)["is_stale"] for n in names)


def test_fault_04_a_worker_killed_between_rounds_loses_nothing(server, bank, calls):
    names = [f"m{i}" for i in range(8)]
    for name in names:
        model(bank, name, AFTER, [name])
    configure(bank, consolidation_max_memories_per_round=2)
    for name in names:
        bank.retain(f"Person {name} leads the design team.", tags=[name])
    # two facts a round, a call each: the fifth is the third round's
    calls.script({"scope": "consolidation", "when": {"n": 5}, "reply": {"hang": True}})
    ok(bank.post("/consolidate"))
    wait_for("the third round", lambda: len(calls.calls("consolidation")) == 5)
    server.processes["worker"].kill()
    assert refreshed(server, bank) == []
    calls.reset()
    server.start_worker()
    # a row that was brought back has a retry time, as a parked one
    wait_for("the refreshes", lambda: len(refreshed(server, bank)) >= 8)
    bank.idle()
    assert refreshed(server, bank) == names
    assert not any(read(bank, n)["is_stale"] for n in names)


def test_fault_04_and_models_case_69_a_long_chain_submits_at_the_tenth_round(server, bank, calls):
    """Also retain case 40: twelve facts, one a round."""
    names = [f"m{i:02}" for i in range(12)]
    for name in names:
        model(bank, name, AFTER, [name])
    configure(bank, consolidation_max_memories_per_round=1)
    for name in names:
        bank.retain(f"Person {name} leads the design team.", tags=[name])
    calls.script({"scope": "consolidation", "when": {"n": 11}, "reply": {"delay": 4}})
    ok(bank.post("/consolidate"))
    bank.idle()
    done = rounds(server, bank)
    # every model is stale at the tenth: the facts of the last two are stored, though not consolidated
    assert [r["mental_models_refreshed"] for r in done[:9]] == [0] * 9
    assert done[9]["mental_models_refreshed"] == 12 and len(done) == 12
    assert done[10]["mental_models_refreshed"] == 0 and done[11]["mental_models_refreshed"] == 2
    assert refreshed(server, bank) == sorted(names + names[10:])
    assert not any(read(bank, n)["is_stale"] for n in names)


def test_a_chain_counts_on_though_writes_queue_a_first_round(server, bank, calls):
    """A write during the chain queues a consolidation of its own, which the chain's next round joins."""
    configure(bank, consolidation_max_memories_per_round=1)
    for n in range(3):
        bank.retain(f"Fact number {n}.")
    calls.script({"scope": "consolidation", "when": {"n": 1}, "reply": {"delay": 1.5}},
                 {"scope": "consolidation", "when": {"n": 2}, "reply": {"hang": True}})
    ok(bank.post("/consolidate"))
    wait_for("the first round", lambda: calls.calls("consolidation"))
    configure(bank, enable_auto_consolidation=True)
    bank.retain("Fact number 3.")
    wait_for("the second round", lambda: len(calls.calls("consolidation")) == 2)
    [op] = server.sql("SELECT o.* FROM async_operations o JOIN banks b ON b.bank_no = o.bank_no WHERE b.bank_id = %s "
                      "AND o.operation_type = 'consolidation' AND o.status = 'processing'", bank.id)
    assert '"round":2' in op["task_payload"] and '"manual":true' in op["task_payload"]
    calls.reset()
    bank.idle()


def test_one_failing_submit_does_not_stop_the_rest(server, bank):
    for name in ("aaa", "bbb", "ccc"):
        model(bank, name, AFTER)
    bank.retain("Carol leads the design team.")
    server.sql("CREATE TRIGGER no_bbb BEFORE INSERT ON async_operations FOR EACH ROW BEGIN IF NEW.subject_id = 'bbb' "
               "THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'scripted'; END IF; END")
    try:
        assert consolidate(bank)["mental_models_refreshed"] == 2
    finally:
        server.sql("DROP TRIGGER no_bbb")
    assert refreshed(server, bank) == ["aaa", "ccc"]
    assert re.search(r"event=automatic_refresh.*bbb.*scripted", server.processes["worker"].log_text())
    # it is still stale: the next one takes it along
    assert consolidate(bank)["mental_models_refreshed"] == 1
    assert refreshed(server, bank) == ["aaa", "bbb", "ccc"]


def test_observations_switched_off_refresh_nothing(server, bank):
    model(bank, "m", AFTER)
    bank.retain("Carol leads the design team.")
    configure(bank, enable_observations=False)
    answer = bank.post("/consolidate")
    if answer.status == 200:
        assert bank.wait(answer.json()["operation_id"])["result_metadata"]["mental_models_refreshed"] == 0
    assert refreshed(server, bank) == []


@pytest.mark.parametrize("tags,wanted", [
    (["a"], ["case10-any", "case11-any", "groups-not-x", "untagged"]),
    (["a", "b", "c"], ["case10-any", "case10-default", "case11-any", "case12-b", "groups-not-x", "untagged"]),
    (["b"], ["case10-any", "case12-b", "groups-not-x", "untagged"]),
    ([], ["case13-untagged", "groups-not-x", "untagged"]),
    (["x"], ["untagged"]),
])
def test_models_case_10_to_14_scopes_decide_what_is_queued(server, bank, tags, wanted):
    """The scopes of cases 10 to 14: what consolidation queues is exactly what is shown as stale."""
    any_b = [{"tags": ["b"], "match": "any"}]
    models = {
        "case10-default": ({}, ["a", "b"]),
        "case10-any": ({"tags_match": "any"}, ["a", "b"]),
        "case11-any": ({"tags_match": "any"}, ["a"]),
        "case12-b": ({"tag_groups": any_b}, ["a"]),
        "case13-untagged": ({"tag_groups": [{"tags": [], "match": "exact"}]}, ["a"]),
        "groups-not-x": ({"tag_groups": [{"not": {"tags": ["x"]}}]}, []),
        "case14-experience": ({"fact_types": ["experience"]}, []),
        "untagged": ({}, []),
    }
    for name, (trigger, of_model) in models.items():
        model(bank, name, {**AFTER, **trigger}, of_model)
    bank.retain("Carol leads the design team.", tags=tags)
    stale = sorted(m["id"] for m in ok(bank.get("/mental-models"))["items"] if m["is_stale"])
    assert stale == wanted
    assert consolidate(bank)["mental_models_refreshed"] == len(wanted)
    assert refreshed(server, bank) == wanted


def test_models_case_16_and_17_deletions_and_edits(server, bank):
    bank.retain("Carol leads the design team.", document_id="one")
    consolidate(bank)
    bank.retain("Dora paints.", document_id="two")
    consolidate(bank)
    model(bank, "m", AFTER)
    ok(bank.delete("/documents/two"))
    assert not read(bank, "m")["is_stale"] and consolidate(bank)["mental_models_refreshed"] == 0
    bank.retain("Carla leads the design team.", document_id="one")
    assert read(bank, "m")["is_stale"] and consolidate(bank)["mental_models_refreshed"] == 1
    assert "Carla leads" in read(bank, "m")["content"]


def test_models_case_19_a_write_during_an_automatic_run_is_newer(server, bank, calls):
    model(bank, "m", AFTER)
    bank.retain("Carol leads the design team.")
    calls.script({"when": {"tool_forced": "done"}, "times": 1, "reply": {"delay": 1.5}})
    bank.consolidate()
    wait_for("the closing call", lambda: [c for c in calls.chats() if c["rule"] is not None])
    bank.retain("Dora leads the design team, too.")
    bank.idle()
    late = read(bank, "m")
    assert "Dora" not in late["content"] and late["is_stale"]
    assert consolidate(bank)["mental_models_refreshed"] == 1
    assert "Dora" in read(bank, "m")["content"] and not read(bank, "m")["is_stale"]


def test_models_case_11_untagged_writes_trigger_nothing(server, bank):
    model(bank, "after", {**AFTER, "tags_match": "any"}, ["a"])
    model(bank, "cron", {"refresh_cron": recent_cron(), "tags_match": "any"}, ["a"])
    bank.retain("Carol leads the design team.")
    rewind(server, bank, "cron")
    assert consolidate(bank)["mental_models_refreshed"] == 0
    tick(server)
    assert refreshed(server, bank) == [] and not read(bank, "after")["is_stale"]
    refresh(bank, "after")
    assert "Carol leads" in read(bank, "after")["content"]


# folding

def test_models_case_21_and_23_consolidations_and_hands_make_one(server, bank, calls):
    model(bank, "m", AFTER)
    calls.script({"scope": "reflect*", "reply": {"hang": True}})
    for n in range(5):
        bank.retain(f"Fact number {n}.")
        assert bank.consolidate()["result_metadata"]["mental_models_refreshed"] == 1
        # an automatic one folds into what runs
        wait_for("the refresh", lambda: calls.calls("reflect_tool_call"))
    ids = {ok(bank.post("/mental-models/m/refresh"))["operation_id"] for _ in range(5)}
    [running] = refreshes(server, bank)
    assert len(ids) == 1 and running["status"] == "processing" and running["operation_id"] not in ids
    pending = ok(bank.get("/operations", status="pending"))["operations"]
    assert [o["id"] for o in pending] == list(ids)
    # automatic again: it folds into the oldest open one
    assert consolidate_only(bank) == 1
    assert ok(bank.get("/operations", status="pending"))["total"] == 1
    calls.reset()
    ok(bank.delete(f"/operations/{running['operation_id']}"))
    bank.idle()
    assert not read(bank, "m")["is_stale"]


def consolidate_only(bank):
    bank.retain(f"Another fact of {time.time()}.")
    return bank.consolidate()["result_metadata"]["mental_models_refreshed"]


# interval and pause

def seconds_ahead(op):
    return datetime.fromisoformat(op["next_retry_at"]).timestamp() - time.time()


def test_fault_05_and_models_case_25_and_26_an_interval_parks_and_never_drops(server, bank, calls):
    """Five consolidations, each of which queues a refresh of all three."""
    model(bank, "parked", {**AFTER, "min_refresh_interval_seconds": 3600})
    configure(bank, mental_model_min_refresh_interval_seconds=7200)
    model(bank, "at-once", {**AFTER, "min_refresh_interval_seconds": 0})
    model(bank, "bank-wide", AFTER)
    for n in range(5):
        bank.retain(f"Person{n} leads the design team.")
        assert consolidate(bank)["mental_models_refreshed"] == 3
        op = wait_for("the park", lambda: (lambda o: o["next_retry_at"] and o)(
            bank.operation(str(refreshes(server, bank, "parked")[0]["operation_id"]))))
        if n == 0:
            first = op
        assert op["next_retry_at"] == first["next_retry_at"] and op["status"] == "pending"
    assert 3500 < seconds_ahead(op) <= 3600
    assert (op["retry_count"], op["error_message"]) == (0, None)
    [other] = refreshes(server, bank, "bank-wide")
    assert other["status"] == "pending" and 7000 < seconds_ahead(bank.operation(other["operation_id"])) <= 7200
    assert [o["status"] for o in refreshes(server, bank, "at-once")] == ["completed"] * 5
    assert len(refreshes(server, bank, "parked")) == 1
    assert read(bank, "parked")["last_refresh_failed_at"] is None
    assert ok(bank.get("/mental-models/parked/history")) == []
    # of the three models one alone was asked about
    asked = [c for c in calls.chats() if c["scope"].startswith("reflect")]
    assert asked and all("At-Once" in str(c["body"]) for c in asked)
    assert read(bank, "parked")["content"] == ""
    # by hand: the same one, at once
    again = ok(bank.post("/mental-models/parked/refresh"))["operation_id"]
    assert again == op["operation_id"]
    assert bank.wait(again)["status"] == "completed"
    assert "Person4 leads" in read(bank, "parked")["content"]


def test_a_parked_refresh_calls_no_model(server, bank, calls):
    model(bank, "m", {"refresh_cron": recent_cron(), "min_refresh_interval_seconds": 3 * 86400})
    bank.retain("Carol leads the design team.")
    rewind(server, bank, "m", days=2)
    tick(server)
    wait_for("the park", lambda: refreshes(server, bank)[0]["next_retry_at"])
    assert refreshes(server, bank)[0]["status"] == "pending" and calls.chats() == []
    tick(server)
    assert len(refreshes(server, bank)) == 1 and calls.chats() == []


def test_models_case_27_a_failure_pauses_until_a_success(server, bank, calls):
    model(bank, "after", AFTER)
    model(bank, "cron", {"refresh_cron": recent_cron()})
    bank.retain("Carol leads the design team.")
    calls.script({"scope": "reflect*", "reply": {"status": 401, "body": {"error": {"message": "no"}}}})
    for name in ("after", "cron"):
        assert refresh(bank, name)["status"] == "failed"
        assert read(bank, name)["last_refresh_failed_at"]
    calls.reset()

    def quiet():
        bank.retain(f"Written at {time.time()}.")
        assert consolidate(bank)["mental_models_refreshed"] == 0
        rewind(server, bank, "cron")
        tick(server)
        return refreshed(server, bank) == [] and not calls.calls("reflect*") and read(bank, "cron")["is_stale"]

    assert quiet()
    for name in ("after", "cron"):
        ok(bank.post(f"/mental-models/{name}/clear"))
        ok(bank.patch(f"/mental-models/{name}", {"max_tokens": 1024}))
    assert quiet()
    assert [c["scope"] for c in calls.chats() if c["scope"].startswith("reflect")] == []
    for name in ("after", "cron"):
        assert refresh(bank, name)["status"] == "completed"
        assert read(bank, name)["last_refresh_failed_at"] is None
    bank.retain("Dora paints.")
    assert consolidate(bank)["mental_models_refreshed"] == 1
    rewind(server, bank, "cron")
    tick(server)
    bank.idle()
    assert refreshed(server, bank) == ["after", "cron"]


# schedules

def recent_cron():
    """Once a day, two to three minutes ago: no boundary comes while a test runs."""
    t = datetime.now(timezone.utc) - timedelta(minutes=2)
    return f"{t.minute} {t.hour} * * *"


def rewind(stack, bank, model_id, column="last_refreshed_at", days=1):
    stack.sql(f"UPDATE mental_models m JOIN banks b ON b.bank_no = m.bank_no SET m.{column} = UTC_TIMESTAMP(6) - "
              "INTERVAL %s DAY WHERE b.bank_id = %s AND m.id = %s", days, bank.id, model_id)


def column(stack, bank, model_id, name):
    return stack.sql(f"SELECT m.{name} AS v FROM mental_models m JOIN banks b ON b.bank_no = m.bank_no WHERE "
                     "b.bank_id = %s AND m.id = %s", bank.id, model_id)[0]["v"]


def tick(stack):
    """A run of the program that has the turn; its log line as a dictionary."""
    stack.sql("DELETE FROM server_state WHERE name = 'last_refresh_tick'")
    return told(stack.tick())


def told(run):
    """What a run says it did; None when it had no turn."""
    m = re.search(r"event=tick claimed=1 (.*)", run.stderr)
    return m and {k: int(v) for k, v in (pair.split("=") for pair in m.group(1).split())}


def test_models_case_28_due_and_stale(server, bank, calls):
    cron = {"refresh_cron": recent_cron()}
    model(bank, "due-stale", cron, ["a"])
    model(bank, "due-fresh", cron, ["b"])
    model(bank, "not-due", cron, ["a"])
    model(bank, "broken", cron, ["a"])
    server.sql("UPDATE mental_models m JOIN banks b ON b.bank_no = m.bank_no SET trigger_json = JSON_SET(trigger_json, "
               "'$.refresh_cron', '61 * * * *') WHERE b.bank_id = %s AND m.id = 'broken'", bank.id)
    bank.retain("Carol leads the design team.", tags=["a"])
    for name in ("due-stale", "due-fresh", "broken"):
        rewind(server, bank, name)
    assert tick(server) == {"models": 4, "due": 2, "fresh": 1, "queued": 1, "bad_schedules": 1}
    bank.idle()
    assert refreshed(server, bank) == ["due-stale"]
    assert re.search(r"event=bad_schedule.*broken.*minute", (server.logs / "refresh-tick.log").read_text())
    assert not read(bank, "due-stale")["is_stale"] and read(bank, "not-due")["is_stale"]
    # fresh at its boundary: a write just after waits for the next one
    before = read(bank, "due-fresh")
    bank.retain("Dora paints.", tags=["b"])
    assert tick(server)["due"] == 0
    rewind(server, bank, "due-fresh", "last_cron_checked_at")
    assert tick(server)["queued"] == 1
    bank.idle()
    assert refreshed(server, bank) == ["due-fresh", "due-stale"]
    assert read(bank, "due-fresh")["last_refreshed_at"] > before["last_refreshed_at"]


def test_a_quiet_scope_costs_nothing(server, bank, calls):
    bank.retain("Carol leads the design team.", tags=["a"])
    model(bank, "m", {"refresh_cron": recent_cron()}, ["a"])
    before, asked = read(bank, "m"), len(calls.calls())
    rewind(server, bank, "m")
    assert tick(server) == {"models": 1, "due": 1, "fresh": 1, "queued": 0, "bad_schedules": 0}
    assert refreshed(server, bank) == [] and len(calls.calls()) == asked
    after = read(bank, "m")
    assert {**after, "last_refreshed_at": None} == {**before, "last_refreshed_at": None}
    assert column(server, bank, "m", "last_cron_checked_at")


def test_fault_63_missed_and_doubled_runs(server, bank):
    hourly = {"refresh_cron": "0 * * * *"}
    bank.retain("Carol leads the design team.")
    model(bank, "gap", hourly)
    bank.retain("Dora paints.")
    model(bank, "new", hourly)
    rewind(server, bank, "gap", days=3)
    server.sql("UPDATE mental_models SET trigger_json = JSON_SET(trigger_json, '$.refresh_cron', 'hello') WHERE "
               "id = 'new'")
    # the boundary behind us is the hour's: a model made since then does not fire for it
    model(bank, "made-since", {"refresh_cron": recent_cron()})
    bank.retain("Eve sails.")
    # two at once and one after: one of them has the turn, all end well
    server.sql("DELETE FROM server_state WHERE name = 'last_refresh_tick'")
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: server.tick(), range(2)))
    runs.append(server.tick())
    claimed = [t for t in map(told, runs) if t]
    assert claimed == [{"models": 3, "due": 1, "fresh": 0, "queued": 1, "bad_schedules": 1}]
    bank.idle()
    assert refreshed(server, bank) == ["gap"]


def test_models_case_70_a_tick_claims_its_turn(own_stack):
    s = own_stack(settings={"mental_model_refresh_tick_seconds": 2, "log_level": "debug"}, worker=False)
    first, second = told(s.tick()), told(s.tick())
    assert first and second is None
    time.sleep(2.1)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: told(s.tick()), range(4)))
    assert sum(1 for r in runs if r) == 1


def test_a_tick_of_zero_seconds_never_looks(own_stack):
    s = own_stack(settings={"mental_model_refresh_tick_seconds": 0}, worker=False, llm=False)
    assert told(s.tick()) is None
    assert s.sql("SELECT 1 FROM server_state WHERE name = 'last_refresh_tick'") == ()


def test_without_a_provider_nothing_is_queued(own_stack):
    s = own_stack(llm=False)
    bank = s.bank(make=True)
    model(bank, "m", {"refresh_cron": recent_cron()})
    bank.retain("Carol leads the design team.")
    bank.idle()
    rewind(s, bank, "m")
    run = s.tick(env={"HINDSIGHT_API_LLM_PROVIDER": "none"})
    assert told(run) is None and refreshed(s, bank) == []
    assert told(s.tick())["queued"] == 1


def test_models_case_56_full_schedules(server, bank, calls):
    both = {"refresh_cron": recent_cron(), "full_refresh_cron": recent_cron(), "mode": "delta"}
    bank.retain("Carol leads the design team.")
    model(bank, "both", both)
    model(bank, "beside", {**AFTER, "full_refresh_cron": recent_cron()})
    assert read(bank, "beside")["trigger"]["refresh_after_consolidation"] is True
    for name in ("both", "beside"):
        rewind(server, bank, name, "last_full_refreshed_at", 3)
        rewind(server, bank, name, "last_refreshed_at", 3)
    server.sql("UPDATE mental_models SET last_full_refreshed_at = last_refreshed_at")
    # nothing ran since the last full one; the plain schedule finds the scope fresh
    assert tick(server)["queued"] == 0
    for name in ("both", "beside"):
        rewind(server, bank, name, "last_refreshed_at", 2)
        rewind(server, bank, name, "last_cron_checked_at", 2)
    assert tick(server)["queued"] == 2
    bank.idle()
    done = refreshes(server, bank)
    assert [(r["subject_id"], r["status"]) for r in done] == [("beside", "completed"), ("both", "completed")]
    assert all('"_mode":"full"' in r["task_payload"] for r in done)
    assert column(server, bank, "both", "last_full_refreshed_at") == column(server, bank, "both", "last_refreshed_at")
    # a paused one is left alone
    server.sql("UPDATE mental_models SET last_refresh_failed_at = UTC_TIMESTAMP(6)")
    for name in ("both", "beside"):
        rewind(server, bank, name, "last_full_refreshed_at", 3)
    assert tick(server)["models"] == 0


def test_fault_06_schedules_are_checked_when_saved(bank):
    bad = [{"refresh_cron": "61 * * * *"}, {"refresh_cron": "* * *"}, {"refresh_cron": "hello"},
           {"full_refresh_cron": "0 0 31 2 *"}, {"refresh_cron": "0 * * * *", **AFTER}, {"fact_types": []},
           {"min_refresh_interval_seconds": -1}, {"mode": "fast"}]
    before = model(bank, "kept", {"refresh_cron": "0 6 * * mon-fri"})
    for trigger in bad:
        body = {"name": "M", "source_query": QUERY, "trigger": trigger}
        assert bank.post("/mental-models", body).status == 422, trigger
        assert bank.patch("/mental-models/kept", {"trigger": trigger}).status == 422, trigger
    for tokens in (255, 8193):
        assert bank.post("/mental-models", {"name": "M", "source_query": QUERY, "max_tokens": tokens}).status == 422
    assert ok(bank.get("/mental-models"))["total"] == 1 and read(bank, "kept") == before
    assert ok(bank.patch("/mental-models/kept", {"trigger": {"refresh_cron": "  "}}))["trigger"]["refresh_cron"] is None


# the program

def test_the_tick_brings_back_work_and_finds_forgotten_facts(own_stack):
    """Hosts with cron only: the tick and a worker that ends when the queue is empty."""
    s = own_stack(settings={"enable_auto_consolidation": False, "consolidation_reconcile_interval_seconds": 1},
                  worker=False)
    bank = s.bank(make=True)
    bank.retain("Carol leads the design team.")
    made = ok(bank.post("/mental-models", {"id": "m", "name": "M", "source_query": QUERY, "trigger": AFTER}))
    s.sql("UPDATE async_operations SET status = 'processing', worker_id = 'dead', attempt = 1, claimed_at = "
          "UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE")
    s.tick()
    op = bank.operation(made["operation_id"])
    assert (op["status"], op["retry_count"]) == ("pending", 1)

    def drain():
        subprocess.run([program_path("worker"), "--config", s.config, "--drain"], check=True, env=s.env(),
                       stderr=subprocess.DEVNULL, timeout=60)

    drain()
    configure(bank, enable_auto_consolidation=True)
    time.sleep(1.1)
    s.tick()
    assert ok(bank.get("/operations", type="consolidation", status="pending"))["total"] == 1
    drain()
    assert len(refreshes(s, bank, "m")) == 1
    assert [r["status"] for r in s.sql("SELECT DISTINCT status FROM async_operations")] == ["completed"]
    assert "Carol leads" in read(bank, "m")["content"] and not read(bank, "m")["is_stale"]


def test_check_tells_of_schedules_nobody_looks_at(own_stack):
    s = own_stack(llm=False)
    bank = s.bank(make=True)
    assert "0 mental models have one" in s.admin("check").stdout
    model(bank, "m", {"refresh_cron": "0 6 * * *"})
    bad = s.admin("check", check=False)
    assert bad.returncode == 1 and "hindsight-refresh-tick.timer" in bad.stdout
    s.tick()
    assert "1 mental models have one" in s.admin("check").stdout
    s.sql("UPDATE mental_models SET last_refresh_failed_at = UTC_TIMESTAMP(6)")
    assert "1 mental models wait after a failed refresh" in s.admin("check").stdout
    s.sql("UPDATE server_state SET updated_at = updated_at - INTERVAL 1 HOUR WHERE name = 'last_refresh_tick'")
    assert s.admin("check", check=False).returncode == 1


def test_the_tick_says_when_the_database_is_away(own_stack):
    s = own_stack(llm=False, worker=False, programs=["banks"])
    s.processes["mariadbd"].stop(signal.SIGKILL)
    run = subprocess.run([program_path("refresh-tick"), "--config", s.config], capture_output=True, text=True,
                         env=s.env(), timeout=30)
    assert run.returncode == 1 and "cannot connect to the database" in run.stderr


def test_options_of_the_program():
    def run(*args):
        return subprocess.run([program_path("refresh-tick"), *args], capture_output=True, text=True, timeout=30)

    assert run("--help").returncode == 0 and "--config FILE" in run("--help").stdout
    assert run("--version").stdout.startswith("hindsight-refresh-tick ")
    assert run("--bad").returncode == 2 and run("word").returncode == 2
