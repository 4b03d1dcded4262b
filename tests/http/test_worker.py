"""The worker: slots, leases, retries, limits, cancel, shutdown, drain, purge."""
import datetime
import json
import signal
import subprocess
import time
import uuid

import pytest

from stack import ok, program_path, wait_for

HANG = {"scope": "retain_extract_facts", "when": {"contains": "HANG"}, "reply": {"hang": True}}
QUICK = {"llm_max_retries": 0, "worker_task_retry_backoff_seconds": 0}


def refuse(status, scope="*"):
    return {"scope": scope, "reply": {"status": status, "body": {"error": {"message": f"scripted {status}"}}}}


def submit(bank, content, **item):
    """Queue a retain; its parent's id."""
    body = {"items": [{"content": content, **item}], "async": True}
    return ok(bank.post("/memories", body))["operation_id"]


def child(bank, parent):
    return bank.operation(parent)["child_operations"][0]["operation_id"]


def bank_no(stack, bank):
    return stack.sql("SELECT bank_no FROM banks WHERE bank_id = %s", bank.id)[0]["bank_no"]


def insert(stack, bank, kind, payload="{}", **columns):
    op = str(uuid.uuid4())
    values = {"operation_id": op, "bank_no": bank_no(stack, bank), "operation_type": kind, "status": "pending",
              "task_payload": payload, "result_metadata": "{}", **columns}
    names = ", ".join(values)
    stack.sql(f"INSERT INTO async_operations ({names}, created_at, updated_at) VALUES "
              f"({', '.join(['%s'] * len(values))}, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))", *values.values())
    return op


def row(stack, op):
    return stack.sql("SELECT *, UTC_TIMESTAMP(6) AS now FROM async_operations WHERE operation_id = %s", op)[0]


def wait_status(stack, op, *wanted, seconds=20):
    return wait_for(f"{op} to be {wanted}", lambda: row(stack, op)["status"] in wanted and row(stack, op), seconds)


def wait_call(stack, text, seconds=20):
    """The model server holds a call whose prompt has the text."""
    wait_for(f"a model call about {text}", lambda: any(text in json.dumps(c["body"]) for c in stack.llm.calls()),
             seconds)


# starting

def test_banks_case_58_the_database_is_away_at_the_start(own_stack):
    stack = own_stack()
    bank = stack.bank(make=True)
    for name in [*stack.program_names, "worker"]:
        stack.processes[name].stop()
    stack.processes["mariadbd"].kill()
    for name in stack.program_names:
        stack.socket_of(name).unlink(missing_ok=True)
        stack.start_program(name)
    worker = stack.start_worker()
    time.sleep(0.5)
    assert worker.alive()
    answer = bank.get("/operations")
    assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1 and answer.detail
    stack.start_mariadb()
    wait_for("the bank again", lambda: bank.get("/operations").status == 200)
    assert bank.wait(submit(bank, "Alice sails."))["status"] == "completed"


@pytest.mark.parametrize("change, words", [
    ("INSERT INTO schema_migrations VALUES (9999, '', UTC_TIMESTAMP(6))", "newer release"),
    ("DELETE FROM schema_migrations", "run hindsight-admin migrate"),
    ("DROP TABLE schema_migrations", "run hindsight-admin migrate"),
])
def test_banks_case_58_another_schema_stops_the_start(own_stack, change, words):
    stack = own_stack(llm=False, worker=False, programs=["banks", "operations"])
    stack.sql(change)
    for name in ("operations", "worker"):
        argv = [program_path(name), "--config", stack.config]
        if name != "worker":
            argv += ["--socket", stack.run / "other.sock"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=20, env=stack.env())
        assert done.returncode == 1, done
        assert words in done.stderr, done.stderr


def test_banks_case_58_a_schema_that_becomes_wrong_answers_503(own_stack):
    stack = own_stack(llm=False, worker=False, programs=["banks", "operations"])
    bank = stack.bank(make=True)
    stack.sql("INSERT INTO schema_migrations VALUES (9999, '', UTC_TIMESTAMP(6))")
    stack.processes["mariadbd"].kill()
    stack.start_mariadb()
    answer = wait_for("503", lambda: (a := bank.get("/operations")).status == 503 and a)
    assert "schema" in answer.detail
    stack.sql("DELETE FROM schema_migrations WHERE version = 9999")
    wait_for("the bank again", lambda: bank.get("/operations").status == 200, 15)


