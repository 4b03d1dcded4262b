"""Refreshes in the queue, and what reflect finds; contract mental-models 11, 12, 22."""
import concurrent.futures
import time
from datetime import datetime

import pytest

from model_calls import (hasty, hasty_bank, idle, create, read, made_model, refresh, history, versions,
                         document, refused, filled, times)  # noqa: E402,F401
from stack import ok, wait_for  # noqa: E402

# ---- queue

def test_models_case_21_explicit_refreshes_fold(idle):
    bank = idle.bank()
    made = create(bank)
    for _ in range(5):
        again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))
        assert again == {"operation_id": made["operation_id"], "status": "queued"}
    assert ok(bank.get("/operations"))["total"] == 1


def test_models_case_22_parallel_submits_are_one_row(idle):
    bank = idle.bank()
    made = create(bank)
    idle.sql("UPDATE async_operations SET status = 'completed' WHERE operation_id = %s", made["operation_id"])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(lambda _: ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))
                           ["operation_id"], range(8)))
    assert len(ids) == 1 and made["operation_id"] not in ids
    assert ok(bank.get("/operations", status="pending"))["total"] == 1


def test_models_case_23_a_running_one_is_not_reused(bank, llm):
    filled(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"delay": 1.5}})
    made = create(bank)
    wait_for("the first call", lambda: llm.calls("reflect_tool_call"))
    second = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    third = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    assert second != made["operation_id"] and second == third
    assert bank.operation(second)["status"] == "pending"
    assert bank.wait(made["operation_id"])["status"] == "completed"
    assert bank.wait(second)["status"] == "completed"


def test_models_case_24_two_waiting_refreshes_never_run_together(own_stack):
    s = own_stack()
    bank = filled(s.bank())
    model = made_model(bank)
    s.processes["worker"].stop()
    first = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    second = first[:-4] + ("ffff" if not first.endswith("ffff") else "fffe")
    s.sql("INSERT INTO async_operations (operation_id, bank_no, operation_type, status, task_payload,"
          " result_metadata, subject_id, created_at, updated_at) SELECT %s, bank_no, operation_type, status,"
          " task_payload, result_metadata, subject_id, created_at + INTERVAL 1 SECOND, updated_at"
          " FROM async_operations WHERE operation_id = %s", second, first)
    s.llm.script({"when": {"tool_forced": "recall"}, "reply": {"delay": 0.7}})
    s.start_worker("worker")
    s.start_worker("worker-2")
    seen = set()

    def ended():
        states = {i: bank.operation(i)["status"] for i in (first, second)}
        assert list(states.values()).count("processing") <= 1
        seen.add(tuple(states.values()))
        return all(v == "completed" for v in states.values())

    wait_for("both refreshes", ended, 30, 0.02)
    assert ("processing", "pending") in seen and ("completed", "processing") in seen
    assert bank.operation(first)["completed_at"] < bank.operation(second)["completed_at"]


def test_a_cancelled_refresh_is_no_failure(bank, llm):
    filled(bank)
    model = made_model(bank)
    llm.script({"when": {"tool_forced": "recall"}, "times": 1, "reply": {"hang": True}})
    operation_id = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    wait_for("the call that hangs", lambda: [c for c in llm.calls("reflect_tool_call") if c["rule"] is not None])
    ok(bank.delete(f"/operations/{operation_id}"))
    assert bank.wait(operation_id)["status"] == "cancelled"
    wait_for("the end of the call", lambda: all(c["ended"] for c in llm.calls("reflect_tool_call")), 20)
    assert {**read(bank, model["id"]), "is_stale": None} == {**model, "is_stale": None}
    assert versions(bank, model["id"]) == [""] and len(history(bank, model["id"])) == 1
    # the subject is free again
    assert refresh(bank, model["id"])["status"] == "completed"


def test_a_used_up_quota_parks_the_refresh(hasty, hasty_bank):
    bank = filled(hasty_bank)
    model = made_model(bank)
    hasty.llm.script({"scope": "reflect_tool_call", "reply": {
        "status": 429, "headers": {"Retry-After": "3600"}, "body": {"error": {"message": "quota exceeded"}}}})
    operation_id = ok(bank.post(f"/mental-models/{model['id']}/refresh"))["operation_id"]
    op = wait_for("the park", lambda: (lambda o: o["next_retry_at"] and o)(bank.operation(operation_id)))
    ahead = datetime.fromisoformat(op["next_retry_at"]).timestamp() - time.time()
    assert op["status"] == "pending" and op["retry_count"] == 0 and 3500 < ahead < 3700
    assert len(history(bank, model["id"])) == 1
    assert read(bank, model["id"])["last_refresh_failed_at"] is None


def make_automatic(stack, bank, model_id):
    """Queue a refresh as a trigger does; the row's id."""
    operation_id = ok(bank.post(f"/mental-models/{model_id}/refresh"))["operation_id"]
    stack.sql("UPDATE async_operations SET task_payload = JSON_SET(task_payload, '$._automatic', true)"
              " WHERE operation_id = %s AND status = 'pending'", operation_id)
    return operation_id


