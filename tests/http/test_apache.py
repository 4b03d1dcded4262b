"""Smoke cases of the whole under nginx with fcgiwrap, Apache with mod_cgi and Apache with mod_proxy_fcgi."""
import json
import re
import socket
import subprocess

import pytest

from frontends import FRONT_ENDS
from stack import PROGRAMS, Api, Stack, ok, program_path, quote

BANKS = "/v1/default/banks"
# what Apache answers by itself unless AllowEncodedSlashes is set, which a shared host does not let one do
SERVER_ONLY = ["a/b", "/", "a//b/"]
ODD_IDS = ["with blank", " both ends ", "?q=1#f", "100%", "%2F", "a+b&c;d=e", "Grüße-日本-🙂", "..", ".", "a\\b", "x'\"y",
           "hindsight.yaml", "mcp", "a:b@c", "<tag>", "$1 %{x}"]


@pytest.fixture(scope="module")
def keyed_stack():
    s = Stack(llm=False, worker=False, settings={"tenant_api_key": "k-1 secret"}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture(scope="module", params=FRONT_ENDS, ids=lambda f: f.name)
def front(request, keyed_stack):
    f = request.param(keyed_stack).start()
    yield f
    f.stop()


def as_json(answer, status):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"].startswith("application/json"), answer.headers.items()
    return answer.json()["detail"]


def talk(port, data):
    with socket.create_connection(("127.0.0.1", port), 30) as s:
        s.sendall(data)
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more


def test_front_main_job(front):
    b = front.bank("Main job")
    assert b.make(name="By another door")["name"] == "By another door"
    assert b.retain("Anna Berg keeps bees on the roof of the library.")["success"] is True
    queued = ok(b.post("/memories", {"items": [{"content": "Anna Berg sells honey in May."}], "async": True}))
    front.drain()
    assert b.operation(queued["operation_id"])["status"] == "completed"
    found = b.recall("What does Anna Berg keep?")["results"]
    assert any("bees" in r["text"] for r in found)
    made = ok(b.post("/mental-models", {"name": "Anna", "source_query": "What does Anna Berg do?"}))
    front.drain()
    assert b.operation(made["operation_id"], wait=1)["status"] == "completed"
    path = "/mental-models/" + quote(made["mental_model_id"])
    a = b.get(path)
    assert "bees" in ok(a)["content"] and a.headers["ETag"]
    again = b.get(path, headers={"If-None-Match": a.headers["ETag"]})
    assert again.status == 304 and again.body == b""
    assert "honey" in ok(b.post("/reflect", {"query": "What does Anna Berg sell?"}))["text"]
    assert ok(b.get("/operations", status="completed"))["total"] >= 2
    assert ok(b.get("/stats"))["bank_id"] == "Main job"
    assert ok(b.delete())["success"] is True and b.get("/profile").status == 404
    front.drain()


def test_front_preview_and_mcp(front):
    b = front.bank("preview")
    b.make()
    assert ok(b.post("/prompts/preview", {"operation": "retain"}))["messages"]
    as_json(b.post("/prompts/preview", {"operation": "nothing"}), 422)

    def rpc(path, method, headers=None, **params):
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        sent = {"Accept": "application/json, text/event-stream", **(headers or {})}
        return ok(b.api.post(front.base + path, body, headers=sent))["result"]
    for path, headers in (("/mcp", {"X-Bank-Id": "preview"}), ("/mcp/", {"X-Bank-Id": "preview"}), ("/mcp/preview/", {})):
        assert any(tool["name"] == "recall" for tool in rpc(path, "tools/list", headers)["tools"])
        got = rpc(path, "tools/call", headers, name="get_bank", arguments={})
        assert got["isError"] is False and '"preview"' in got["content"][0]["text"]
    notice = b.api.post(front.base + "/mcp/", {"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert notice.status == 202 and notice.body == b""
    assert b.api.post(front.base + "/mcp/", {"jsonrpc": "2.0", "id": 1, "method": "none"}).json()["error"]["code"] == -32601
    assert Api(front.port).post(front.base + "/mcp/", {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 401
    ok(b.delete())


def test_front_refresh_tick_as_from_cron(front):
    front.cron("refresh-tick")


def test_front_errors_are_json(front):
    b = front.bank("errors")
    for path in ("/nowhere", "/v1/nowhere", BANKS + "/errors/nowhere", BANKS + "/errors/profile", "/"):
        as_json(b.api.get(front.base + path), 404)
    if front.base:
        as_json(b.api.get(front.base + "/hindsight.yaml"), 404)
        as_json(b.api.get(front.base + "/hindsight-banks"), 404)
    a = b.call("PATCH", "/profile", {})
    as_json(a, 405)
    assert "GET" in a.headers["Allow"] and a.headers["X-Request-Id"]
    for method in ("BREW", "OPTIONS"):
        as_json(b.call(method, "/stats"), 405)
    assert as_json(b.post("/memories", {"items": 7}), 422)[0]["loc"] == ["body", "items"]
    as_json(b.post("/memories/recall"), 422)
    as_json(b.get("/operations/none"), 400)
    nobody = Api(front.port)
    as_json(nobody.get(b.path + "/profile"), 401)
    as_json(nobody.get(b.path + "/profile", headers={"Authorization": "Bearer k-1"}), 401)
    assert nobody.get(b.path + "/profile", headers={"Authorization": "k-1 secret"}).status == 404
    assert nobody.get(front.base + "/health").status == 200


def test_front_bodies(front):
    b = front.bank("bodies")
    whole = json.dumps({"name": "x" * 300_000}).encode()
    assert len(ok(b.api.raw("PUT", b.path, whole))["name"]) == 300_000
    head = (f"PUT {b.path} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer k-1 secret\r\nConnection: close\r\n"
            "Transfer-Encoding: chunked\r\n\r\n").encode()
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(whole[i:i + 7000]), whole[i:i + 7000]) for i in range(0, len(whole), 7000))
    got = talk(front.port, head + chunks + b"0\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 200 ") and got.count(b"x") >= 300_000
    got = talk(front.port, head + b'c\r\n{"name":"ch"\r\n1\r\n}\r\n0\r\n\r\n')
    assert got.startswith(b"HTTP/1.1 200 ") and ok(b.get("/profile"))["name"] == "ch"
    # answers that are clear before the body came
    big = b"x" * (20 * 1024 * 1024 + 1)
    for path, status in ((front.base + "/nowhere", 404), (b.path, 413), (b.path + "/reflect", 413),
                         (b.path + "/memories", 413), (b.path + "/mental-models", 413)):
        as_json(b.api.raw("PUT" if path == b.path else "POST", path, big), status)
    as_json(Api(front.port).raw("PUT", b.path, b'{"name":"nobody"}'), 401)
    assert ok(b.get("/profile"))["name"] == "ch"
    # a length that lies: nothing is stored
    with socket.create_connection(("127.0.0.1", front.port), 30) as s:
        s.sendall(head.replace(b"Transfer-Encoding: chunked", b"Content-Length: 100") + b'{"name":"cut"}')
    assert ok(b.get("/profile"))["name"] == "ch"


@pytest.mark.parametrize("bank_id", ODD_IDS)
def test_front_odd_bank_ids(front, bank_id):
    b = front.bank(bank_id)
    assert b.make()["bank_id"] == bank_id
    assert ok(b.get("/mental-models"))["items"] == []
    assert ok(b.get("/operations"))["bank_id"] == bank_id
    b.retain("The mill stands still.")
    assert [m["text"] for m in b.memories()] == ["The mill stands still."]
    assert bank_id in [x["bank_id"] for x in ok(b.api.get(front.base + BANKS))["banks"]]
    ok(b.delete())


@pytest.mark.parametrize("bank_id", SERVER_ONLY)
def test_front_slashes_in_bank_ids(front, bank_id):
    b = front.bank(bank_id)
    if not front.raw_paths:
        assert b.put("", {}).status == 404
        return
    assert b.make()["bank_id"] == bank_id
    assert ok(b.get("/operations"))["bank_id"] == bank_id and ok(b.get("/mental-models"))["items"] == []


def test_front_every_route_reaches_its_program(front):
    """The rules of conf/apache against the tables: a wrong program would say 404."""
    for name in PROGRAMS:
        text = subprocess.run([program_path(name), "--routes"], capture_output=True, text=True, check=True).stdout
        for path in {row.split(" ", 1)[1] for row in text.splitlines()}:
            if path.startswith("/v1/default") or name == "banks":
                url = front.base + re.sub(r"\{[^}]*\}", "x%20y", path)
                assert (front.api().call("BREW", url).status, name, path) == (405, name, path)


def test_front_bad_escapes(front):
    for segment in ("%00", "a%00b", "%zz", "a%", "%ff", "%c0%af", "%ed%a0%80"):
        a = front.api().get(f"{front.base}{BANKS}/{segment}/profile")
        # Apache refuses NUL by itself, as 404, and an escape that is none
        assert a.status == 400 or (a.status == 404 and "%00" in segment), (segment, a)
        if front.raw_paths or "%00" not in segment and "%f" in segment:
            as_json(a, a.status)
    for path in ("/../../etc/passwd", BANKS + "/../../../../../etc/passwd", BANKS + "/%2e%2e/%2e%2e/%2e%2e/etc/passwd"):
        a = front.api().get(front.base + path)
        assert a.status in (400, 404) and b"root:" not in a.body, (path, a)


def test_front_a_final_slash_is_redirected_below_the_base_path(front):
    a = front.api().get(f"{front.base}{BANKS}/?limit=3")
    assert a.status == 307 and a.headers["Location"] == f"http://127.0.0.1:{front.port}{front.base}{BANKS}?limit=3"


def test_front_nothing_lies_outside_the_base_path(front):
    if not front.base:
        pytest.skip("this one has no base path")
    for path in ("/health", BANKS, front.base + "x/health", "/x" + front.base + "/health"):
        assert front.api().get(path).status == 404


def test_front_a_broken_configuration_is_an_answer(front):
    if not front.plain_cgi:
        pytest.skip("the programs read their settings once, at the start")
    before = front.config.read_text()
    front.config.write_text(before + "no_such_setting: 1\n")
    try:
        for method, path in (("GET", "/health"), ("POST", BANKS + "/b/reflect"), ("PUT", BANKS + "/b")):
            body = None if method == "GET" else b"x" * 1_000_000
            detail = as_json(front.api().raw(method, front.base + path, body), 500)
            assert detail == "the configuration is not usable"
    finally:
        front.config.write_text(before)
    assert front.api().get(front.base + "/health").status == 200


def test_front_no_program_is_503(front):
    if front.plain_cgi:
        pytest.skip("plain CGI has no program that could be away")
    sock = front.sockets / "reflect.sock"
    away = sock.rename(sock.with_suffix(".away"))
    try:
        a = front.bank("x").post("/reflect", {"query": "who?"})
        as_json(a, 503)
        assert a.headers["Retry-After"] == "1" and a.headers["X-Request-Id"]
    finally:
        away.rename(sock)
    assert front.bank("x").post("/reflect", {"query": "who?"}).status == 200
