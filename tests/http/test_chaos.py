"""Mixed traffic, a sick model server, killed workers and a killed database; then everything is recounted."""
import os
import random
import threading
import time

import consistency
from stack import SIGKILL, ok, quote, wait_for

SECONDS = float(os.environ.get("HS_CHAOS_SECONDS", 8))
SEED = int(os.environ.get("HS_CHAOS_SEED", 1))
DURABLE = ["--innodb-flush-log-at-trx-commit=1", "--innodb-doublewrite=1"]
PEOPLE = ["Alice", "Bob", "Carol", "Dave", "Erin", "Frank"]
THINGS = ["green tea", "the design team", "long walks in Paris", "an old bicycle", "chess", "Rust and C"]
TAGS = ["a", "b", "c"]
SICK = [{"status": 500}, {"status": 429}, {"raw": "no json"}, {"cut": 30}, {"text": None}, {"text": "Hello!"}, {"delay": 0.3},
        {"json": {"facts": "none"}}, {"json": [1, 2]}, {"tool_calls": [{"name": "nothing", "raw_args": "{"}]}]


class Trouble(threading.Thread):
    """Random calls on a few shared things; keeps what was acknowledged and every answer out of order."""

    def __init__(self, number, banks, end):
        super().__init__(daemon=True)
        self.name, self.rng, self.banks, self.end = f"t{number}", random.Random(SEED * 1000 + number), banks, end
        self.kept, self.odd, self.done = {}, [], 0

    def run(self):
        while time.monotonic() < self.end:
            call = self.rng.choice(CALLS)
            bank = self.rng.choice(self.banks)
            try:
                answer = call(self, bank)
            except OSError:
                continue
            self.done += 1
            if answer is not None and answer.status >= 500 and not foreseen(answer):
                self.odd.append((call.__name__, answer))

    def text(self):
        return f"{self.rng.choice(PEOPLE)} likes {self.rng.choice(THINGS)}, says {self.rng.choice(PEOPLE)}."

    def tags(self):
        return self.rng.sample(TAGS, self.rng.randrange(3))

    def model(self):
        return "/mental-models/m" + str(self.rng.randrange(3))


def foreseen(answer):
    """What a sick model or an absent database makes of a request."""
    return answer.status in (502, 503, 504) or (answer.status == 500 and answer.json()["detail"] != "database error")


def retain_shared(t, bank):
    return bank.post("/memories", {"items": [{"content": t.text(), "tags": t.tags(),
                                              "document_id": f"d{t.rng.randrange(4)}"}]})


def retain_many(t, bank):
    items = [{"content": t.text(), "tags": t.tags(), **({"document_id": f"d{t.rng.randrange(4)}"} if i else {})}
             for i in range(3)]
    return bank.post("/memories", {"items": items, "async": t.rng.random() < 0.7})


def retain_kept(t, _):
    """Into the bank that nobody deletes, under a name of its own: this one must be there at the end."""
    bank, name = t.banks[0], f"{t.name}-{t.done}"
    answer = bank.post("/memories", {"items": [{"content": f"Note {name} is kept.", "document_id": name}],
                                     "async": t.rng.random() < 0.5})
    if answer.status == 200:
        t.kept[name] = answer.json().get("operation_id")
    return answer


def delete_document(t, bank):
    return bank.delete(f"/documents/d{t.rng.randrange(4)}")


def delete_facts(t, _):
    return t.banks[-1].delete("/memories", type=t.rng.choice(["world", "observation", None]))


def delete_bank(t, _):
    return t.banks[-1].delete() if t.rng.random() < 0.3 else t.banks[-1].put("", {"name": t.text()})


def consolidate(t, bank):
    return bank.post("/consolidate")


def make_model(t, bank):
    trigger = {"mode": t.rng.choice(["full", "delta"]), "refresh_after_consolidation": t.rng.random() < 0.5}
    return bank.post("/mental-models", {"id": f"m{t.rng.randrange(3)}", "name": "M", "source_query": "Who likes what?",
                                        "tags": t.tags(), "trigger": trigger})


def change_model(t, bank):
    body = t.rng.choice([{"tags": t.tags()}, {"trigger": {"tags_match": t.rng.choice(["any", "all", "any_strict", None])}},
                         {"name": t.text()}, {"trigger": {"fact_types": t.rng.choice([["world"], ["observation"], None])}}])
    return bank.patch(t.model(), body)


