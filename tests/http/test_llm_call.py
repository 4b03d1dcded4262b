"""The llm floor against the scripted model, without the rest of the server (tests/tools/llm_call)."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "fake"), str(TESTS / "lib")]

from llm_server import LlmServer  # noqa: E402
from stack import build_dir  # noqa: E402

KEY = "sk-secret-0123456789abcdef"
TOOLS = [{"name": n, "description": n, "parameters": {"type": "object", "properties": {}}} for n in ("recall", "done")]


@pytest.fixture(scope="module")
def server():
    with LlmServer() as s:
        yield s


@pytest.fixture
def llm(server):
    server.reset()
    return server


def start(given):
    child = subprocess.Popen([build_dir() / "tests" / "tools" / "llm_call"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child.stdin.write(json.dumps(given))
    child.stdin.close()
    return child


def finish(child):
    out = child.stdout.read()
    log = child.stderr.read()
    assert child.wait() == 0, log
    assert KEY not in out + log and "127.0.0.1" not in out + log
    return [json.loads(line) for line in out.splitlines()]


def settings(llm, **more):
    return {"llm_base_url": llm.url, "llm_api_key": KEY, "llm_model": "test-model", "llm_initial_backoff": "0.02",
            "llm_max_backoff": "0.1", "run_dir": "", **{k: str(v) for k, v in more.items()}}


def call(llm, config=None, **members):
    outer = {k: members.pop(k) for k in ("deadline_ms", "cancel_ms") if k in members}
    members.setdefault("messages", [{"role": "user", "content": "hello"}])
    return finish(start({"settings": settings(llm, **(config or {})), "call": members, **outer}))[0]


def body(llm, n=-1):
    return llm.calls()[n]["body"]


def test_plain_call_and_what_is_sent(llm):
    llm.script([{"reply": {"text": "  hi  ", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}}])
    r = call(llm, scope="reflect", operation="reflect", temperature=0.5, max_tokens=99)
    assert (r["rc"], r["text"], r["usage"]["input"], r["usage"]["output"]) == ("HS_OK", "hi", 7, 2)
    sent = llm.calls()[0]
    assert sent["headers"]["x-hindsight-operation"] == "reflect"
    assert sent["headers"]["authorization"] == "Bearer " + KEY
    assert sent["path"] == "/v1/chat/completions"
    assert sent["body"] == {"model": "test-model", "messages": [{"role": "user", "content": "hello"}],
                            "temperature": 0.5, "max_tokens": 99}


def test_query_of_the_base_url_is_kept(llm):
    call(llm, {"llm_base_url": llm.url + "/?api-version=1"})
    assert llm.calls()[0]["path"] == "/v1/chat/completions?api-version=1"


@pytest.mark.parametrize("model,config,cap,temperature", [
    ("gpt-5-mini", {}, {"max_completion_tokens": 16000}, None),
    ("o3", {}, {"max_completion_tokens": 16000}, None),
    ("gpt-4o", {}, {"max_tokens": 99}, 0.5),
    ("deepseek-reasoner", {}, {"max_completion_tokens": 16000}, None),
    ("any", {"llm_provider": "groq"}, {"max_completion_tokens": 99}, 0.5),
])
def test_caps_and_temperature_by_model(llm, model, config, cap, temperature):
    call(llm, {"llm_model": model, **config}, temperature=0.5, max_tokens=99)
    sent = body(llm)
    assert {k: v for k, v in sent.items() if k.startswith("max_")} == cap
    assert sent.get("temperature") == temperature


def test_large_caps_are_lowered(llm):
    call(llm, {"llm_model": "gpt-4o-mini"}, max_tokens=64000)
    assert body(llm)["max_tokens"] == 16384


def test_negative_temperature_is_not_sent(llm):
    call(llm, temperature=-1)
    assert "temperature" not in body(llm)


def test_forced_tool_and_history(llm):
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "name": "recall", "arguments": {"query": "x"}},
            {"id": "c2", "name": "recall", "arguments": '{"query":"y"}'}]},
        {"role": "tool", "tool_call_id": "c1", "content": "{}"}, {"role": "tool", "tool_call_id": "c2", "content": "{}"}]
    llm.script([{"reply": {"text": "Let me look", "tool_calls": [{"name": "recall", "args": {"query": "z"}, "id": "c3"}]}}])
    r = call(llm, scope="reflect_tool_call", operation="reflect", messages=history, tools=TOOLS, tool="recall")
    assert r["calls"] == [{"id": "c3", "name": "recall", "args": {"query": "z"}, "raw_args": '{"query": "z"}'}]
    sent = body(llm)
    assert [t["function"]["name"] for t in sent["tools"]] == ["recall"] and sent["tool_choice"] == "required"
    assert sent["messages"][1]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "recall", "arguments": '{"query":"x"}'}},
        {"id": "c2", "type": "function", "function": {"name": "recall", "arguments": '{"query":"y"}'}}]


@pytest.mark.parametrize("config", [{"llm_provider": "ollama"}, {"llm_provider": "lmstudio"},
                                    {"llm_model": "deepseek-chat"}, {"llm_model": "z-ai/glm"}])
def test_tool_choice_is_left_to_some_models(llm, config):
    call(llm, config, tools=TOOLS)
    assert "tool_choice" not in body(llm) and len(body(llm)["tools"]) == 2


def test_json_modes(llm):
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": "string"}},
              "required": ["a"]}
    llm.script([{"reply": {"json": {"a": 1}}}])
    assert call(llm, json=True, schema=schema)["value"] == {"a": 1}
    assert body(llm)["response_format"] == {"type": "json_object"}
    call(llm, {"llm_strict_schema_retain": "true"}, json=True, schema=schema)
    assert body(llm)["response_format"]["json_schema"] == {"name": "response", "strict": True, "schema": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": ["string", "null"]}},
        "required": ["a", "b"], "additionalProperties": False}}
    for config in ({"llm_provider": "ollama"}, {"llm_openai_compatible_json_mode": "false"},
                   {"llm_provider": "ollama", "llm_strict_schema": "true"}):
        call(llm, config, json=True, schema=schema)
        assert "response_format" not in body(llm)
    call(llm, {"llm_provider": "openrouter"}, json=True)
    assert body(llm)["provider"] == {"require_parameters": True}
    assert all(c["body"]["messages"] == [{"role": "user", "content": "hello"}] for c in llm.calls())


def test_extra_body_headers_and_affinity(llm):
    run = "0198c0de-0000-7000-8000-0123456789ab"
    call(llm, {"llm_extra_body": '{"top_p":0.5,"temperature":1.5}', "llm_default_headers": '{"X-Team":"a b"}',
               "llm_cache_affinity": "openai_prompt_cache_key"}, temperature=0.1, run_id=run)
    assert body(llm)["top_p"] == 0.5 and body(llm)["temperature"] == 1.5
    assert body(llm)["prompt_cache_key"] == run.replace("-", "")
    assert llm.calls()[-1]["headers"]["x-team"] == "a b"
    call(llm, {"llm_cache_affinity": "xai_conv_id"}, run_id=run)
    assert llm.calls()[-1]["headers"]["x-grok-conv-id"] == run.replace("-", "")
    call(llm, {}, run_id=run)
    assert "prompt_cache_key" not in body(llm)


def test_settings_of_an_operation_win_one_by_one(llm):
    config = {"reflect_llm_model": "m-reflect", "mental_model_refresh_llm_extra_body": '{"x":1}'}
    for operation, model in (("retain", "test-model"), ("reflect", "m-reflect"), ("mental_model_refresh", "m-reflect")):
        call(llm, config, operation=operation)
        assert body(llm)["model"] == model
    assert body(llm)["x"] == 1


@pytest.mark.parametrize("config,word", [
    ({"llm_provider": "anthropic"}, "not available"),
    ({"llm_base_url": "ftp://x"}, "llm_base_url"),
    ({"llm_default_headers": '{"A b":"x"}'}, "llm_default_headers"),
])
def test_unusable_settings_stop_the_start(llm, config, word):
    r = call(llm, config)
    assert r["rc"] == "HS_E_CONFIG" and word in r["msg"] and not llm.calls()


def test_a_key_is_needed_at_the_native_address_only():
    r = finish(start({"settings": {"llm_provider": "openai"}, "call": {"messages": []}}))[0]
    assert r["rc"] == "HS_E_CONFIG" and "llm_api_key" in r["msg"]


def test_reflect_case_64_no_provider_no_call(llm):
    r = call(llm, {"retain_llm_provider": "none"})
    assert r["rc"] == "HS_E_LLM_NONE" and "none" in r["msg"] and not llm.calls()


@pytest.mark.parametrize("reply,rc,calls", [
    ({"status": 401}, "HS_E_LLM_AUTH", 1),
    ({"status": 403}, "HS_E_LLM_AUTH", 1),
    ({"status": 404}, "HS_E_LLM_REFUSED", 1),
    ({"status": 405}, "HS_E_LLM_REFUSED", 1),
    ({"status": 413}, "HS_E_LLM_REFUSED", 1),
    ({"status": 422}, "HS_E_LLM_REFUSED", 1),
    ({"status": 302, "headers": {"Location": "http://127.0.0.1:9/"}}, "HS_E_LLM_REFUSED", 1),
    ({"status": 400, "body": {"error": {"message": "maximum context length is 10"}}}, "HS_E_LLM_OVERFLOW", 1),
    ({"status": 400, "body": {"error": {"code": "content_policy_violation"}}}, "HS_E_LLM_POLICY", 1),
    ({"status": 408}, "HS_E_LLM_DOWN", 4),
    ({"status": 409}, "HS_E_LLM_DOWN", 4),
    ({"status": 425}, "HS_E_LLM_DOWN", 4),
    ({"status": 429}, "HS_E_LLM_DOWN", 4),
    ({"status": 500}, "HS_E_LLM_DOWN", 4),
    ({"status": 502, "body": "<html>bad gateway</html>"}, "HS_E_LLM_DOWN", 4),
    ({"status": 503}, "HS_E_LLM_DOWN", 4),
    ({"cut": 10}, "HS_E_LLM_DOWN", 4),
])
def test_fault_24_errors_that_will_not_heal_are_not_retried(llm, reply, rc, calls):
    llm.script([{"reply": reply}])
    r = call(llm)
    assert (r["rc"], len(llm.calls())) == (rc, calls), r["msg"]


def test_fault_24_gaps_grow_and_are_limited(llm):
    llm.script([{"reply": {"status": 500}}])
    call(llm, {"llm_initial_backoff": 0.1, "llm_max_backoff": 0.25, "llm_max_retries": 4})
    at = [c["started"] for c in llm.calls()]
    gaps = [b - a for a, b in zip(at, at[1:])]
    assert len(gaps) == 4 and gaps[0] < gaps[1] and max(gaps) < 0.25 * 1.2 + 0.15
    assert 0.08 <= gaps[0] and 0.16 <= gaps[1] and 0.2 <= gaps[2]


def test_fault_24_refused_connections_are_retried(llm):
    r = call(llm, {"llm_base_url": "http://127.0.0.1:1/v1", "llm_initial_backoff": 0.05})
    assert r["rc"] == "HS_E_LLM_DOWN" and r["ms"] >= 150


def test_no_retries_when_none_are_wanted(llm):
    llm.script([{"reply": {"status": 500}}])
    call(llm, {"retain_llm_max_retries": 0})
    assert len(llm.calls()) == 1


def test_fault_17_null_content_is_no_answer(llm):
    llm.script([{"times": 2, "reply": {"text": None}}, {"reply": {"text": "ok"}}])
    assert call(llm)["text"] == "ok" and len(llm.calls()) == 3
    for empty in (None, "", "  ", "<think>hm</think>"):
        llm.reset()
        llm.script([{"reply": {"text": empty}}])
        r = call(llm)
        assert r["rc"] == "HS_E_LLM_EMPTY" and "returned nothing" in r["msg"] and len(llm.calls()) == 4


def test_reflect_case_56_rate_limits(llm):
    config = {"llm_max_backoff": 60, "llm_initial_backoff": 0.01}
    llm.script([{"reply": {"status": 429, "headers": {"Retry-After": "18000"}}}])
    r = call(llm, config)
    assert r["rc"] == "HS_E_LLM_QUOTA" and len(llm.calls()) == 1 and r["ms"] < 1000
    assert abs(r["retry_at_us"] / 1e6 - time.time() - 18000) < 30
    for reply in ({"body": {"detail": {"retry_after": 7200}}}, {"headers": {"x-ratelimit-reset-tokens": "2h0m0s"}}):
        llm.reset()
        llm.script([{"reply": {"status": 429, **reply}}])
        r = call(llm, config)
        assert r["rc"] == "HS_E_LLM_QUOTA" and len(llm.calls()) == 1
        assert abs(r["retry_at_us"] / 1e6 - time.time() - 7200) < 30
    llm.reset()
    llm.script([{"times": 1, "reply": {"status": 429, "headers": {"Retry-After": "1"}, "body": "again in 5 hours"}},
                {"reply": {"text": "ok"}}])
    r = call(llm, config)
    assert r["rc"] == "HS_OK" and len(llm.calls()) == 2 and 950 <= r["ms"] < 3000


def test_reflect_case_57_malformed_answers(llm):
    llm.script([{"reply": {"choices": None, "error": {"message": "broken"}}}])
    assert call(llm)["rc"] == "HS_E_LLM_REPLY" and len(llm.calls()) == 1
    for reply in ({"choices": []}, {"text": "x", "finish_reason": "error"}, {"raw": "<html></html>"}, {"raw": ""},
                  {"raw": '{"choices":[{"mess'}):
        llm.reset()
        llm.script([{"times": 1, "reply": reply}, {"reply": {"text": "ok"}}])
        assert call(llm)["text"] == "ok" and len(llm.calls()) == 2


def test_reflect_case_58_reasoning_before_json(llm):
    llm.script([{"reply": {"text": '<think>{"a":0}</think>\n{"a":1}'}}])
    assert call(llm, json=True)["value"] == {"a": 1}


def test_reflect_case_59_broken_json(llm):
    llm.script([{"reply": {"text": '{"a":[1,2,],}'}}])
    r = call(llm, json=True)
    assert r["value"] == {"a": [1, 2]} and len(llm.calls()) == 4
    llm.reset()
    llm.script([{"reply": {"text": '{"a":[1,2,],}', "finish_reason": None}}])
    r = call(llm, json=True)
    assert r["rc"] == "HS_E_LLM_REPLY" and len(llm.calls()) == 4
    llm.reset()
    llm.script([{"reply": {"text": "no json at all"}}])
    assert call(llm, json=True)["rc"] == "HS_E_LLM_REPLY" and len(llm.calls()) == 4


def test_reflect_case_61_cut_off_json(llm):
    llm.script([{"reply": {"json": {"a": 1}, "finish_reason": "length"}}])
    assert call(llm, json=True)["rc"] == "HS_E_LLM_LENGTH" and len(llm.calls()) == 1


def test_reflect_case_63_parameters_that_are_refused(llm):
    llm.script([{"times": 1, "reply": {"status": 400, "body": {"error": {"message": "tool_choice is not supported"}}}}])
    r = call(llm, {"llm_max_retries": 0}, tools=TOOLS, tool="recall")
    first, second = llm.calls()
    assert r["calls"][0]["name"] == "recall" and first["body"]["tool_choice"] == "required"
    assert "tool_choice" not in second["body"] and second["body"]["tools"] == first["body"]["tools"]
    llm.reset()
    llm.script([{"times": 1, "reply": {"status": 400, "body": {"error": {
        "message": "use reasoning_effort 'none' with tools"}}}}])
    call(llm, {"llm_max_retries": 0}, tools=TOOLS)
    assert [c["body"].get("reasoning_effort") for c in llm.calls()] == [None, "none"]
    llm.reset()
    llm.script([{"reply": {"status": 400, "body": {"error": {"message": "tool_choice is not supported"}}}}])
    assert call(llm, tools=TOOLS)["rc"] == "HS_E_LLM_REFUSED" and len(llm.calls()) == 2


def test_fault_23_a_hanging_server_ends_at_the_limit(llm):
    llm.script([{"reply": {"hang": True}}])
    r = call(llm, {"llm_timeout": 0.3, "llm_max_retries": 1})
    assert r["rc"] == "HS_E_LLM_TIMEOUT" and len(llm.calls()) == 2 and r["ms"] < 2000
    r = call(llm, deadline_ms=400)
    assert r["rc"] == "HS_E_TIMEOUT" and 350 <= r["ms"] < 1500


def test_fault_23_a_trickling_answer_ends_too(llm):
    llm.script([{"reply": {"text": "x" * 500, "drip": 0.05}}])
    r = call(llm, {"llm_timeout": 0.5, "llm_max_retries": 0})
    assert r["rc"] == "HS_E_LLM_TIMEOUT" and r["ms"] < 2000


def test_reflect_has_a_timeout_of_its_own(llm):
    llm.script([{"reply": {"delay": 0.8, "text": "late"}}])
    assert call(llm, {"reflect_llm_timeout": 0.3, "llm_max_retries": 0}, operation="reflect",
                scope="reflect")["rc"] == "HS_E_LLM_TIMEOUT"
    assert call(llm, {"reflect_llm_timeout": 0.3, "llm_max_retries": 0})["text"] == "late"


def test_cancel_ends_a_call_and_a_wait(llm):
    llm.script([{"reply": {"hang": True}}])
    r = call(llm, cancel_ms=200)
    assert r["rc"] == "HS_E_CANCELLED" and r["ms"] < 2500
    llm.reset()
    llm.script([{"reply": {"status": 500}}])
    r = call(llm, {"llm_initial_backoff": 30, "llm_max_backoff": 60}, cancel_ms=200)
    assert r["rc"] == "HS_E_CANCELLED" and r["ms"] < 1000 and len(llm.calls()) == 1


def test_reflect_case_62_caps_across_processes(llm):
    with tempfile.TemporaryDirectory() as run_dir:
        llm.script([{"reply": {"text": "ok", "delay": 0.15}}])
        config = settings(llm, run_dir=run_dir, retain_llm_max_concurrent=2)
        given = {"settings": config, "call": {"messages": [{"role": "user", "content": "x"}]}, "times": 2}
        children = [start(given) for _ in range(4)]
        for child in children:
            assert [r["rc"] for r in finish(child)] == ["HS_OK"] * 2
        assert llm.state.max_flying["retain_extract_facts"] == 2 and len(llm.calls()) == 8


def test_reflect_case_62_a_refresh_has_slots_of_its_own(llm):
    with tempfile.TemporaryDirectory() as run_dir:
        config = settings(llm, run_dir=run_dir, mental_model_refresh_llm_max_concurrent=1)
        llm.script([{"times": 1, "reply": {"hang": True}}, {"reply": {"text": "ok"}}])
        messages = {"messages": [{"role": "user", "content": "x"}], "scope": "reflect"}
        holder = start({"settings": config, "call": {**messages, "operation": "mental_model_refresh"}})
        wait_until(lambda: llm.calls())
        assert finish(start({"settings": config, "call": {**messages, "operation": "reflect"}}))[0]["rc"] == "HS_OK"
        waiter = start({"settings": config, "call": {**messages, "operation": "mental_model_refresh"}})
        time.sleep(0.3)
        assert len(llm.calls()) == 2
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        assert finish(waiter)[0]["rc"] == "HS_OK" and len(llm.calls()) == 3


def test_reflect_case_62_no_slot_during_backoff(llm):
    with tempfile.TemporaryDirectory() as run_dir:
        config = settings(llm, run_dir=run_dir, llm_max_concurrent=1, llm_initial_backoff=3, llm_max_backoff=3)
        llm.script([{"times": 1, "reply": {"status": 500}}, {"reply": {"text": "ok"}}])
        given = {"settings": config, "call": {"messages": [{"role": "user", "content": "x"}]}}
        waiting = start(given)
        wait_until(lambda: llm.calls())
        time.sleep(0.1)
        assert finish(start(given))[0]["ms"] < 2000
        waiting.kill()
        waiting.wait()


def wait_until(test, seconds=10):
    end = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < end
        time.sleep(0.01)


def embed(llm, texts, config=None, **more):
    base = settings(llm, embeddings_provider="openai", embeddings_openai_base_url=llm.url,
                    embeddings_openai_api_key=KEY, embeddings_openai_model="e", embeddings_initial_backoff=0.02)
    return finish(start({"settings": {**base, **(config or {})}, "embed": texts, **more}))[0]


def test_embeddings_by_a_service(llm):
    r = embed(llm, ["red apple", "red pear", "", "x"], {"embeddings_openai_batch_size": "3",
                                                        "embeddings_passage_prefix": "p: "})
    assert r["rc"] == "HS_OK" and r["tag"] == "openai:e" and [len(v) for v in r["vectors"]] == [64] * 4
    assert all(abs(sum(x * x for x in v) - 1) < 1e-3 for v in r["vectors"])
    assert [c["body"]["input"] for c in llm.calls()] == [["p: red apple", "p: red pear", "p: "], ["p: x"]]
    embed(llm, ["x"], {"embeddings_query_prefix": "q: ", "embeddings_openai_dimensions": "8"}, query=True)
    assert body(llm)["input"] == ["q: x"] and body(llm)["dimensions"] == 8


def test_embeddings_share_the_chat_service_unless_told_otherwise(llm):
    r = embed(llm, ["x"], {"embeddings_openai_base_url": "", "embeddings_openai_api_key": ""})
    assert r["rc"] == "HS_OK" and llm.calls()[0]["headers"]["authorization"] == "Bearer " + KEY
    r = embed(llm, ["x"], {"embeddings_openai_api_key": "", "llm_base_url": "http://127.0.0.1:1/v1"})
    assert r["rc"] == "HS_OK" and "authorization" not in llm.calls()[1]["headers"]


def test_embeddings_faults(llm):
    llm.script([{"scope": "embeddings", "times": 2, "reply": {"status": 503}},
                {"scope": "embeddings", "times": 1, "reply": {"raw": "<html>"}}])
    assert embed(llm, ["x"])["rc"] == "HS_OK" and len(llm.calls()) == 4
    llm.reset()
    llm.script([{"scope": "embeddings", "reply": {"status": 401}}])
    assert embed(llm, ["x"])["rc"] == "HS_E_EMBED" and len(llm.calls()) == 1
    llm.reset()
    llm.script([{"scope": "embeddings", "reply": {"dim": 7}}])
    assert embed(llm, ["x"], {"embeddings_openai_dimensions": "8"})["rc"] == "HS_E_EMBED_DIM" and len(llm.calls()) == 1
    llm.reset()
    llm.script([{"scope": "embeddings", "reply": {"body": {"data": []}}}])
    r = embed(llm, ["x"], {"embeddings_max_retries": "1"})
    assert r["rc"] == "HS_E_EMBED" and len(llm.calls()) == 2

