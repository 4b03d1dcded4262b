"""Reflect: context limits, wall clock, capacity, lost services, on servers of its own."""
import json
import threading
import time

import pytest

from reflect_calls import (reflect, everything, call, calls, loop, final, loop_calls, scopes, tools_of,
                           output, memory_texts, texts_in, quiet)  # noqa: F401
from stack import Stack, wait_for

# ---- servers of their own ----

@pytest.fixture(scope="module")
def small():
    """A server without a worker, whose reflect program starts again with other settings."""
    s = Stack(worker=False, programs=["banks", "memories", "reflect"]).start()
    yield s, dict(s.settings)
    reports = s.stop()
    assert not reports, "\n".join(reports)


def restart(s, env=None, **settings):
    s.processes["reflect"].stop()
    s.socket_of("reflect").unlink(missing_ok=True)
    s.settings.update(settings)
    s.write_config()
    s.start_program("reflect", env)


@pytest.fixture
def own(small):
    """own(settings): the server with these settings of reflect, and a bank of its own."""
    s, plain = small

    def make(settings, env=None):
        s.settings = dict(plain)
        restart(s, env, **settings)
        s.llm.reset()
        bank = s.bank()
        quiet(bank)
        return s, bank

    return make


def test_reflect_case_22_limit_of_one_token(own):
    s, bank = own({"reflect_max_context_tokens": 1})
    for i in range(30):
        bank.retain(f"Alice likes apple sort number {i} very much indeed.")
    answer = everything(bank, fact_types=["world"])
    assert scopes(answer)[0] == "agent_1" and scopes(answer)[-1] == "final"
    assert len([c for c in scopes(answer) if c.startswith("agent")]) == 1
    # case 26: the floor of 1024 tokens keeps the parts few
    assert len([c for c in scopes(answer) if c.startswith("final_map")]) <= 4


def test_reflect_case_22_compacted_history(own):
    s, bank = own({"reflect_max_context_tokens": 100000})
    for i in range(40):
        bank.retain(f"Alice likes apple sort number {i}, which grows on the tree at the north wall of garden {i}.")
    s.llm.reset()
    llm = s.llm
    llm.script(loop(call("expand", memory_ids=[m["id"] for m in bank.memories()], depth="document", reason="r"), n=1))
    reflect(bank)
    start = json.dumps(loop_calls(llm)[0]["body"]["messages"])
    restart(s, reflect_max_context_tokens=len(start) // 4 + 2500)
    llm.reset()
    llm.script(loop(call("expand", memory_ids=[m["id"] for m in bank.memories()], depth="document", reason="r"), n=1))
    answer = everything(bank)
    assert tools_of(answer) == ["expand", "recall"]
    blanked = [m["content"] for m in loop_calls(llm)[1]["body"]["messages"] if m["role"] == "tool"]
    assert len(blanked) == 1 and len(blanked[0]) < 300
    assert scopes(answer)[-1] == "final" and "closing_done" not in scopes(answer)
    shown = json.dumps([c["body"]["messages"] for c in llm.calls("reflect")])
    assert all(f"garden {i}." in shown for i in range(40))


def test_reflect_case_25_split_history_keeps_every_id(own):
    s, bank = own({"reflect_max_context_tokens": 3000, "recall_max_tokens": 8000})
    for i in range(120):
        bank.retain(f"Alice likes apple sort number {i}, which grows on the tree at the north wall of garden {i}.")
    s.llm.reset()
    answer = everything(bank, fact_types=["world"])
    maps = [c for c in scopes(answer) if c.startswith("final_map_")]
    assert len(maps) > 1 and scopes(answer)[-1] == "final"
    requests = s.llm.calls("reflect")
    found = output(answer, "recall")["memories"]
    assert len(found) > 60
    for m in found:
        holders = [c for c in requests[:-1] if m["text"] in json.dumps(c["body"]["messages"], ensure_ascii=False)]
        assert holders, m["text"]
        entries = [c for c in requests[:-1] if f'"text":"{m["text"]}"' in texts_in(c["body"]["messages"], "user")]
        assert len(entries) == 1, m["text"]
    assert {c["body"]["temperature"] for c in requests[:-1]} == {0.0}
    assert all("max_tokens" not in c["body"] for c in requests)


def test_reflect_case_37_one_iteration(own):
    s, bank = own({"reflect_max_iterations": 1})
    bank.retain("Alice likes green apples.")
    answer = everything(bank)
    assert scopes(answer) == ["final"] and answer["trace"]["tool_calls"] == []


def test_reflect_case_38_wall_timeout(own):
    s, bank = own({"reflect_wall_timeout": 1})
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"hang": True}))
    started = time.monotonic()
    answer = bank.post("/reflect", {"query": "q"})
    assert answer.status == 504 and time.monotonic() - started < 3
    assert "1 second" in answer.detail and "budget" in answer.detail