def use_model(t, bank):
    return t.rng.choice([lambda: bank.post(t.model() + "/refresh"), lambda: bank.post(t.model() + "/clear"),
                         lambda: bank.delete(t.model()), lambda: bank.get(t.model()),
                         lambda: bank.get(t.model() + "/history"), lambda: bank.get("/mental-models", detail="full")])()


def read(t, bank):
    return t.rng.choice([lambda: bank.post("/memories/recall", {"query": t.text(), "tags": t.tags()}),
                         lambda: bank.get("/memories/list"), lambda: bank.get("/stats"), lambda: bank.get("/entities"),
                         lambda: bank.get("/documents"), lambda: bank.post("/reflect", {"query": t.text()})])()


def use_operation(t, bank):
    answer = bank.get("/operations", limit=50)
    ops = answer.json()["operations"] if answer.status == 200 else []
    if not ops or bank is t.banks[0]:
        return answer
    op = "/operations/" + t.rng.choice(ops)["id"]
    return bank.delete(op) if t.rng.random() < 0.5 else bank.post(op + "/retry")


CALLS = [retain_shared, retain_shared, retain_many, retain_kept, retain_kept, delete_document, delete_facts, delete_bank,
         consolidate, make_model, make_model, change_model, use_model, use_model, read, read, use_operation]


def spoil(stack, rng, end):
    """Faults of the model server in small doses, a worker killed, then the database."""
    start = time.monotonic()
    deaths = [(0.25, "worker"), (0.5, "mariadbd"), (0.7, "worker-2")]
    while time.monotonic() < end:
        stack.llm.script({"scope": "*", "times": rng.randrange(1, 4), "reply": rng.choice(SICK)})
        time.sleep(0.2)
        if deaths and time.monotonic() - start > deaths[0][0] * SECONDS:
            victim = stack.processes[deaths.pop(0)[1]]
            victim.stop(SIGKILL)
            victim.start()


def settle(stack, banks):
    """Nothing queued, nothing under way, nothing to purge."""
    stack.llm.reset()
    wait_for("the database", stack.database_up)
    stack.wait_ready()
    for bank in banks:
        if bank.get("/profile").status == 200:
            bank.idle(60)
    wait_for("the purge", lambda: not stack.sql("SELECT 1 FROM purge_queue"), 60)
    wait_for("the last consolidation", lambda: not stack.sql(
        "SELECT 1 FROM async_operations WHERE status = 'processing' OR (status = 'pending' AND is_parent = 0 "
        "AND (next_retry_at IS NULL OR next_retry_at < UTC_TIMESTAMP(6) + INTERVAL 10 SECOND))"), 60)


def flags(stack, banks):
    """is_stale as the list gives it; the single read says the same."""
    found = {}
    for bank in banks:
        answer = bank.get("/mental-models", limit=1000)
        for model in answer.json()["items"] if answer.status == 200 else []:
            found[bank.id, model["id"]] = model["is_stale"]
            assert ok(bank.get("/mental-models/" + quote(model["id"])))["is_stale"] == model["is_stale"]
    return found


def check_kept(bank, threads):
    kept = {name: op for t in threads for name, op in t.kept.items()}
    for name, op in kept.items():
        text = ok(bank.get("/documents/" + name))["original_text"]
        assert text == f"Note {name} is kept.", name
        assert op is None or bank.operation(op)["status"] == "completed", name
    return len(kept)


def test_after_chaos_every_count_is_a_recount(own_stack):
    stack = own_stack(settings={"worker_lease_seconds": 3, "worker_max_retries": 20, "llm_max_retries": 1,
                                "worker_task_retry_backoff_seconds": 1}, mariadb=DURABLE)
    stack.start_worker("worker-2")
    banks = [stack.bank(f"chaos-{n}", make=True) for n in range(3)]
    end = time.monotonic() + SECONDS
    threads = [Trouble(n, banks, end) for n in range(6)]
    for t in threads:
        t.start()
    spoil(stack, random.Random(SEED), end)
    for t in threads:
        t.join(90)
        assert not t.is_alive()
    settle(stack, banks)
    assert [o for t in threads for o in t.odd] == []
    assert check_kept(banks[0], threads) > 0 and sum(t.done for t in threads) > 50
    assert consistency.faults(stack.sql) == []
    assert list(consistency.stale_faults(stack.sql, flags(stack, banks))) == []
