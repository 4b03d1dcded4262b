"""The operations API: list, one operation, wait, cancel, retry, delete; states are set in the database."""
import concurrent.futures
import json
import threading
import time
import uuid

import pytest

from stack import Stack, ok

LISTED = {"id", "operation_id", "task_type", "operation_type", "status", "items_count", "document_id", "filename",
          "mental_model_id", "created_at", "updated_at", "error_message", "retry_count", "next_retry_at", "details",
          "progress"}
SINGLE = {"operation_id", "id", "status", "operation_type", "task_type", "mental_model_id", "created_at",
          "updated_at", "completed_at", "error_message", "retry_count", "next_retry_at", "progress",
          "result_metadata", "details", "child_operations", "task_payload"}
STATES = ["pending", "processing", "completed", "failed", "cancelled"]


@pytest.fixture(scope="module")
def idle():
    """A server without a worker: what is put into the queue stays as it is."""
    s = Stack(worker=False, programs=["banks", "memories", "operations"]).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def queue(idle):
    return Queue(idle)


class Queue:
    def __init__(self, stack):
        self.stack, self.bank = stack, stack.bank(make=True)
        self.bank_no = stack.sql("SELECT bank_no FROM banks WHERE bank_id = %s", self.bank.id)[0]["bank_no"]

    def add(self, status="pending", kind="retain", metadata=None, payload='{"contents":[]}', **columns):
        op = str(uuid.uuid4())
        values = {"operation_id": op, "bank_no": self.bank_no, "operation_type": kind, "status": status,
                  "task_payload": payload, "result_metadata": json.dumps(metadata or {}),
                  "created_at": "2026-01-02 03:04:05.000006", "updated_at": "2026-01-02 03:04:05", **columns}
        names = ", ".join(values)
        self.stack.sql(f"INSERT INTO async_operations ({names}) VALUES ({', '.join(['%s'] * len(values))})",
                       *values.values())
        return op

    def row(self, op):
        return self.stack.sql("SELECT * FROM async_operations WHERE operation_id = %s", op)[0]

    def parent(self, *children):
        parent = self.add(kind="batch_retain", payload=None, is_parent=1, metadata={"is_parent": True})
        ids = [self.add(status, parent_id=parent, metadata={"sub_batch_index": i, "items_count": 1})
               for i, status in enumerate(children, 1)]
        return parent, ids

    def list(self, **query):
        return ok(self.bank.get("/operations", **query))

    def change(self, method, op, what=""):
        return getattr(self.bank, method)(f"/operations/{op}{what}")


# one operation

def test_banks_case_17_ids(queue):
    unknown = str(uuid.uuid4())
    for path, method in (("", "get"), ("", "delete"), ("/retry", "post"), ("/delete", "delete")):
        answer = queue.change(method, "abc", path)
        assert answer.status == 400
        assert answer.detail == "Invalid operation_id format: abc"
    answer = ok(queue.change("get", unknown))
    assert set(answer) == SINGLE
    assert answer["status"] == "not_found"
    assert answer["operation_id"] == answer["id"] == unknown
    assert all(answer[k] is None for k in SINGLE - {"operation_id", "id", "status"})
    for path, method in (("", "delete"), ("/retry", "post"), ("/delete", "delete")):
        answer = queue.change(method, unknown, path)
        assert answer.status == 404
        assert answer.detail == f"Operation {unknown} not found for bank {queue.bank.id}"


def test_missing_bank(idle):
    nobody = idle.bank()
    op = str(uuid.uuid4())
    assert nobody.get("/operations").status == 404
    assert nobody.get("/operations").detail == f"Bank '{nobody.id}' not found"
    assert ok(nobody.get(f"/operations/{op}"))["status"] == "not_found"
    assert nobody.delete(f"/operations/{op}").detail == f"Operation {op} not found for bank {nobody.id}"
    assert not idle.sql("SELECT 1 FROM banks WHERE bank_id = %s", nobody.id)


def test_ids_in_any_spelling_are_echoed(queue):
    parent, children = queue.parent("pending", "completed")
    for spelling in (parent.upper(), parent.replace("-", ""), "{" + parent + "}", "urn:uuid:" + parent):
        answer = ok(queue.change("get", spelling.replace("{", "%7B").replace("}", "%7D")))
        assert answer["operation_id"] == spelling
        assert answer["status"] == "pending"
        assert [c["operation_id"] for c in answer["child_operations"]] == children


def test_banks_case_43_nulls_and_both_names(queue):
    op = queue.add("completed", metadata={"items_count": 3, "document_id": "d"}, completed_at="2026-01-02 03:04:06")
    listed = queue.list()["operations"][0]
    single = ok(queue.change("get", op))
    assert set(listed) == LISTED and set(single) == SINGLE
    for answer in (listed, single):
        assert answer["error_message"] is None
        assert answer["id"] == answer["operation_id"] == op
        assert answer["task_type"] == answer["operation_type"] == "retain"
        assert answer["created_at"] == "2026-01-02T03:04:05.000006+00:00"
        assert answer["retry_count"] == 0
    assert listed["items_count"] == 3 and listed["document_id"] == "d"
    assert single["completed_at"] == "2026-01-02T03:04:06+00:00"
    assert single["result_metadata"] == {"items_count": 3, "document_id": "d"}
    assert single["child_operations"] is None and single["task_payload"] is None
    assert ok(queue.bank.get(f"/operations/{op}", include_payload="true"))["task_payload"] == {"contents": []}


