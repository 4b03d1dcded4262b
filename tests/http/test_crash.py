"""Crashes: every program and MariaDB are killed at once; what was acknowledged is there afterwards."""
import itertools
import re
import threading
import time

import pytest

from stack import SOURCE, ok, quote, wait_for

DURABLE = ["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1"]


def quickstart_options():
    """The options conf/quickstart starts MariaDB with."""
    return re.findall(r"--[a-z-]+(?:=[\w.-]+)?", (SOURCE / "conf/quickstart").read_text())


def test_quickstart_commits_are_durable():
    given = quickstart_options()
    assert DURABLE[0] in given
    assert not [o for o in given if o.startswith(("--innodb-doublewrite=0", "--skip-innodb-doublewrite",
                                                  "--innodb-flush-method=nosync"))]


class Writer(threading.Thread):
    """Sends one request after the other until the server is gone; keeps what was acknowledged."""

    def __init__(self, number, send):
        super().__init__(daemon=True)
        self.number, self.send = number, send
        self.acknowledged, self.odd = [], []

    def run(self):
        for i in itertools.count():
            name = f"w{self.number}-{i}"
            try:
                answer = self.send(name)
            except OSError:
                return
            if answer.status == 200:
                self.acknowledged.append((name, answer.json()))
            elif answer.status < 500:
                self.odd.append(answer)
            else:
                return


def senders(bank):
    """One way to write for each thread: sync retain, async retain, a model."""
    def retain(name, **body):
        return bank.post("/memories", {"items": [{"content": f"Note {name} is kept.", "document_id": name}], **body})
    return [retain, retain, lambda name: retain(name, **{"async": True}),
            lambda name: bank.post("/mental-models", {"id": name, "name": name, "source_query": f"What is {name}?"})]


@pytest.mark.parametrize("seconds", [0.4, 1.1])
def test_acknowledged_writes_are_there_after_a_crash_of_everything(own_stack, seconds):
    stack = own_stack(llm=False, settings={"worker_lease_seconds": 3}, mariadb=DURABLE)
    bank = stack.bank()
    bank.make(retain_extraction_mode="chunks")
    writers = [Writer(n, send) for n, send in enumerate(senders(bank))]
    for w in writers:
        w.start()
    wait_for("something acknowledged by each", lambda: all(w.acknowledged for w in writers))
    time.sleep(seconds)
    stack.kill_all()
    for w in writers:
        w.join(60)
        assert not w.is_alive() and w.odd == [], w.odd
    stack.start_again()
    check_retains(bank, writers)
    check_models(stack, bank, writers[3])


def check_retains(bank, writers):
    for _, answer in writers[2].acknowledged:
        assert bank.wait(answer["operation_id"])["status"] == "completed"
    texts = {m["document_id"]: m["text"] for m in bank.memories(type="world")}
    for name, _ in itertools.chain(*(w.acknowledged for w in writers[:3])):
        assert texts[name] == f"Note {name} is kept.", name
    documents = ok(bank.get("/documents", limit=1000))["items"]
    assert {d["id"] for d in documents} == set(texts), "a document stands with its facts or not at all"
    assert {d["memory_unit_count"] for d in documents} == {1}


def check_models(stack, bank, writer):
    """A model, acknowledged or not, has its refresh, and the refresh ends."""
    bank.idle()
    models = {m["id"] for m in ok(bank.get("/mental-models", limit=1000))["items"]}
    assert {name for name, _ in writer.acknowledged} <= models
    rows = stack.sql("SELECT subject_id, status FROM async_operations WHERE operation_type = 'refresh_mental_model'")
    assert {r["subject_id"] for r in rows} == models
    assert {r["status"] for r in rows} == {"completed"}


def test_a_refresh_under_way_is_run_again_after_a_crash(own_stack):
    stack = own_stack(settings={"worker_lease_seconds": 3, "llm_timeout": 600}, mariadb=DURABLE)
    bank = stack.bank()
    bank.retain("Carol leads the design team.")
    bank.idle()
    stack.llm.script({"scope": "reflect_tool_call", "reply": {"hang": True}})
    made = ok(bank.post("/mental-models", {"name": "Design", "source_query": "Who leads the design team?"}))
    wait_for("the first call", lambda: stack.llm.calls("reflect_tool_call"))
    stack.kill_all()
    stack.llm.reset()
    stack.start_again()
    done = bank.wait(made["operation_id"])
    assert (done["status"], done["retry_count"]) == ("completed", 1)
    model = ok(bank.get("/mental-models/" + quote(made["mental_model_id"])))
    assert "Carol" in model["content"] and model["last_refresh_failed_at"] is None
    assert len(ok(bank.get(f"/mental-models/{model['id']}/history"))) == 1


# one transaction: what follows from a write is stored with it

@pytest.fixture(scope="module")
def queueless():
    """A server whose database refuses every new operation."""
    from stack import Stack
    s = Stack(llm=False, worker=False).start()
    s.kept = s.bank(make=True)
    s.kept.model_id = ok(s.kept.post("/mental-models", {"name": "M", "source_query": "Q"}))["mental_model_id"]
    s.sql("CREATE TRIGGER refused BEFORE INSERT ON async_operations FOR EACH ROW "
          "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'refused by the test'")
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


def counts(stack):
    tables = ("banks", "mental_models", "documents", "memory_units", "async_operations")
    return {t: stack.sql(f"SELECT COUNT(*) AS n FROM {t}")[0]["n"] for t in tables}


@pytest.mark.parametrize("path, body", [
    ("/mental-models", {"name": "N", "source_query": "Q"}),
    ("/memories", {"items": [{"content": "Alice likes green tea.", "document_id": "d"}]}),
    ("/memories", {"items": [{"content": "Alice likes green tea.", "document_id": "d"}], "async": True}),
])
def test_no_write_stands_without_what_follows_from_it(queueless, path, body):
    before = counts(queueless)
    answer = queueless.kept.post(path, body)
    assert answer.status == 500 and answer.json() == {"detail": "database error"}
    assert counts(queueless) == before


# a failed call of the model

FAILURES = [{"status": 500}, {"status": 401}, {"status": 429}, {"raw": "no json at all"}, {"cut": 20}, {"text": None},
            {"delay": 5}]


@pytest.fixture(scope="module")
def fragile():
    """A server that gives up on a model call soon."""
    from stack import Stack
    s = Stack(settings={"llm_max_retries": 0, "worker_max_retries": 0, "llm_timeout": 2,
                        "reflect_llm_timeout": 2}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.mark.parametrize("reply", FAILURES, ids=str)
def test_a_failed_call_leaves_the_model_as_it_was(fragile, reply):
    fragile.llm.reset()
    bank = fragile.bank()
    bank.retain("Carol leads the design team.")
    bank.idle()
    model = bank.model("Design", "Who leads the design team?")
    assert "Carol" in model["content"]
    bank.retain("Dave joins the design team.")
    bank.idle()
    path = "/mental-models/" + model["id"]
    stored = dict(ok(bank.get(path)))
    before = ok(bank.get(path + "/history"))
    fragile.llm.script({"scope": "reflect*", "reply": reply})
    op = bank.wait(ok(bank.post(path + "/refresh"))["operation_id"])
    fragile.llm.reset()
    assert op["status"] == "failed" and op["error_message"]
    after = dict(ok(bank.get(path)))
    assert after.pop("last_refresh_failed_at") is not None and stored.pop("last_refresh_failed_at") is None
    assert after == stored
    history = ok(bank.get(path + "/history"))
    assert [e for e in history if e.get("failure_reason") is None] == before
    assert len(history) == len(before) + 1