@pytest.mark.parametrize("own,of_bank,parks", [(1800, None, True), (None, 1800, True), (0, 1800, False),
                                               (None, None, False)])
def test_models_case_25_automatic_refreshes_keep_their_distance(own_stack, own, of_bank, parks):
    settings = {} if of_bank is None else {"mental_model_min_refresh_interval_seconds": of_bank}
    s = own_stack(settings=settings, worker=False)
    bank = s.bank()
    made = create(bank, trigger={"min_refresh_interval_seconds": own})
    operation_id = make_automatic(s, bank, made["mental_model_id"])
    assert operation_id == made["operation_id"]
    s.sql("UPDATE mental_models SET last_refreshed_at = UTC_TIMESTAMP(6) - INTERVAL 60 SECOND")
    s.start_worker()
    if not parks:
        assert bank.wait(operation_id)["status"] == "completed"
        return
    op = wait_for("the park", lambda: (lambda o: o["next_retry_at"] and o)(bank.operation(operation_id)))
    ahead = datetime.fromisoformat(op["next_retry_at"]).timestamp() - time.time()
    assert 28 * 60 < ahead < 30 * 60
    assert op["status"] == "pending" and op["retry_count"] == 0 and op["error_message"] is None
    assert history(bank, made["mental_model_id"]) == []
    assert read(bank, made["mental_model_id"])["last_refresh_failed_at"] is None
    # by hand: the parked one runs now
    again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    assert again == operation_id
    assert bank.wait(operation_id)["status"] == "completed"


def test_models_case_26_by_hand_onto_a_parked_one(idle):
    bank = idle.bank()
    made = create(bank)
    make_automatic(idle, bank, made["mental_model_id"])
    idle.sql("UPDATE async_operations SET next_retry_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR WHERE operation_id = %s",
             made["operation_id"])
    assert bank.operation(made["operation_id"])["next_retry_at"] is not None
    again = ok(bank.post(f"/mental-models/{made['mental_model_id']}/refresh"))["operation_id"]
    op = bank.operation(again, include_payload=True)
    assert again == made["operation_id"] and op["next_retry_at"] is None
    assert "_automatic" not in op["task_payload"]


def test_models_case_27_only_a_success_lifts_the_pause(hasty, hasty_bank):
    bank, llm = filled(hasty_bank), hasty.llm
    model = made_model(bank)
    llm.script(refused())
    refresh(bank, model["id"])
    stamp = read(bank, model["id"])["last_refresh_failed_at"]
    assert stamp
    ok(bank.patch(f"/mental-models/{model['id']}", {"name": "Renamed", "trigger": {"mode": "delta"}}))
    ok(bank.post(f"/mental-models/{model['id']}/clear"))
    assert read(bank, model["id"])["last_refresh_failed_at"] == stamp
    llm.reset()
    assert refresh(bank, model["id"])["status"] == "completed"
    assert read(bank, model["id"])["last_refresh_failed_at"] is None


def test_models_case_55_full_mode_once(idle):
    bank = idle.bank()
    made = create(bank, trigger={"mode": "delta"})
    path = f"/mental-models/{made['mental_model_id']}/refresh"
    for body in (None, {}, {"mode": None}):
        assert ok(bank.post(path, body))["operation_id"] == made["operation_id"]
        assert "_mode" not in bank.operation(made["operation_id"], include_payload=True)["task_payload"]
    for bad in ({"mode": "delta"}, {"mode": "fast"}, {"mode": 1}):
        a = bank.post(path, bad)
        assert a.status == 422 and a.detail[0]["loc"] == ["body", "mode"]
    assert ok(bank.post(path, {"mode": "full"}))["operation_id"] == made["operation_id"]
    assert bank.operation(made["operation_id"], include_payload=True)["task_payload"]["_mode"] == "full"
    assert read(bank, made["mental_model_id"])["trigger"]["mode"] == "delta"


# ---- look-up by reflect

def models_found(bank, query):
    answer = ok(bank.post("/reflect", {"query": query, "include": {"tool_calls": {}}}))
    [call] = [c for c in answer["trace"]["tool_calls"] if c["tool"] == "search_mental_models"]
    return call["output"]["mental_models"]


def test_models_case_62_search_follows_names_and_texts(bank, llm):
    filled(bank)
    llm.script(document("Quarterly budget figures of the observatory."))
    made_model(bank, id="first", name="Alpha")
    llm.reset()
    llm.script(document("Recipes for sourdough bread."))
    made_model(bank, id="second", name="Beta")
    llm.reset()
    assert models_found(bank, "sourdough bread recipes")[0]["id"] == "second"
    ok(bank.patch("/mental-models/first", {"name": "Zebra stripes migration"}))
    found = models_found(bank, "Zebra stripes migration")
    assert found[0]["id"] == "first" and found[0]["name"] == "Zebra stripes migration"
    before = {m["id"]: m["relevance"] for m in models_found(bank, "sourdough bread recipes")}
    ok(bank.post("/mental-models/second/clear"))
    after = {m["id"]: m["relevance"] for m in models_found(bank, "sourdough bread recipes")}
    assert after["second"] < before["second"] / 2