def test_migrate_is_rerunnable_when_half_done(own_stack):
    stack = own_stack(llm=False, worker=False, programs=["banks"])
    tables = {next(iter(r.values())) for r in stack.sql("SHOW TABLES")}
    stack.sql("DELETE FROM schema_migrations")
    stack.sql("DROP TABLE server_state")
    stack.sql("DROP TABLE async_operations")
    assert "applied 0001" in stack.admin("migrate").stdout
    assert {next(iter(r.values())) for r in stack.sql("SHOW TABLES")} == tables
    assert "applied" not in stack.admin("migrate").stdout
    stack.sql("UPDATE schema_migrations SET checksum = 'x'")
    done = stack.admin("migrate", check=False)
    assert done.returncode == 1 and "changed after it was applied" in done.stderr


def test_admin_check_names_what_to_do(own_stack):
    stack = own_stack()
    good = stack.admin("check")
    assert "MariaDB" in good.stdout and "scripted" in good.stdout and "FAIL" not in good.stdout
    stack.llm.script(refuse(401))
    bad = stack.admin("check", check=False)
    assert bad.returncode == 1 and "check llm_api_key" in bad.stdout
    assert "test-key-123" not in bad.stdout + bad.stderr
    stack.processes["mariadbd"].kill()
    bad = stack.admin("check", check=False)
    assert bad.returncode == 1 and "start MariaDB" in bad.stdout


# slots and order

def test_banks_case_25_slots_and_fairness(own_stack):
    stack = own_stack(settings={"worker_max_slots": 4, "worker_consolidation_reserved_slots": 1})
    first, second = stack.bank(make=True), stack.bank(make=True)
    stack.llm.script(HANG)
    for i in range(100):
        submit(first, f"HANG number {i}.")
    wait_for("two running", lambda: len(stack.llm.calls()) == 2)
    # the reserved slot: a consolidation runs beside the backlog
    assert second.consolidate()["status"] == "completed"
    lone = submit(second, "A lone fact of the second bank.")
    time.sleep(0.3)
    assert second.operation(lone)["status"] == "pending"
    stack.llm.reset()
    assert second.wait(lone)["status"] == "completed"
    waiting = stack.sql("SELECT COUNT(*) AS n FROM async_operations WHERE bank_no = %s AND status = 'pending' "
                        "AND operation_type = 'retain'", bank_no(stack, first))[0]["n"]
    assert waiting > 60


def test_banks_case_25_retains_go_before_a_banks_other_work(own_stack):
    stack = own_stack(worker=False, settings={"worker_max_slots": 1, "worker_consolidation_reserved_slots": 0})
    bank = stack.bank(make=True)
    insert(stack, bank, "refresh_mental_model", '{"mental_model_id":"none"}', subject_id="none")
    retains = [child(bank, submit(bank, f"Fact number {i}.")) for i in range(3)]
    stack.start_worker()
    bank.idle()
    rows = stack.sql("SELECT operation_id, operation_type FROM async_operations WHERE bank_no = %s AND "
                     "is_parent = 0 ORDER BY claimed_at", bank_no(stack, bank))
    kinds = [r["operation_type"] for r in rows]
    assert [r["operation_id"] for r in rows][:3] == retains
    assert kinds.index("refresh_mental_model") == 3


def test_banks_case_60_the_last_shared_slot_is_not_for_a_retain(own_stack):
    stack = own_stack(settings={"worker_max_slots": 3, "worker_consolidation_reserved_slots": 0})
    bank = stack.bank(make=True)
    stack.llm.script(HANG)
    for i in range(2):
        submit(bank, f"HANG number {i}.")
    wait_for("two running", lambda: len(stack.llm.calls()) == 2)
    late = submit(bank, "HANG number 3.")
    time.sleep(0.5)
    assert row(stack, child(bank, late))["status"] == "pending"
    refresh = insert(stack, bank, "refresh_mental_model", '{"mental_model_id":"none"}', subject_id="none")
    wait_status(stack, refresh, "failed")
    assert row(stack, child(bank, late))["status"] == "pending"


