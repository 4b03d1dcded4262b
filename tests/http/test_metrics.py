"""GET /metrics: what all programs and the worker did, in the text form of Prometheus."""
import re

from stack import ok, wait_for


def samples(api):
    """{(name, labels): value}; every line is a comment or a sample."""
    answer = api.get("/metrics")
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = {}
    for line in answer.body.decode().splitlines():
        if line.startswith("# "):
            continue
        name, labels, value = re.fullmatch(r"([a-z_]+)(?:\{(.*)\})? ([0-9.e+-]+)", line).groups()
        pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"(?:,|$)', labels or "")
        found[name, frozenset(pairs)] = float(value)
    return found


def total(found, name, **labels):
    return sum(v for (n, have), v in found.items() if n == name and labels.items() <= have)


def test_work_of_all_programs_is_counted(stack, bank, api):
    stack.llm.reset()
    before = samples(api)
    parent = ok(bank.post("/memories", {"items": [{"content": "Carol leads the design team."}], "async": True}))
    assert bank.wait(parent["operation_id"])["status"] == "completed"
    bank.idle()
    bank.recall("design", budget="low", max_tokens=77)
    ok(bank.post("/reflect", {"query": "Who leads?"}))
    stack.llm.script({"scope": "reflect*", "reply": {"status": 401}})
    assert bank.post("/reflect", {"query": "Who leads?"}).status == 500
    stack.llm.reset()
    api.get("/no/such/route")

    def grown(name, **labels):
        return total(samples(api), name, **labels) - total(before, name, **labels)
    operations, calls = "hindsight_operation_operations_total", "hindsight_llm_calls_total"
    wait_for("the worker's count", lambda: grown(operations, operation="retain", source="worker", success="true") == 1)
    assert grown(operations, operation="recall", source="api", budget="low", max_tokens="77", success="true") == 1
    assert grown(operations, operation="reflect", source="api", success="true") == 1
    assert grown(operations, operation="reflect", source="api", success="false") == 1
    assert grown("hindsight_operation_duration_seconds_count", operation="reflect") == 2
    assert grown(calls, scope="retain_extract_facts", model="scripted", success="true") == 1
    assert grown(calls, success="false") >= 1
    for kind in ("input", "output"):
        assert grown(f"hindsight_llm_tokens_{kind}_tokens_total", scope="retain_extract_facts") > 0
    assert grown("hindsight_http_requests_total", endpoint="unmatched", status_code="404", status_class="4xx") == 1
    route = "/v1/default/banks/{bank_id}/reflect"
    assert grown("hindsight_http_requests_total", method="POST", endpoint=route, status_class="2xx") == 1


def test_buckets_add_up(api):
    found = samples(api)
    counts = {(n, have): v for (n, have), v in found.items() if n.endswith("_seconds_count")}
    assert counts
    for (name, have), count in counts.items():
        bucket = name.removesuffix("_count") + "_bucket"
        steps = {dict(h)["le"]: v for (n, h), v in found.items() if n == bucket and have <= h}
        ordered = [v for _, v in sorted(steps.items(), key=lambda s: float(s[0]))]
        assert ordered == sorted(ordered) and steps["+Inf"] == count


def test_banks_are_not_named(api, bank):
    bank.make()
    assert bank.id not in api.get("/metrics").body.decode()
    assert samples(api)["hindsight_process_threads", frozenset()] >= 1