def test_fault_23_hanging_model_server(own):
    s, bank = own({"reflect_wall_timeout": 5})
    bank.retain("Alice likes green apples.")
    for reply in ({"hang": True}, {"drip": 10}):
        s.llm.reset()
        s.llm.script(loop(reply))
        result = {}
        started = time.monotonic()
        t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
        t.start()
        wait_for("the model call", lambda: loop_calls(s.llm))
        for _ in range(20):
            assert bank.api.get("/v1/default/banks").status == 200
        t.join(15)
        answer = result["answer"]
        assert answer.status == 504 and "application/json" in answer.headers["Content-Type"] and answer.detail
        assert 4 < time.monotonic() - started < 9
        wait_for("the socket to close", lambda: loop_calls(s.llm)[0]["aborted"])


def test_reflect_at_capacity(own):
    s, bank = own({"fastcgi_threads": 2})
    s.llm.script(loop({"delay": 1.5}, n=1))
    result = {}
    t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
    t.start()
    wait_for("the model call", lambda: loop_calls(s.llm))
    busy = bank.post("/reflect", {"query": "q"})
    t.join(20)
    assert busy.status == 503 and int(busy.headers["Retry-After"]) >= 1
    assert busy.detail == "Server is at capacity for 'reflect' (1 concurrent); try again shortly."
    assert result["answer"].status == 200


def test_reflect_client_gone_stops_the_loop(own):
    s, bank = own({})
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"hang": True}))
    with pytest.raises(TimeoutError):
        bank.api.raw("POST", bank.path + "/reflect", b'{"query": "q"}', {"Content-Type": "application/json"}, timeout=1)
    wait_for("the call to be given up", lambda: loop_calls(s.llm) and loop_calls(s.llm)[0]["aborted"], 10)
    time.sleep(0.3)
    assert len(loop_calls(s.llm)) == 1


def test_reflect_case_20_database_gone(own_stack):
    s = own_stack(worker=False, programs=["banks", "memories", "reflect"])
    bank = s.bank()
    quiet(bank)
    bank.retain("Alice likes green apples.")
    s.llm.script(loop({"delay": 2, **call("recall", query="apples", reason="r")}, n=1))
    result = {}
    t = threading.Thread(target=lambda: result.update(answer=bank.post("/reflect", {"query": "q"})))
    t.start()
    wait_for("the first call", lambda: loop_calls(s.llm))
    s.processes["mariadbd"].kill()
    t.join(20)
    answer = result["answer"]
    assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1 and answer.detail


def test_reflect_case_20_lost_embedding_service(own):
    s, bank = own({})
    bank.retain("Alice likes green apples.")
    restart(s, embeddings_provider="openai", embeddings_openai_base_url="http://127.0.0.1:9/v1")
    answer = everything(bank)
    assert "Alice likes green apples." in memory_texts(answer)


def test_reflect_case_64_provider_none(own):
    s, bank = own({"reflect_llm_provider": "none"})
    bank.retain("Alice likes green apples.")
    s.llm.reset()
    answer = s.api().post("/v1/default/banks/never-made/reflect", {"query": "q"})
    assert answer.status == 400
    assert "none" in answer.detail and "HINDSIGHT_API_" in answer.detail
    assert s.llm.calls() == []
    assert s.sql("SELECT 1 FROM banks WHERE bank_id = 'never-made'") == ()
    assert s.api().post("/v1/default/banks/never-made/reflect", {"query": ""}).status == 422


def test_reflect_temperature_none_is_not_sent(own):
    s, bank = own({}, env={"HINDSIGHT_API_LLM_TEMPERATURE_REFLECT": "none"})
    reflect(bank)
    assert all("temperature" not in c["body"] for c in loop_calls(s.llm) + s.llm.calls("reflect"))