def test_one_document_is_retained_in_order(own_stack):
    stack = own_stack(worker=False)
    bank = stack.bank(make=True)
    for i in range(6):
        submit(bank, f"Version {i} of the document.", document_id="doc")
    stack.start_worker()
    bank.idle()
    spans = stack.sql("SELECT claimed_at, completed_at, created_at FROM async_operations WHERE bank_no = %s AND "
                      "operation_type = 'retain' ORDER BY claimed_at", bank_no(stack, bank))
    assert len(spans) == 6
    assert [s["created_at"] for s in spans] == sorted(s["created_at"] for s in spans)
    assert all(a["completed_at"] <= b["claimed_at"] for a, b in zip(spans, spans[1:]))
    assert ok(bank.get("/documents/doc"))["original_text"] == "Version 5 of the document."


def test_fault_44_many_workers_each_job_once(own_stack):
    stack = own_stack(worker=False, settings={"worker_max_slots": 4, "worker_consolidation_reserved_slots": 1})
    banks = [stack.bank(make=True) for _ in range(10)]
    for i in range(27):
        for bank in banks:
            submit(bank, f"Fact number {i} is about sailing.")
    for bank in banks:
        insert(stack, bank, "refresh_mental_model", '{"mental_model_id":"none"}', subject_id="none")
        ok(bank.post("/consolidate"))
        ok(bank.post("/consolidate", {"observation_scopes": [["a"]]}))
    workers = [stack.start_worker(f"worker{i}") for i in range(4)]
    wait_for("an empty queue", lambda: not stack.sql("SELECT 1 FROM async_operations WHERE status IN "
                                                     "('pending', 'processing') AND is_parent = 0 LIMIT 1"), 120)
    assert all(w.alive() for w in workers)
    rows = stack.sql("SELECT * FROM async_operations WHERE is_parent = 0 ORDER BY claimed_at")
    retains = [r for r in rows if r["operation_type"] == "retain"]
    assert len(retains) == 270
    assert {(r["status"], r["attempt"], r["retry_count"]) for r in retains} == {("completed", 1, 0)}
    assert all(r["status"] == "failed" and r["attempt"] == 1 for r in rows
               if r["operation_type"] == "refresh_mental_model")
    for bank in banks:
        mine = [r for r in rows if r["bank_no"] == bank_no(stack, bank) and r["operation_type"] == "consolidation"]
        assert len(mine) >= 2 and all(r["status"] == "completed" for r in mine)
        assert all(a["completed_at"] <= b["claimed_at"] for a, b in zip(mine, mine[1:]))
        assert len(bank.memories(type="world")) == 27
    assert len({r["worker_id"] for r in rows}) == 4
    assert not any("Deadlock" in w.log_text() for w in workers)


def test_a_poke_starts_queued_work_at_once(own_stack):
    stack = own_stack(settings={"worker_poll_interval_ms": 60000})
    bank = stack.bank(make=True)
    time.sleep(0.3)
    began = time.monotonic()
    assert bank.wait(submit(bank, "Alice sails."), 10)["status"] == "completed"
    assert time.monotonic() - began < 5


# leases

@pytest.mark.parametrize("host", ["same host", "another host"])
def test_fault_39_work_left_by_a_dead_worker(own_stack, host):
    stack = own_stack(settings={"worker_lease_seconds": 4})
    bank = stack.bank(make=True)
    bank.retain("Alice sails.")
    bank.idle()
    calls = len(stack.llm.calls("consolidation"))
    stack.llm.script({"scope": "consolidation", "times": 1, "reply": {"hang": True}})
    stack.sql("UPDATE memory_units SET consolidated_at = NULL WHERE fact_type <> 'observation'")
    op = ok(bank.post("/consolidate"))["operation_id"]
    wait_status(stack, op, "processing")
    wait_for("the hanging call", lambda: len(stack.llm.calls("consolidation")) == calls + 1)
    later = submit(bank, "Bob rows.")
    stack.processes["worker"].signal(signal.SIGKILL)
    killed = time.monotonic()
    extra = {"HINDSIGHT_API_WORKER_ID": "elsewhere"} if host == "another host" else {}
    stack.start_worker("worker2", env=extra)
    assert bank.wait(later)["status"] == "completed"
    while time.monotonic() - killed < 1.5:
        assert row(stack, op)["status"] == "processing"
    done = bank.wait(op)
    assert done["status"] == "completed" and done["retry_count"] == 1
    assert time.monotonic() - killed < 20
    if host == "another host":
        assert row(stack, op)["worker_id"].startswith("elsewhere-")


