"""The same binary as plain CGI: environment and standard input in, one answer out."""
import concurrent.futures
import json
import os
import subprocess

import pytest

import fcgi
from stack import ok, program_path, quote, wait_for


def run(stack, method="GET", uri="/", body=b"", env=None, length=True, config=True, program="banks"):
    variables = {"PATH": os.environ["PATH"], "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": method,
                 "REQUEST_URI": uri, "SERVER_NAME": "localhost"}
    if config:
        variables["HINDSIGHT_CONFIG"] = str(stack.config)
    if length:
        variables["CONTENT_LENGTH"] = str(len(body))
    variables.update(env or {})
    return subprocess.run([program_path(program)], input=body, env=variables, capture_output=True, timeout=30)


def answer(done):
    assert done.returncode == 0, done.stderr.decode()
    return fcgi.answer(done.stdout)


def test_cgi_smoke(stack, bank):
    status, headers, body = answer(run(stack, uri="/health"))
    assert status == 200 and json.loads(body)["status"] == "healthy"
    assert headers["Content-Type"] == "application/json" and int(headers["Content-Length"]) == len(body)
    status, _, body = answer(run(stack, "PUT", bank.path, b'{"name":"by cgi"}'))
    assert status == 200 and json.loads(body)["name"] == "by cgi"
    assert ok(bank.get("/profile"))["name"] == "by cgi"
    status, headers, _ = answer(run(stack, uri=bank.path + "/config?foo=1"))
    assert status == 200 and headers["X-Ignored-Params"] == "foo" and headers["ETag"]
    status, _, body = answer(run(stack, uri=bank.path + "/config", env={"HTTP_IF_NONE_MATCH": "*"}))
    assert status == 304 and body == b""


def test_cgi_raw_uri_is_split_before_decoding(stack, bank):
    name = bank.id + "/a b"
    status, _, body = answer(run(stack, "PUT", "/v1/default/banks/" + quote(name), b"{}"))
    assert status == 200 and json.loads(body)["bank_id"] == name
    status, _, _ = answer(run(stack, uri="/v1/default/banks/%00/config"))
    assert status == 400


def test_cgi_without_request_uri(stack):
    status, _, _ = answer(run(stack, env={"REQUEST_URI": "", "SCRIPT_NAME": "", "PATH_INFO": "/health/live"}))
    assert status == 200


def test_cgi_bodies(stack, bank):
    body = b'{"name":"whole"}'
    cut = run(stack, "PUT", bank.path, body, env={"CONTENT_LENGTH": "100"})
    assert cut.stdout == b"" and bank.get("/profile").status == 404
    status, _, got = answer(run(stack, "PUT", bank.path, body, length=False))
    assert status == 200 and json.loads(got)["name"] == "whole"
    status, _, got = answer(run(stack, "PUT", bank.path, body + b"more", env={"CONTENT_LENGTH": str(len(body))}))
    assert status == 200
    # the body is read to its end though the answer is clear before
    for uri, status in (("/nowhere", 404), (bank.path, 413)):
        assert answer(run(stack, "PUT", uri, b"x" * (21 * 1024 * 1024)))[0] == status
    assert answer(run(stack, "PUT", bank.path, b"x" * (21 * 1024 * 1024), length=False))[0] == 413


def test_cgi_long_calls_take_slots(own_stack):
    s = own_stack(programs=["banks"], worker=False, settings={"fastcgi_threads": 2})
    s.llm.script({"scope": "*", "reply": {"hang": True}})
    uri = "/v1/default/banks/slots/reflect"

    def reflect():
        return run(s, "POST", uri, b'{"query":"who?"}', program="reflect")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        first = pool.submit(reflect)
        wait_for("the model call", lambda: s.llm.calls())
        status, headers, body = answer(reflect())
        assert status == 503 and int(headers["Retry-After"]) >= 1 and "capacity" in json.loads(body)["detail"]
        s.llm.reset()
        assert answer(first.result())[0] in (200, 500)
    assert answer(reflect())[0] == 200


def test_cgi_ends_its_work_when_nobody_waits_for_the_answer(stack, bank, llm):
    llm.script({"scope": "*", "reply": {"hang": True}})
    body = b'{"query":"who?"}'
    env = {"PATH": os.environ["PATH"], "GATEWAY_INTERFACE": "CGI/1.1", "REQUEST_METHOD": "POST",
           "REQUEST_URI": bank.path + "/reflect", "HINDSIGHT_CONFIG": str(stack.config), "CONTENT_LENGTH": str(len(body))}
    with subprocess.Popen([program_path("reflect")], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:
        p.stdin.write(body)
        p.stdin.close()
        wait_for("the model call", llm.calls)
        assert p.poll() is None
        p.stdout.close()
        p.wait(20)


def test_cgi_with_settings_that_cannot_be_used(tmp_path):
    (tmp_path / "bad.yaml").write_text("llm_provider: nobody\n")
    done = run(None, "POST", "/v1/default/banks/b/reflect", b"x" * 1_000_000, config=False, program="reflect",
               env={"HINDSIGHT_CONFIG": str(tmp_path / "bad.yaml")})
    status, headers, body = fcgi.answer(done.stdout)
    assert status == 500 and json.loads(body) == {"detail": "the configuration is not usable"}
    assert headers["X-Request-Id"] and b"bad.yaml" in done.stderr and b"nobody" in done.stderr


def test_cgi_routes_show_the_base_path(tmp_path):
    (tmp_path / "base.yaml").write_text("base_path: /deep/memory/\n")
    text = subprocess.run([program_path("banks"), "--routes", "--config", tmp_path / "base.yaml"], capture_output=True,
                          text=True, check=True).stdout
    assert "GET /deep/memory/health" in text.splitlines() and "GET /health" not in text.splitlines()


def test_cgi_key(own_stack):
    s = own_stack(programs=["banks"], worker=False, llm=False, settings={"tenant_api_key": "k"})
    uri = "/v1/default/banks"
    assert answer(run(s, uri=uri))[0] == 401
    assert answer(run(s, uri=uri, env={"HTTP_AUTHORIZATION": "Bearer k"}))[0] == 200
    assert answer(run(s, uri=uri, env={"REDIRECT_HTTP_AUTHORIZATION": "Bearer k"}))[0] == 200


@pytest.mark.parametrize("env, provider", [
    ({}, "extractive"), ({"HINDSIGHT_API_LLM_BASE_URL": "http://127.0.0.1:9/v1"}, "openai"),
    ({"HINDSIGHT_API_LLM_API_KEY": "k"}, "openai"), ({"HINDSIGHT_API_LLM_PROVIDER": "none"}, "none"),
])
def test_banks_case_59_provider_in_use(env, provider):
    done = run(None, uri="/version", env={**env, "HINDSIGHT_CONFIG": "/dev/null"}, config=False)
    assert json.loads(answer(done)[2])["llm_provider"] == provider