def test_details_only_of_known_outcomes(queue):
    good = {"outcome": "refresh_failed_error", "failure_reason": "no_answer"}
    shown = queue.add("failed", "refresh_mental_model", {"mental_model_id": "m", **good})
    for metadata in ({"outcome": "made up"}, {"outcome": "content_written", "failure_reason": "made up"}, {}):
        assert ok(queue.change("get", queue.add("failed", "refresh_mental_model", metadata)))["details"] is None
    assert ok(queue.change("get", queue.add("failed", "retain", good)))["details"] is None
    answer = ok(queue.change("get", shown))
    assert answer["details"] == {"operation_type": "refresh_mental_model", **good}
    assert answer["mental_model_id"] == "m"
    assert [o["mental_model_id"] for o in queue.list()["operations"] if o["id"] == shown] == ["m"]


def test_broken_metadata_never_fails_a_page(queue):
    op = queue.add("completed")
    queue.stack.sql("UPDATE async_operations SET result_metadata = '[broken' WHERE operation_id = %s", op)
    assert queue.list()["total"] == 1
    assert ok(queue.change("get", op))["result_metadata"] == {}


def test_progress_has_its_five_members(queue):
    progress = {"stage": "storing", "at": "2026-01-01T00:00:00+00:00", "processed": 1, "total": 2,
                "detail": {"facts_committed": 4}}
    op = queue.add("processing", metadata={"progress": progress})
    assert ok(queue.change("get", op))["progress"] == progress
    assert queue.list()["operations"][0]["progress"] == progress


# lists

def test_fault_43_listing_operations(queue):
    for state in STATES:
        queue.add(state)
    queue.add("completed", "consolidation")
    queue.parent("pending")
    for state in STATES:
        found = queue.list(status=state)["operations"]
        assert found and {o["status"] for o in found} == {state}
    assert queue.list(status="bogus") == {"bank_id": queue.bank.id, "total": 0, "limit": 20, "offset": 0,
                                          "operations": []}
    assert queue.list(status="")["total"] == 8
    assert [o["operation_type"] for o in queue.list(type="consolidation")["operations"]] == ["consolidation"]
    assert queue.list(exclude_parents="true")["total"] == 7
    for bad in ({"limit": 0}, {"limit": 101}, {"limit": -1}, {"offset": -1}, {"limit": "x"}):
        answer = queue.bank.get("/operations", **bad)
        assert answer.status == 422
        assert answer.detail[0]["loc"] == ["query", next(iter(bad))]


def test_fault_43_pages_cover_each_row_once(queue):
    ids = {queue.add("completed") for _ in range(20)}
    seen = []
    for offset in range(0, 21, 3):
        page = queue.list(limit=3, offset=offset)
        assert page["total"] == 20 and page["limit"] == 3 and page["offset"] == offset
        seen += [o["id"] for o in page["operations"]]
    assert len(seen) == 20 and set(seen) == ids
    assert queue.list(offset=100)["operations"] == [] and queue.list(offset=100)["total"] == 20


def test_banks_case_20_pending_is_not_processing(queue):
    waiting, running = queue.add("pending"), queue.add("processing")
    assert [o["id"] for o in queue.list(status="pending")["operations"]] == [waiting]
    assert [o["id"] for o in queue.list(status="processing")["operations"]] == [running]


# changes

def test_banks_case_18_cancel_and_retry(queue):
    op = queue.add("pending", retry_count=2, error_message="old")
    assert ok(queue.change("delete", op)) == {"success": True, "message": f"Operation {op} cancelled",
                                              "operation_id": op}
    assert queue.row(op)["status"] == "cancelled"
    assert queue.change("delete", op).status == 409
    assert ok(queue.change("post", op, "/retry"))["message"] == f"Operation {op} queued for retry"
    row = queue.row(op)
    assert (row["status"], row["retry_count"], row["error_message"]) == ("pending", 0, None)
    running = queue.add("processing", worker_id="gone")
    ok(queue.change("delete", running))
    assert queue.row(running)["status"] == "cancelled"
    for state in ("completed", "failed"):
        op = queue.add(state)
        assert queue.change("delete", op).status == 409
        assert queue.row(op)["status"] == state


def test_banks_case_19_other_banks_rows_are_safe(queue):
    op = queue.add("failed")
    other = queue.stack.bank(make=True)
    for path, method in (("", "delete"), ("/retry", "post"), ("/delete", "delete")):
        assert getattr(other, method)(f"/operations/{op}{path}").status == 404
    assert ok(other.get(f"/operations/{op}"))["status"] == "not_found"
    assert queue.row(op)["status"] == "failed"