def test_banks_case_26_a_live_worker_keeps_its_rows(own_stack):
    stack = own_stack(settings={"worker_lease_seconds": 3})
    bank = stack.bank(make=True)
    stack.llm.script(HANG)
    op = child(bank, submit(bank, "HANG here."))
    wait_call(stack, "HANG here")
    stack.start_worker("worker2")
    time.sleep(5)
    now = row(stack, op)
    assert (now["status"], now["retry_count"], now["attempt"]) == ("processing", 0, 1)
    stack.llm.reset()
    wait_status(stack, op, "completed", "pending")


def test_banks_case_26_a_worker_that_lost_its_lease_writes_nothing(own_stack):
    stack = own_stack(settings={"worker_lease_seconds": 3})
    bank = stack.bank(make=True)
    stack.llm.script({"scope": "retain_extract_facts", "times": 1, "reply": {"delay": 2}})
    op = child(bank, submit(bank, "Alice sails.", document_id="doc"))
    wait_call(stack, "Alice sails")
    stopped = stack.processes["worker"]
    stopped.signal(signal.SIGSTOP)
    second = stack.start_worker("worker2")
    done = wait_status(stack, op, "completed")
    assert done["attempt"] == 2 and done["retry_count"] == 1
    stopped.signal(signal.SIGCONT)
    time.sleep(2.5)
    assert stopped.alive() and second.alive()
    again = row(stack, op)
    for column in ("status", "attempt", "worker_id", "completed_at", "retry_count"):
        assert again[column] == done[column], column
    assert len(bank.memories(type="world")) == 1


def test_banks_case_26_recovery_ends_at_the_limit(own_stack):
    stack = own_stack(worker=False, settings={"worker_lease_seconds": 3, "worker_max_retries": 2})
    bank = stack.bank(make=True)
    parent = submit(bank, "Alice sails.")
    op = child(bank, parent)
    stack.sql("UPDATE async_operations SET status = 'processing', worker_id = 'dead', attempt = 3, retry_count = 2, "
              "lease_until = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE operation_id = %s", op)
    stack.start_worker()
    assert "recovery attempts exhausted" in wait_status(stack, op, "failed")["error_message"]
    assert bank.operation(parent)["status"] == "failed"


def test_fault_40_batch_parents_never_hang(own_stack):
    stack = own_stack(worker=False)
    bank = stack.bank(make=True)
    alone = insert(stack, bank, "batch_retain", None, is_parent=1)
    done = insert(stack, bank, "batch_retain", None, is_parent=1)
    insert(stack, bank, "retain", status="completed", parent_id=done)
    waiting = [submit(bank, f"Fact number {i}.") for i in range(8)]
    stack.llm.script({"scope": "retain_extract_facts", "reply": {"delay": 0.3}})
    worker = stack.start_worker()
    assert "send the request again" in wait_status(stack, alone, "failed")["error_message"]
    wait_status(stack, done, "completed")
    worker.signal(signal.SIGKILL)
    stack.sql("UPDATE async_operations SET lease_until = UTC_TIMESTAMP(6) WHERE status = 'processing'")
    stack.start_worker("worker2")
    assert {bank.wait(op)["status"] for op in waiting} == {"completed"}
    assert sorted(m["text"] for m in bank.memories(type="world")) == [f"Fact number {i}." for i in range(8)]


# outcomes

