"""/metrics: running requests, connections, waiting work, and what retain and consolidation count."""
import re
import threading

from stack import ok, wait_for


def figures(api):
    """{name{labels}: value} of the page; every line must be Prometheus text."""
    a = api.get("/metrics")
    assert a.status == 200 and a.headers["Content-Type"].startswith("text/plain")
    out = {}
    for line in a.body.decode().splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert re.fullmatch(r"[a-z_]+(\{.*\})?", name) and name not in out, line
            out[name] = float(value)
    return out


def test_metrics_of_retain_and_failed_consolidation(own_stack):
    s = own_stack(settings={"metrics_backlog_enabled": True, "fastcgi_threads": 3})
    b = s.bank(make=True)
    s.llm.script({"scope": "consolidation", "reply": {"text": "no json at all"}})
    b.retain("The baker opens at six.")
    wait_for("the failed consolidation", lambda: ok(b.get("/stats?refresh=true"))["failed_consolidation"] == 1)
    f = figures(s.api())
    assert f['hindsight_retain_documents_total{outcome="facts"}'] == 1
    failures = {k: v for k, v in f.items() if k.startswith("hindsight_consolidation_batch_failures_calls_total{")}
    assert failures and all('failure_class="retry"' in k and 'error_type="HS_E_LLM_REPLY"' in k for k in failures)
    # the worker's calls are on the same page
    assert any(k.startswith("hindsight_llm_calls_total{") and 'scope="consolidation"' in k for k in f)
    assert f['hindsight_consolidation_failed{tenant="default"}'] == 1
    assert f['hindsight_consolidation_backlog{tenant="default"}'] == 0
    assert f["hindsight_db_pool_max"] == 3 and 1 <= f["hindsight_db_pool_size"] <= 3
    assert f["hindsight_db_pool_idle"] <= f["hindsight_db_pool_size"] and f["hindsight_db_pool_waiting"] == 0
    assert f["hindsight_db_pool_acquire_wait_seconds"] > 0
    s.processes["worker"].stop()
    ok(b.post("/memories", {"items": [{"content": "The mill stands still."}], "async": True}))
    rows = {k: v for k, v in figures(s.api()).items() if k.startswith("hindsight_async_operations{")}
    assert sum(v for k, v in rows.items() if 'status="pending"' in k and 'tenant="default"' in k) >= 1


def test_metrics_of_running_requests_and_of_a_killed_program(own_stack):
    s = own_stack(programs=["banks", "reflect"], worker=False)
    b = s.bank(make=True)
    name = 'hindsight_http_requests_in_progress_requests{method="POST",endpoint="/v1/default/banks/{bank_id}/reflect"}'
    s.llm.script({"scope": "*", "reply": {"hang": True}})
    threads = [threading.Thread(target=b.post, args=("/reflect", {"query": "who?"})) for _ in range(2)]
    for t in threads:
        t.start()
    wait_for("two running calls", lambda: figures(s.api()).get(name) == 2)
    assert not any(k.startswith("hindsight_async_operations") for k in figures(s.api()))
    s.processes["reflect"].kill()
    for t in threads:
        t.join()
    assert figures(s.api())[name] == 0
    own = [v for k, v in figures(s.api()).items() if "in_progress" in k and 'endpoint="/metrics"' in k]
    assert own == [1]


def test_metrics_while_the_database_is_away(own_stack):
    s = own_stack(programs=["banks"], worker=False, llm=False, settings={"metrics_backlog_enabled": True})
    assert 'hindsight_consolidation_backlog{tenant="default"}' in figures(s.api())
    s.processes["mariadbd"].kill()
    f = figures(s.api())
    assert f["hindsight_process_threads"] > 1 and 'hindsight_consolidation_backlog{tenant="default"}' not in f