def test_delete_by_state(queue):
    for state in STATES:
        op = queue.add(state)
        answer = queue.change("delete", op, "/delete")
        if state in ("pending", "processing"):
            assert answer.status == 409 and queue.row(op)["status"] == state
        else:
            assert ok(answer)["message"] == f"Operation {op} deleted"
            assert ok(queue.change("get", op))["status"] == "not_found"


def test_banks_case_21_parents(queue):
    parent, _ = queue.parent("completed", "completed")
    assert queue.change("post", parent, "/retry").status == 409
    assert queue.row(parent)["status"] == "pending"
    parent, (child,) = queue.parent("pending")
    ok(queue.change("delete", child))
    assert queue.row(parent)["status"] == "cancelled"
    parent, (_, child) = queue.parent("failed", "pending")
    ok(queue.change("delete", child))
    assert queue.row(parent)["status"] == "failed"
    ok(queue.change("post", parent, "/retry"))
    assert queue.row(parent)["status"] == "pending"
    assert queue.row(child)["status"] == "pending"


def test_reading_heals_a_parent(queue):
    done, _ = queue.parent("completed", "completed")
    failed, _ = queue.parent("completed", "failed")
    alone, _ = queue.parent()
    answer = ok(queue.change("get", done))
    assert answer["status"] == "completed"
    assert [(c["sub_batch_index"], c["items_count"], c["status"]) for c in answer["child_operations"]] == \
        [(1, 1, "completed"), (2, 1, "completed")]
    assert ok(queue.change("get", failed))["status"] == "failed"
    answer = ok(queue.change("get", alone))
    assert answer["status"] == "failed" and answer["child_operations"] == []


def test_banks_case_22_retry_races_with_deletion(queue):
    for _ in range(10):
        op = queue.add("failed")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            retry = pool.submit(queue.change, "post", op, "/retry")
            delete = pool.submit(queue.change, "delete", op, "/delete")
        rows = queue.stack.sql("SELECT status FROM async_operations WHERE operation_id = %s", op)
        if retry.result().status == 200:
            assert delete.result().status == 409 and rows[0]["status"] == "pending"
        else:
            assert retry.result().status == 404 and delete.result().status == 200 and not rows


def test_banks_case_23_two_consolidate_calls_share_one(queue):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = [ok(a) for a in pool.map(lambda _: queue.bank.post("/consolidate"), range(8))]
    assert len({a["operation_id"] for a in answers}) == 1
    assert sorted(a["deduplicated"] for a in answers) == [False] + [True] * 7


def test_banks_case_23_scoped_ones_absorb_nothing(queue):
    scoped = ok(queue.bank.post("/consolidate", {"observation_scopes": [["a"]]}))
    plain = ok(queue.bank.post("/consolidate"))
    again = ok(queue.bank.post("/consolidate", {"observation_scopes": [["a"]]}))
    assert not plain["deduplicated"] and not again["deduplicated"]
    assert len({scoped["operation_id"], plain["operation_id"], again["operation_id"]}) == 3


def test_banks_case_24_consolidate_of_a_missing_bank(idle):
    nobody = idle.bank()
    for body in (None, {"observation_scopes": [["a"]]}):
        answer = nobody.post("/consolidate", body)
        assert answer.status == 404 and answer.detail == f"Bank '{nobody.id}' not found"
    assert not idle.sql("SELECT 1 FROM banks WHERE bank_id = %s", nobody.id)


# wait

def test_wait_answers_when_the_operation_ends(queue):
    op = queue.add("processing")

    def end():
        time.sleep(0.5)
        queue.stack.sql("UPDATE async_operations SET status = 'completed' WHERE operation_id = %s", op)

    ender = threading.Thread(target=end)
    ender.start()
    began = time.monotonic()
    answer = ok(queue.bank.get(f"/operations/{op}", wait=30))
    ender.join()
    assert answer["status"] == "completed"
    assert 0.4 < time.monotonic() - began < 5


def test_wait_answers_when_the_seconds_have_passed(queue):
    op = queue.add("pending")
    began = time.monotonic()
    assert ok(queue.bank.get(f"/operations/{op}", wait=1))["status"] == "pending"
    assert 0.9 < time.monotonic() - began < 5
    for bad in (-1, 61, "x"):
        assert queue.bank.get(f"/operations/{op}", wait=bad).status == 422
    began = time.monotonic()
    assert ok(queue.bank.get(f"/operations/{uuid.uuid4()}", wait=5))["status"] == "not_found"
    assert time.monotonic() - began < 2


def test_waiting_calls_leave_threads_for_others(queue):
    """8 threads: at most 6 may wait, so a short read is answered at once."""
    op = queue.add("pending")
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        waits = [pool.submit(queue.bank.get, f"/operations/{op}", wait=3) for _ in range(12)]
        time.sleep(0.7)
        began = time.monotonic()
        ok(queue.bank.get("/operations"))
        assert time.monotonic() - began < 1.5
        answers = [w.result() for w in waits]
    assert {a.status for a in answers} == {200, 503}
    for refused in (a for a in answers if a.status == 503):
        assert int(refused.headers["Retry-After"]) >= 1