def test_banks_case_27_the_retry_budget(own_stack):
    stack = own_stack(settings={**QUICK, "worker_max_retries": 2, "worker_task_retry_backoff_seconds": 60})
    bank = stack.bank(make=True)
    stack.llm.script(refuse(500, "retain_extract_facts"))
    op = child(bank, submit(bank, "Alice sails."))
    parked = wait_for("a retry", lambda: (r := row(stack, op))["retry_count"] == 1 and r)
    assert parked["status"] == "pending" and parked["error_message"]
    wait_s = (parked["next_retry_at"] - parked["now"]).total_seconds()
    assert 50 < wait_s <= 60
    stack.sql("UPDATE async_operations SET retry_count = 2, next_retry_at = NULL WHERE operation_id = %s", op)
    failed = wait_status(stack, op, "failed")
    assert failed["retry_count"] == 2 and failed["completed_at"]
    assert json.loads(failed["result_metadata"])["last_retry_error"]


def broken_embedder(stack):
    """A worker whose embedding service is down: its consolidations fail as a whole, and may be retried."""
    stack.settings = {**stack.settings, "embeddings_provider": "openai",
                      "embeddings_openai_base_url": stack.llm.base_url, "embeddings_openai_api_key": "k",
                      "embeddings_openai_model": "e", "embeddings_max_retries": 0}
    stack.write_config()
    stack.start_worker()


def test_banks_case_27_a_consolidation_is_retried_without_limit(own_stack):
    stack = own_stack(settings=QUICK, worker=False)
    bank = stack.bank(make=True)
    stack.llm.script(refuse(500, "embeddings"))
    bank.retain("Alice sails.")
    op = stack.sql("SELECT operation_id FROM async_operations WHERE operation_type = 'consolidation'")[0]["operation_id"]
    stack.sql("UPDATE async_operations SET retry_count = 50 WHERE operation_id = %s", op)
    broken_embedder(stack)
    parked = wait_for("a retry", lambda: (r := row(stack, op))["retry_count"] == 51 and r)
    assert parked["status"] == "pending" and parked["error_message"]
    assert 1750 < (parked["next_retry_at"] - parked["now"]).total_seconds() <= 1800


@pytest.mark.parametrize("status", [401, 403])
def test_banks_case_27_refused_credentials_fail_at_once(stack, bank, status):
    bank.make()
    stack.llm.script(refuse(status, "retain_extract_facts"))
    parent = submit(bank, "Alice sails.")
    done = bank.wait(parent)
    assert done["status"] == "failed" and done["error_message"]
    failed = row(stack, child(bank, parent))
    assert failed["attempt"] == 1 and failed["retry_count"] == 0 and failed["completed_at"]
    assert len(stack.llm.calls("retain_extract_facts")) == 1
    assert "test-key-123" not in failed["error_message"]


def test_banks_case_28_another_consolidation_takes_over(own_stack):
    stack = own_stack(settings=QUICK, worker=False)
    bank, other = stack.bank(make=True), stack.bank(make=True)
    stack.llm.script(refuse(500, "embeddings"))
    bank.retain("Alice sails.")
    other.retain("Bob rows.")
    first = stack.sql("SELECT operation_id FROM async_operations ORDER BY created_at")[0]["operation_id"]
    scoped = ok(bank.post("/consolidate", {"observation_scopes": [["a"]]}))
    assert not scoped["deduplicated"]
    broken_embedder(stack)
    assert wait_status(stack, first, "failed")["retry_count"] == 0
    rows = wait_for("retries", lambda: (r := stack.sql(
        "SELECT * FROM async_operations WHERE bank_no = %s", bank_no(stack, other))) and r[0]["retry_count"] and r)
    assert rows[0]["status"] == "pending"


def test_banks_case_29_a_deferred_one_waits(own_stack):
    stack = own_stack(settings={"mental_model_min_refresh_interval_seconds": 3600})
    bank = stack.bank(make=True)
    bank.retain("Alice sails.")
    model = bank.model()
    calls = len(stack.llm.calls())
    op = insert(stack, bank, "refresh_mental_model", subject_id=model["id"],
                payload=json.dumps({"mental_model_id": model["id"], "_automatic": True}))
    parked = wait_for("parked", lambda: (r := row(stack, op))["next_retry_at"] and r)
    assert (parked["status"], parked["retry_count"], parked["error_message"]) == ("pending", 0, None)
    assert parked["worker_id"] is None and parked["run_key"] is None
    assert parked["next_retry_at"] > parked["now"] + datetime.timedelta(seconds=3000)
    time.sleep(0.5)
    assert row(stack, op)["attempt"] == parked["attempt"] == 1
    assert len(stack.llm.calls()) == calls


