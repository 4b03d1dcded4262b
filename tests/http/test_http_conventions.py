"""What every route shares: methods, slashes, bodies, headers, keys, limits, stopping (contract banks 1, 2)."""
import gzip
import json
import os
import random
import re
import socket
import subprocess
import threading
import time

import pytest

import fcgi
from stack import PROGRAMS, ok, program_path, wait_for

BANKS = "/v1/default/banks"


def banks_alone(own_stack, **kw):
    return own_stack(programs=["banks"], worker=False, llm=False, **kw)


def talk(port, data, half_close=False, seconds=10):
    """Send bytes as they are, give all that comes back until the server closes or falls silent."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as s:
        s.sendall(data)
        if half_close:
            s.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while more := s.recv(65536):
                got += more
        except (TimeoutError, ConnectionResetError):
            pass
        return got


# methods, slashes, content types

def test_fault_66_methods(bank):
    bank.make()
    for method, path, allow in (("PUT", "/directives", "GET, POST"), ("HEAD", "/config", "GET, PATCH, DELETE"),
                                ("OPTIONS", "/stats", "GET"), ("POST", "", "PUT, PATCH, DELETE"),
                                ("BREW", "/config", "GET, PATCH, DELETE")):
        a = bank.call(method, path, headers={"Origin": "http://x", "Access-Control-Request-Method": "GET"})
        assert a.status == 405 and a.headers["Allow"] == allow, (method, path, a)
        assert a.headers["Content-Type"] == "application/json"
        assert not [h for h in a.headers if h.lower().startswith("access-control")]
        if method != "HEAD":
            assert a.json() == {"detail": "Method Not Allowed"}


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1", "/v1/default", "/v1/other/banks", "/v1/default/banks/x/nowhere",
                                  "//health", "/v1//default/banks", BANKS + "//", "/health//", "/HEALTH",
                                  "/v1/default/banks//config", "/docs"])
def test_fault_66_unknown_paths(api, path):
    a = api.get(path, headers={"Accept": "text/html"}, foo=1)
    assert a.status == 404 and a.json() == {"detail": "Not Found"}
    assert "X-Ignored-Params" not in a.headers


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_fault_66_final_slash_is_a_redirect(stack, api, method):
    a = api.call(method, BANKS + "/a%2Fb/config/?x=1&y=%20")
    assert a.status == 307
    assert a.headers["Location"] == f"http://127.0.0.1:{stack.port}{BANKS}/a%2Fb/config?x=1&y=%20"


@pytest.mark.parametrize("content_type", [None, "application/json", "application/json; charset=utf-8",
                                          "APPLICATION/JSON"])
def test_fault_66_content_types(bank, content_type):
    headers = {"Content-Type": content_type} if content_type else {}
    a = bank.api.raw("PUT", bank.path, b'{"name":"n"}', {**headers, "Accept": "text/html"})
    assert ok(a)["name"] == "n" and a.headers["Content-Type"] == "application/json"


def test_fault_66_json_as_text_is_refused(bank):
    a = bank.api.raw("PUT", bank.path, b'{"name":"n"}', {"Content-Type": "text/plain"})
    assert a.status == 422 and a.detail[0]["type"] == "model_attributes_type"
    assert a.detail[0]["loc"] == ["body"] and a.detail[0]["input"] == '{"name":"n"}'
    assert bank.get("/profile").status == 404


def test_errors_of_nginx_are_json(stack):
    def check(raw, status):
        head, _, body = raw.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 %d" % status), raw[:300]
        assert b"Content-Type: application/json" in head and b"X-Request-Id: " in head
        assert isinstance(json.loads(body)["detail"], str)
        return head

    def get(path):
        return b"GET " + path + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    check(talk(stack.port, get(b"/%00")), 400)
    check(talk(stack.port, get(b"/../..")), 400)
    check(talk(stack.port, get(b"/v1/default/banks/../../../../x")), 400)
    check(talk(stack.port, get(b"/" + b"a" * 100000)), 414)
    check(talk(stack.port, b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 100000 + b"\r\n\r\n"), 400)
    check(talk(stack.port, b"TRACE / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), 405)
    check(talk(stack.port, b"GARBAGE\r\n\r\n"), 400)


def test_a_program_that_is_away_is_503_in_json(own_stack):
    s = banks_alone(own_stack)
    a = s.api().get(BANKS + "/x/operations")
    assert a.status == 503 and isinstance(a.detail, str)
    assert int(a.headers["Retry-After"]) >= 1 and a.headers["X-Request-Id"]


def test_every_route_reaches_its_program(stack, api):
    """The map of nginx against the tables: a wrong program would say 404."""
    for name in PROGRAMS:
        text = subprocess.run([program_path(name), "--routes"], capture_output=True, text=True, check=True).stdout
        rows = [r.split(" ", 1) for r in text.splitlines()]
        assert rows
        for path in {p for _, p in rows}:
            if not path.startswith("/v1/default") and name != "banks":
                continue
            a = api.call("BREW", re.sub(r"\{[^}]*\}", "x%2Fy", path))
            methods = {m for m, p in rows if p == path}
            assert a.status == 405 and methods <= set(a.headers["Allow"].split(", ")), (name, path, a)


# headers

def test_request_ids(stack, api):
    assert api.get("/health", headers={"X-Request-Id": "abc-1.2_3"}).headers["X-Request-Id"] == "abc-1.2_3"
    for bad in ("a b", "x" * 200, 'a"b', ""):
        got = api.get("/health", headers={"X-Request-Id": bad}).headers["X-Request-Id"]
        assert got != bad and re.fullmatch(r"[0-9a-f-]{36}", got)
    one, two = (api.get("/nowhere").headers["X-Request-Id"] for _ in range(2))
    assert one != two
    assert one in stack.processes["banks"].log_text()


def test_one_log_line_a_request(stack, api):
    a = api.get(BANKS + "/nope-" + os.urandom(4).hex() + "/config")
    lines = [n for n in stack.processes["banks"].log_text().splitlines() if a.headers["X-Request-Id"] in n]
    assert len(lines) == 1
    assert "route=/v1/default/banks/{bank_id}/config" in lines[0]
    assert "status=404" in lines[0] and "code=HS_E_BANK_MISSING" in lines[0] and "ms=" in lines[0]


def test_banks_case_39_ignored_names_are_told(bank):
    assert bank.get("/config", foo=1).headers["X-Ignored-Params"] == "foo"
    a = bank.call("PUT", "?b=1&a=2&b=3", {"name": "x", "zeta": 1, "inner": {"deep": 1}})
    assert ok(a)["name"] == "x" and a.headers["X-Ignored-Params"] == "b, a, zeta, inner"
    assert "X-Ignored-Params" not in bank.get("/config").headers
    bad = bank.post("/directives", {"name": 1, "who": 2})
    assert bad.status == 422 and bad.headers["X-Ignored-Params"] == "who"
    odd = bank.call("GET", "/config?%C3%A9%0Ax=1&y,z=2").headers["X-Ignored-Params"]
    assert odd == "??x, y,z"
    many = bank.call("GET", "/config?" + "&".join(f"name{i}=1" for i in range(1000))).headers["X-Ignored-Params"]
    assert 2000 < len(many) <= 2048 and re.fullmatch(r"name\d+", many.split(", ")[-1])


def test_banks_case_39_last_of_equal_keys_wins(bank):
    a = bank.api.raw("PUT", bank.path, b'{"name":"a","name":"b"}')
    assert ok(a)["name"] == "b"


def test_a_zipped_answer_keeps_its_tag(bank):
    bank.make()
    plain = bank.get("/config")
    zipped = bank.get("/config", headers={"Accept-Encoding": "gzip"})
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == plain.body
    assert zipped.headers["ETag"].removeprefix("W/") == plain.headers["ETag"]
    for tag in (zipped.headers["ETag"], f'"other", {plain.headers["ETag"]}', "*"):
        assert bank.get("/config", headers={"If-None-Match": tag}).status == 304
    assert bank.get("/config", headers={"If-None-Match": '"other"'}).status == 200


# validation

def test_validation_lists_every_fault(bank):
    a = bank.post("/directives", {"name": 1, "priority": "x", "is_active": "maybe", "tags": [1]})
    assert a.status == 422
    got = {(tuple(e["loc"]), e["type"]) for e in a.detail}
    assert got == {(("body", "name"), "string_type"), (("body", "content"), "missing"),
                   (("body", "priority"), "int_parsing"), (("body", "is_active"), "bool_parsing"),
                   (("body", "tags", 0), "string_type")}
    assert not [e for e in a.detail if "url" in e]
    missing = next(e for e in a.detail if e["type"] == "missing")
    assert missing["msg"] == "Field required" and missing["input"]["name"] == 1


@pytest.mark.parametrize("body, kind, loc", [
    (b"", "missing", ["body"]), (b"{", "json_invalid", ["body", 1]), (b"null", "model_attributes_type", ["body"]),
    (b"[]", "model_attributes_type", ["body"]), (b'{"name":"\xff"}', "json_invalid", None),
    (b'{"name":"\xed\xa0\x80"}', "json_invalid", None),
])
def test_bodies_that_are_no_object(bank, body, kind, loc):
    bank.make()
    a = bank.api.raw("POST", bank.path + "/directives", body, {"Content-Type": "application/json"})
    assert a.status == 422 and a.detail[0]["type"] == kind
    if loc:
        assert a.detail[0]["loc"] == loc


def test_banks_case_55_depth(bank):
    def nested(depth):
        return b'{"updates":{"foo":' + b"[" * (depth - 2) + b"]" * (depth - 2) + b"}}"
    assert bank.api.raw("PATCH", bank.path + "/config", nested(129)).status == 422
    read = bank.api.raw("PATCH", bank.path + "/config", nested(128))
    assert read.status == 400 and "foo" in read.detail


def test_banks_case_55_fault_lists_are_bounded(bank):
    bank.make()
    a = bank.post("/directives", {"name": "n", "content": "c", "tags": list(range(200))})
    assert a.status == 422 and len(a.detail) == 100
    long = bank.put("", {"retain_chunk_size": "x" * 5000})
    assert long.status == 422 and len(long.detail[0]["input"]) <= 1100


def test_fault_72_hostile_sizes_and_numbers(bank, api):
    bank.make()

    def directive(**more):
        return bank.post("/directives", {"name": "n", "content": "c", **more}).status
    assert directive(tags=[f"t{i}" for i in range(10000)]) == 422
    assert directive(tags=[f"t{i}" for i in range(1000)]) == 200
    assert directive(tags=["x" * 1000000]) == 422
    assert directive(tags=["x" * 255]) == 200
    assert directive(tags=["𠮷" * 256]) == 422
    assert directive(priority=2147483648) == 200
    for huge in (2**63, 2**64, 10**400, -2**70):
        assert directive(priority=huge) == 422
    for huge in ("18446744073709551616", "9" * 400):
        assert ok(api.call("GET", BANKS + "?limit=" + huge))["limit"] == 1000
    assert api.call("GET", BANKS + "?offset=9223372036854775807").status == 200
    assert api.call("GET", BANKS + "?offset=18446744073709551616").status == 422
    assert api.call("GET", "/health?q=" + "x" * 1000000).status == 414
    assert api.call("GET", "/health?" + "&" * 20000).status == 400
    assert api.call("GET", "/health", headers={f"X-H{i}": "v" * 100 for i in range(200)}).status in (200, 400)
    assert bank.api.raw("PATCH", bank.path + "/config", b"[" * 100000).status == 422
    assert api.get("/health").status == 200


# bodies

def test_banks_case_55_body_over_the_cap(bank):
    big = b'{"updates":{"retain_mission":"' + b"x" * (21 * 1024 * 1024) + b'"}}'
    a = bank.api.raw("PATCH", bank.path + "/config", big)
    assert a.status == 413 and isinstance(a.detail, str)
    just = b'{"updates":{"retain_mission":"' + b"x" * (20 * 1024 * 1024) + b'"}}'
    a = bank.api.raw("PATCH", bank.path + "/config", just)
    assert a.status == 413 and isinstance(a.detail, str)
    assert bank.get("/config").status == 404


def test_fault_61_large_bodies_are_stored(bank):
    for mib in (1, 8, 19):
        text = "y" * (mib * 1024 * 1024)
        ok(bank.patch("/config", {"updates": {"retain_mission": text}}))
        assert ok(bank.get("/config"))["overrides"]["retain_mission"] == text
    bank.delete("")


def test_fault_61_the_packet_of_the_database_bounds_the_body(own_stack):
    s = banks_alone(own_stack)
    s.sql("SET GLOBAL max_allowed_packet = 4194304")
    s.restart("banks")
    wait_for("banks", lambda: s.api().get("/health").status == 200)
    b = s.bank()
    assert b.patch("/config", {"updates": {"retain_mission": "x" * (3 * 1024 * 1024)}}).status == 413
    assert b.patch("/config", {"updates": {"retain_mission": "x" * (2 * 1024 * 1024)}}).status == 200


def test_fault_61_length_and_body_differ(stack, bank):
    bank.make()
    body = b'{"updates":{"retain_mission":"short"}}'

    def patch(length, data):
        return (b"PATCH " + bank.path.encode() + b"/config HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                b"Content-Length: " + str(length).encode() + b"\r\n\r\n" + data)
    assert talk(stack.port, patch(len(body) + 10, body), half_close=True) == b""
    assert ok(bank.get("/config"))["overrides"] == {}
    # the bytes beyond Content-Length are another request, a broken one
    got = talk(stack.port, patch(len(body), body + b"garbage\r\n\r\n"))
    assert got.startswith(b"HTTP/1.1 200") and b"HTTP/1.1 400" in got
    # and a sound one is answered on the same connection
    health = b"GET /health/live HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    got = talk(stack.port, patch(2, b"{}") + health)
    assert got.startswith(b"HTTP/1.1 422") and got.count(b"HTTP/1.1 200") == 1 and b'"alive"' in got


def test_fault_61_chunked_empty_and_zipped(stack, bank):
    chunked = (b"PUT " + bank.path.encode() + b" HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
               b"Connection: close\r\n\r\n6\r\n{\"name\r\n8\r\n\":\"chk\"}\r\n0\r\n\r\n")
    assert b'"name":"chk"' in talk(stack.port, chunked)
    a = bank.api.raw("POST", bank.path + "/directives", b"")
    assert a.status == 422 and a.detail[0]["loc"] == ["body"] and a.detail[0]["input"] is None
    zipped = gzip.compress(b'{"name":"n","content":"c"}')
    a = bank.api.raw("POST", bank.path + "/directives", zipped, {"Content-Encoding": "gzip"})
    assert a.status == 422 and a.detail[0]["type"] == "json_invalid"


def test_fault_61_short_body_from_the_web_server(stack, bank):
    """Without request buffering a body cut off in transit looks complete to libfcgi."""
    sock = stack.socket_of("banks")
    body = b'{"name":"cut"}'
    for end in (True, False):
        raw = fcgi.request(sock, "PUT", bank.path, body, [("CONTENT_LENGTH", str(len(body) + 5))], end=end)
        assert raw == b""
    assert bank.get("/profile").status == 404
    status, _, _ = fcgi.answer(fcgi.request(sock, "PUT", bank.path, body, [("CONTENT_LENGTH", str(len(body)))]))
    assert status == 200


def test_no_input_ends_a_program(stack, bank):
    """Random mixtures of awkward pieces as path, query and body: JSON answers below 500, same processes."""
    bank.make()
    rng = random.Random(20240518)
    pieces = ["%00", "%ff", "%", "%2F", "/", "//", "..", "?", "&", "=", "a", "é", "%F0%9F%8E%89", "%ED%A0%80", "{bank_id}",
              "%07", "config", "directives", "banks", "v1", "default", "limit=", "18446744073709551616", "-1", "+", ";",
              bank.path, "tags=", "memories", "%25", "x" * 300]
    bodies = [b"{", b"}", b"[", b"]", b'"', b":", b",", b"null", b"true", b"1e999", b"-", b"\\u0000", b"\\ud800", b"\xff",
              b"\x00", b'"updates"', b'"name"', b'"tags"', "é".encode(), b"0" * 50, b"\\"]
    before = {n: stack.processes[n].pid for n in PROGRAMS}
    for _ in range(400):
        prefix = rng.choice([bank.path, "/v1/default/banks", "", bank.path + "/directives", bank.path + "/config"])
        path = prefix + "".join(rng.choice(pieces) for _ in range(rng.randrange(6)))
        body = b"".join(rng.choice(bodies) for _ in range(rng.randrange(12)))
        method = rng.choice(["GET", "PUT", "POST", "PATCH"])
        raw = (f"{method} /{path.lstrip('/')} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
               f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        head, _, text = talk(stack.port, raw).partition(b"\r\n\r\n")
        status = int(head.split()[1])
        assert 200 <= status < 500, (raw, head)
        if text and b"chunked" not in head:
            json.loads(text)
    assert {n: stack.processes[n].pid for n in PROGRAMS if stack.processes[n].alive()} == before


# keys

def test_keys(own_stack):
    s = banks_alone(own_stack, settings={"tenant_api_key": "sec ret"})
    path = BANKS + "/b/config"

    def get(value):
        return s.api().get(path, headers={"Authorization": value} if value is not None else None)
    for good in ("Bearer sec ret", "bearer sec ret", "BEARER   sec ret", "sec ret"):
        assert get(good).status == 404, good
    for bad in (None, "", "Bearer", "Bearer ", "Bearer sec", "Bearer sec rets", "Basic sec ret", "SEC RET"):
        a = get(bad)
        assert a.status == 401 and a.json() == {"detail": "Authentication failed: Invalid API key"}, bad
        assert "WWW-Authenticate" not in a.headers
    raw = (b"GET " + path.encode() + b" HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
           b"Authorization: Bearer sec ret\r\nAuthorization: Bearer other\r\n\r\n")
    assert re.match(rb"HTTP/1\.1 40[01] ", talk(s.port, raw))
    two = [("HTTP_AUTHORIZATION", "Bearer sec ret")] * 2
    assert fcgi.answer(fcgi.request(s.socket_of("banks"), uri=path, params=two))[0] == 401
    assert s.api().put(BANKS + "/b", {"disposition_empathy": 9}).status == 422
    assert s.api().put(BANKS + "/b", {}).status == 401
    assert s.api().post(BANKS + "/b/background", {"content": "x"}).status == 410
    assert ok(s.api(headers={"Authorization": "sec ret"}).get(BANKS))["total"] == 0


def test_config_api_switched_off(own_stack):
    s = banks_alone(own_stack, settings={"enable_bank_config_api": False, "tenant_api_key": "k"})
    b = s.bank()
    assert b.patch("/config", {"updates": {}}).status == 404
    assert b.delete("/config").status == 404
    assert b.patch("/config", {}).status == 422
    assert b.get("/config").status == 401
    assert s.api().get("/version").json()["features"]["bank_config_api"] is False


# long calls

def slow_bank(s):
    """A bank whose reflect hangs in its first model call."""
    s.llm.script({"scope": "*", "reply": {"hang": True}})
    return s.bank(make=True)


def reflecting(s, n):
    return len([c for c in s.llm.api.get("/_calls").json()["calls"] if c["ended"] is None]) >= n


def start_reflects(s, bank, n):
    def one():
        try:
            bank.post("/reflect", {"query": "who?"}, timeout=30)
        except OSError:
            pass
    threads = [threading.Thread(target=one, daemon=True) for _ in range(n)]
    for t in threads:
        t.start()
    wait_for("the model calls", lambda: reflecting(s, n))
    return threads


def test_long_calls_take_at_most_three_quarters_of_the_threads(own_stack):
    s = own_stack(programs=["banks", "memories", "reflect"], worker=False, settings={"fastcgi_threads": 4})
    b = slow_bank(s)
    threads = start_reflects(s, b, 3)
    a = b.post("/reflect", {"query": "one more"})
    assert a.status == 503 and int(a.headers["Retry-After"]) >= 1 and "capacity" in a.detail
    # short requests of the same program are served meanwhile
    assert b.call("GET", "/reflect").status == 405
    s.llm.reset()
    for t in threads:
        t.join(30)
    s.llm.reset()
    assert b.post("/reflect", {"query": "now"}).status == 200


def test_work_stops_when_its_client_has_gone(own_stack):
    s = own_stack(programs=["banks", "reflect"], worker=False)
    b = slow_bank(s)
    body = b'{"query":"who?"}'
    with socket.create_connection(("127.0.0.1", s.port)) as c:
        c.sendall(b"POST " + b.path.encode() + b"/reflect HTTP/1.1\r\nHost: h\r\nX-Request-Id: left-early\r\n"
                  b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        wait_for("the model call", lambda: reflecting(s, 1))
    log = s.processes["reflect"].log_text
    wait_for("the end of the request", lambda: "left-early" in log(), 10)
    line = next(n for n in log().splitlines() if "left-early" in n)
    assert "status=499" in line and "HS_E_CLIENT_GONE" in line
    wait_for("the model call's end", lambda: not reflecting(s, 1))


def test_sigterm_lets_a_running_call_end(own_stack):
    s = own_stack(programs=["banks", "reflect"], worker=False)
    s.llm.script({"scope": "reflect_tool_call", "reply": {"delay": 1.5}, "times": 1})
    b = s.bank(make=True)
    got = []
    t = threading.Thread(target=lambda: got.append(b.post("/reflect", {"query": "who?"}).status))
    t.start()
    wait_for("the model call", lambda: reflecting(s, 1))
    assert s.processes["reflect"].stop() == 0
    t.join()
    assert got == [200]


# sockets

@pytest.mark.parametrize("how", ["passed", "stdin"])
def test_a_socket_from_outside(own_stack, how):
    """As a service manager (descriptor 3, LISTEN_FDS) and as spawn-fcgi (descriptor 0) give it."""
    s = banks_alone(own_stack)
    path = s.run / "outside.sock"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(16)
        argv = [program_path("banks"), "--config", s.config]
        if how == "passed":
            script = 'LISTEN_PID=$$; export LISTEN_PID; exec "$@"'
            child = subprocess.Popen(["sh", "-c", script, "sh", *argv], env={**s.env(), "LISTEN_FDS": "1"},
                                     stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False,
                                     preexec_fn=lambda: os.dup2(listening.fileno(), 3))
        else:
            child = subprocess.Popen(argv, env=s.env(), stdin=listening, stderr=subprocess.DEVNULL)
        try:
            for _ in range(3):
                assert fcgi.answer(fcgi.request(path, uri="/health"))[0] == 200
        finally:
            child.terminate()
            assert child.wait(10) == 0


def test_no_socket_is_a_clear_error(own_stack):
    s = banks_alone(own_stack)
    done = subprocess.run([program_path("banks"), "--config", s.config], env=s.env(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=20)
    assert done.returncode != 0 and "--socket" in done.stderr
    done = subprocess.run([program_path("banks"), "--config", s.config, "--socket", "/tmp/" + "x" * 120],
                          env=s.env(), capture_output=True, text=True, timeout=20)
    assert done.returncode != 0 and "too long" in done.stderr


# stop and hand over

def test_sigterm_finishes_and_exits_0(own_stack):
    s = banks_alone(own_stack)
    p = s.processes["banks"]
    began = time.monotonic()
    assert p.stop() == 0
    assert time.monotonic() - began < 3
    assert "event=stopped" in p.log_text()


def test_a_new_process_takes_over_without_a_lost_request(own_stack):
    s = banks_alone(own_stack)
    old = s.processes["banks"]
    seen, done = [], threading.Event()

    def load():
        api = s.api()
        while not done.is_set():
            seen.append(api.get(BANKS).status)
    threads = [threading.Thread(target=load) for _ in range(4)]
    for t in threads:
        t.start()
    try:
        inode = os.stat(s.socket_of("banks")).st_ino
        s.spawn("banks2", old.argv)
        wait_for("the new socket", lambda: os.stat(s.socket_of("banks")).st_ino != inode)
        before = len(seen)
        assert old.stop() == 0
        wait_for("more answers", lambda: len(seen) > before + 50)
    finally:
        done.set()
        for t in threads:
            t.join()
    assert set(seen) == {200}
    assert s.processes["banks2"].stop() == 0