def test_banks_case_51_unknown_kinds_and_broken_payloads(stack, bank):
    bank.make()
    bad = [insert(stack, bank, "made_up"), insert(stack, bank, "retain", "[broken"),
           insert(stack, bank, "retain", "[]"), insert(stack, bank, "retain", '{"contents":"x"}'),
           insert(stack, bank, "refresh_mental_model", "{}"), insert(stack, bank, "consolidation", "7", subject_id="")]
    for op in bad:
        failed = wait_status(stack, op, "failed")
        assert failed["error_message"] and failed["retry_count"] == 0 and failed["completed_at"]
    assert "made_up" in row(stack, bad[0])["error_message"]
    assert ok(bank.get("/operations", status="failed"))["total"] == len(bad)
    assert bank.wait(submit(bank, "Alice sails."))["status"] == "completed"


def test_wall_limit_fails_at_once(own_stack):
    stack = own_stack(settings={"retain_wall_timeout": 1})
    bank = stack.bank(make=True)
    stack.llm.script(HANG)
    op = child(bank, submit(bank, "HANG here."))
    failed = wait_status(stack, op, "failed")
    assert failed["retry_count"] == 0
    assert "retain_wall_timeout" in failed["error_message"] and "retain" in failed["error_message"]


# cancel

def test_banks_case_18_cancel_of_a_running_one(own_stack):
    stack = own_stack(settings={"worker_max_slots": 1, "worker_consolidation_reserved_slots": 0})
    bank = stack.bank(make=True)
    stack.llm.script(HANG)
    parent = submit(bank, "HANG here.")
    op = child(bank, parent)
    wait_call(stack, "HANG here")
    ok(bank.delete(f"/operations/{op}"))
    assert bank.operation(op)["status"] == "cancelled"
    assert bank.operation(parent)["status"] == "cancelled"
    # its slot is free soon, and nothing of it is stored
    assert bank.wait(submit(bank, "Bob rows."), 10)["status"] == "completed"
    assert bank.operation(op)["status"] == "cancelled"
    assert [m["text"] for m in bank.memories(type="world")] == ["Bob rows."]
    assert len([c for c in stack.llm.calls("retain_extract_facts") if "HANG here" in json.dumps(c["body"])]) == 1


def test_banks_case_18_cancel_ends_a_backoff(own_stack):
    stack = own_stack(settings={"worker_max_slots": 1, "worker_consolidation_reserved_slots": 0,
                                "llm_max_retries": 5, "llm_initial_backoff": 30, "llm_max_backoff": 60})
    bank = stack.bank(make=True)
    stack.llm.script({**refuse(500, "retain_extract_facts"), "when": {"contains": "Alice"}})
    op = child(bank, submit(bank, "Alice sails."))
    wait_call(stack, "Alice sails")
    ok(bank.delete(f"/operations/{op}"))
    assert bank.wait(submit(bank, "Bob rows."), 10)["status"] == "completed"
    assert len(stack.llm.calls("retain_extract_facts")) == 2


# shutdown and drain

def test_sigterm_lets_running_work_end(own_stack):
    stack = own_stack()
    bank = stack.bank(make=True)
    stack.llm.script({"scope": "retain_extract_facts", "reply": {"delay": 1}})
    op = child(bank, submit(bank, "Alice sails."))
    wait_call(stack, "Alice sails")
    assert stack.processes["worker"].stop() == 0
    assert row(stack, op)["status"] == "completed"


def test_sigterm_hands_back_what_does_not_end(own_stack):
    stack = own_stack(settings={"shutdown_grace_seconds": 0})
    bank = stack.bank(make=True)
    stack.llm.script(HANG)
    op = child(bank, submit(bank, "HANG here."))
    wait_call(stack, "HANG here")
    began = time.monotonic()
    assert stack.processes["worker"].stop() == 0
    assert time.monotonic() - began < 8
    back = row(stack, op)
    assert (back["status"], back["retry_count"], back["worker_id"], back["run_key"]) == ("pending", 1, None, None)
    stack.llm.reset()
    stack.start_worker()
    wait_status(stack, op, "completed")


def test_banks_case_53_drain(own_stack):
    stack = own_stack(worker=False)
    bank = stack.bank(make=True)
    two = [submit(bank, "Alice sails."), submit(bank, "Bob rows.")]
    parked = insert(stack, bank, "refresh_mental_model", '{"mental_model_id":"none"}', subject_id="none",
                    next_retry_at="2999-01-01")
    done = subprocess.run([program_path("worker"), "--config", stack.config, "--drain"], capture_output=True,
                          text=True, timeout=60, env=stack.env())
    assert done.returncode == 0, done.stderr
    assert [bank.operation(op)["status"] for op in two] == ["completed", "completed"]
    # the consolidation that followed was run, too
    assert {r["status"] for r in stack.sql("SELECT status FROM async_operations WHERE operation_type = "
                                           "'consolidation'")} == {"completed"}
    assert row(stack, parked)["status"] == "pending"


def test_drain_says_when_the_database_is_away(own_stack):
    stack = own_stack(llm=False, worker=False, programs=["banks"])
    stack.processes["mariadbd"].kill()
    done = subprocess.run([program_path("worker"), "--config", stack.config, "--drain"], capture_output=True,
                          text=True, timeout=60, env=stack.env())
    assert done.returncode == 1
    assert "cannot connect to the database" in done.stderr


# upkeep

def test_a_deleted_bank_is_purged(stack, llm):
    gone, kept = stack.bank(make=True), stack.bank(make=True)
    for bank in (gone, kept):
        bank.retain("Alice sails with Bob.", tags=["a"], document_id="doc")
        bank.model()
        ok(bank.post("/directives", {"name": "d", "content": "Be brief."}))
        bank.idle()
    number, other = bank_no(stack, gone), bank_no(stack, kept)
    tables = [r["t"] for r in stack.sql(
        "SELECT table_name AS t FROM information_schema.columns WHERE table_schema = 'hindsight' AND "
        "column_name = 'bank_no' AND table_name <> 'purge_queue'")]

    def counts(n):
        return {t: stack.sql(f"SELECT COUNT(*) AS n FROM {t} WHERE bank_no = %s", n)[0]["n"] for t in tables}

    before, kept_before = counts(number), counts(other)
    assert sum(1 for n in before.values() if n) > 10
    ok(gone.delete())
    wait_for("the purge", lambda: not any(counts(number).values()) and not stack.sql("SELECT 1 FROM purge_queue"))
    assert counts(other) == kept_before


def test_forgotten_facts_are_consolidated(own_stack):
    stack = own_stack(settings={"consolidation_reconcile_interval_seconds": 1})
    bank, quiet = stack.bank(make=True), stack.bank(make=True)
    ok(quiet.patch("/config", {"updates": {"enable_auto_consolidation": False}}))
    for b in (bank, quiet):
        b.retain("Alice sails.")
    bank.idle()
    stack.sql("DELETE FROM async_operations")
    stack.sql("UPDATE memory_units SET consolidated_at = NULL WHERE fact_type <> 'observation'")
    wait_for("a consolidation", lambda: stack.sql(
        "SELECT 1 FROM async_operations WHERE bank_no = %s AND operation_type = 'consolidation'",
        bank_no(stack, bank)), 15)
    bank.idle()
    assert not stack.sql("SELECT 1 FROM async_operations WHERE bank_no = %s AND operation_type = 'consolidation'",
                         bank_no(stack, quiet))


def test_a_database_restart_loses_no_job(own_stack):
    stack = own_stack(settings=QUICK)
    bank = stack.bank(make=True)
    stack.llm.script({"scope": "retain_extract_facts", "reply": {"delay": 0.5}})
    parents = [submit(bank, f"Fact number {i}.") for i in range(6)]
    wait_for("running ones", lambda: len(stack.llm.calls()) >= 3)
    stack.processes["mariadbd"].signal(signal.SIGKILL)
    stack.processes["mariadbd"].child.wait()
    time.sleep(1)
    stack.start_mariadb()
    for parent in parents:
        assert bank.wait(parent, 60)["status"] == "completed"
    assert sorted(m["text"] for m in bank.memories(type="world")) == [f"Fact number {i}." for i in range(6)]
