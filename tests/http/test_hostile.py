"""Bad input at every route: the right status, JSON with `detail`, nothing changed, no process lost."""
import json
import re
import subprocess

import pytest

from stack import PROGRAMS, Stack, ok, program_path, quote

MIB = 1024 * 1024
JSON = {"Content-Type": "application/json"}
# no bank, no body, nothing to refuse
OPEN = {"/health", "/health/ready", "/health/live", "/version", "/v1/version", "/metrics"}
# answered without a look at the body (410, as the reference since 1.1)
GONE = {("PUT", "/v1/default/banks/{bank_id}/profile"), ("POST", "/v1/default/banks/{bank_id}/background")}
# these take no body; one that comes along is not looked at
BODILESS = ("/clear", "/retry", "/dry-run-refresh")
# an unknown operation is an answer, not an error (status not_found)
ANSWERED = ("GET", "/v1/default/banks/{bank_id}/operations/{operation_id}")
UUIDS = {"memory_id", "entity_id", "directive_id", "operation_id"}
ABSENT = "00000000-0000-4000-8000-000000000000"


def routes():
    """(method, path) of all programs, each once."""
    rows = []
    for name in PROGRAMS:
        text = subprocess.run([program_path(name), "--routes"], capture_output=True, text=True, check=True).stdout
        rows += [tuple(line.split(" ", 1)) for line in text.splitlines()]
    return [r for r in dict.fromkeys(rows) if r[1] not in OPEN]


def names_of(path):
    return re.findall(r"\{(\w+)\}", path)


@pytest.fixture(scope="module")
def kept():
    """A server without a worker, and a bank with one of everything; at the end nothing may have changed."""
    stack = Stack(llm=False, worker=False).start()
    bank = stack.bank("kept", make=True, name="Kept")
    bank.retain("Alice likes green tea.", document_id="doc", tags=["t"])
    directive = ok(bank.post("/directives", {"name": "d", "content": "c"}))["id"]
    made = ok(bank.post("/mental-models", {"id": "mm", "name": "M", "source_query": "Q"}))
    bank.ids = {"bank_id": "kept", "memory_id": bank.memories()[0]["id"], "document_id": "doc",
                "chunk_id": quote(ok(bank.get("/documents/doc/chunks"))["items"][0]["chunk_id"]),
                "entity_id": ok(bank.get("/entities"))["items"][0]["id"], "directive_id": directive,
                "mental_model_id": "mm", "operation_id": made["operation_id"]}
    bank.stack = stack
    before, pids = fingerprint(stack), {n: stack.processes[n].pid for n in PROGRAMS}
    yield bank
    after = fingerprint(stack)
    alive = {n: stack.processes[n].pid for n in PROGRAMS if stack.processes[n].alive()}
    reports = stack.stop()
    assert after == before
    assert alive == pids
    assert not reports, "\n".join(reports)


def fingerprint(stack):
    """A checksum of every table."""
    tables = [next(iter(r.values())) for r in stack.sql("SHOW TABLES")]
    return {r["Table"]: r["Checksum"] for r in stack.sql("CHECKSUM TABLE " + ", ".join(tables))}


def refused(answer, *statuses):
    """An error in JSON of one of these statuses (any 4xx when none is named)."""
    assert answer.status in statuses if statuses else 400 <= answer.status < 500, answer
    assert answer.headers["Content-Type"] == "application/json", answer
    detail = answer.json()["detail"]
    assert detail and isinstance(detail, (str, list)), answer
    if isinstance(detail, list):
        assert all({"type", "loc", "msg", "input"} <= set(d) for d in detail)
    assert not re.search(r"SQL|SELECT|syntax|errno|/tmp/|\.c:\d", answer.body.decode()), answer


def with_ids(path, ids, **other):
    return path.format(**{n: other.get(n, ids.get(n)) for n in names_of(path)})


ROUTES = routes() if program_path("banks").exists() else []
NAMED = [(m, p, n) for m, p in ROUTES for n in names_of(p)]
CHANGES = [(m, p) for m, p in ROUTES if m in ("POST", "PUT", "PATCH") and (m, p) not in GONE]
BODIED = [(m, p) for m, p in CHANGES if not p.endswith(BODILESS)]


def test_every_program_shows_its_routes():
    assert len(ROUTES) > 40 and len(BODIED) > 12


# paths

@pytest.mark.parametrize("method, path, name", NAMED)
def test_broken_escapes_in_ids_are_refused(kept, method, path, name):
    for bad in ("%00", "x%00y", "%zz", "%", "%ff", "%ED%A0%BD", "kept%00"):
        answer = kept.api.call(method, with_ids(path, kept.ids, **{name: bad}))
        refused(answer, 400) if (method, path) not in GONE else refused(answer, 400, 410)


@pytest.mark.parametrize("method, path, name", [r for r in NAMED if r[2] != "bank_id" and r[:2] != ANSWERED])
def test_unknown_ids_are_404(kept, method, path, name):
    body = {"name": "n"} if method in ("PATCH", "PUT") else None
    for unknown in ("nowhere", ABSENT, "'; DROP TABLE banks; --", "\" OR \"1\"=\"1", "👨‍👩‍👧 🎉", "a b", "a/b", "a%2Fb", "..", "\\",
                    "x" * 3000):
        answer = kept.api.call(method, with_ids(path, kept.ids, **{name: quote(unknown)}), body)
        refused(answer, *((404,) if unknown == ABSENT else (400, 404)))
        if name not in UUIDS and len(unknown) < 256:
            refused(answer, 404)


@pytest.mark.parametrize("path", sorted({p for m, p in ROUTES if m == "GET" and "{bank_id}" in p and p != ANSWERED[1]}))
def test_reads_of_unknown_banks_make_none(kept, path):
    for unknown in ("nowhere", "it's", "a/b", "🎉", "kept ", "KEPT", "%", "..", "x' OR '1'='1"):
        refused(kept.api.get(with_ids(path, kept.ids, bank_id=quote(unknown))), 404)


@pytest.mark.parametrize("path", sorted({p for _, p in ROUTES}))
def test_dots_and_long_paths(kept, path):
    real = with_ids(path, kept.ids)
    refused(kept.api.get("/../.." + real), 400)
    refused(kept.api.get(real + "/../../../../../../../.."), 400)
    refused(kept.api.get(real + "/" + "a" * 100_000), 414)
    refused(kept.api.get(real + "?q=" + "a" * 100_000), 414)
    refused(kept.api.get(real + "/%2e%2e/%2F/x/y"), 404)


def test_unknown_operations_are_not_found(kept):
    method, path = ANSWERED
    for ids in ({"operation_id": ABSENT}, {"bank_id": "nowhere"}):
        assert ok(kept.api.call(method, with_ids(path, kept.ids, **ids)))["status"] == "not_found"
    refused(kept.api.call(method, with_ids(path, kept.ids, operation_id=quote("' OR 1=1"))), 400)


# bodies

NO_JSON = [b"{", b"}", b"{\"a\":1", b"nul", b"{'a': 1}", b"{\"a\" 1}", b"\x00", b"{\"a\":\"\x80\"}", b"{} {}", b"a=b", b"[" * 300,
           b"{\"a\":" * 300, b"\xff\xfe{\x00}\x00", b"{\"items\":[{\"content\":\"x\"},]}"]


@pytest.mark.parametrize("method, path", BODIED)
def test_bodies_that_are_no_json(kept, method, path):
    url = with_ids(path, kept.ids)
    for body in NO_JSON:
        refused(kept.api.raw(method, url, body, JSON), 422)


@pytest.mark.parametrize("method, path", BODIED)
def test_bodies_of_another_type(kept, method, path):
    url = with_ids(path, kept.ids)
    for body in (b"[]", b'"text"', b"17", b"true", b"[{}]", b'"' + b"x" * MIB + b'"'):
        refused(kept.api.raw(method, url, body, JSON), 422)


MEMBERS = {
    "/v1/default/banks/{bank_id}": ["name", "reflect_mission", "disposition", "retain_chunk_size"],
    "/v1/default/banks/{bank_id}/config": ["updates"],
    "/v1/default/banks/{bank_id}/directives": ["name", "content", "priority", "is_active", "tags"],
    "/v1/default/banks/{bank_id}/memories": ["items", "async"],
    "/v1/default/banks/{bank_id}/memories/recall": ["query", "types", "budget", "max_tokens", "tags", "tags_match",
                                                    "tag_groups", "include", "query_timestamp"],
    "/v1/default/banks/{bank_id}/reflect": ["query", "budget", "context", "max_tokens", "tags_match", "fact_types",
                                            "tag_groups", "include"],
    "/v1/default/banks/{bank_id}/mental-models": ["id", "name", "source_query", "tags", "max_tokens", "trigger"],
    "/v1/default/banks/{bank_id}/mental-models/{mental_model_id}": ["name", "source_query", "tags", "max_tokens",
                                                                    "trigger"],
    "/v1/default/banks/{bank_id}/directives/{directive_id}": ["name", "content", "priority", "is_active", "tags"],
}
OBJECTS = ("updates", "disposition", "include", "trigger")
WHOLE = {"/directives": {"name": "n", "content": "c"}, "/memories": {"items": [{"content": "x"}]},
         "/recall": {"query": "tea"}, "/reflect": {"query": "tea"}, "/mental-models": {"name": "n", "source_query": "q"}}


@pytest.mark.parametrize("path, member", [(p, m) for p, members in MEMBERS.items() for m in members])
def test_wrong_types_name_their_member(kept, path, member):
    methods = [m for m, p in BODIED if p == path]
    assert methods
    body = dict(next((b for end, b in WHOLE.items() if path.endswith(end)), {}))
    for method in methods:
        for wrong in ([[["x"]]], [{"a": 1}, 2.5], *([] if member in OBJECTS else [{"a": {"b": [1]}}])):
            answer = kept.api.call(method, with_ids(path, kept.ids), {**body, member: wrong})
            refused(answer, 400, 422)
            if answer.status == 422:
                assert any(member in d["loc"] or member in d["msg"] for d in answer.detail), answer


@pytest.mark.parametrize("path", [p for p in MEMBERS if p.endswith(tuple(WHOLE))])
def test_missing_members_are_named(kept, path):
    needed = next(b for end, b in WHOLE.items() if path.endswith(end))
    answer = kept.api.post(with_ids(path, kept.ids), {})
    refused(answer, 422)
    assert {d["loc"][-1] for d in answer.detail if d["type"] == "missing"} == set(needed)


@pytest.mark.parametrize("method, path", CHANGES)
def test_bodies_over_the_cap_are_413(kept, method, path):
    body = b'{"name":"' + b"x" * (21 * MIB) + b'"}'
    refused(kept.api.raw(method, with_ids(path, kept.ids), body, JSON), 413)


def test_a_body_of_millions_of_values_takes_no_memory(kept):
    """Without a limit this one took 600 MB."""
    body = b'{"query":"tea","x":[' + b"{}," * 3_000_000 + b"1]}"
    answer = kept.api.raw("POST", kept.path + "/memories/recall", body, JSON)
    refused(answer, 422)
    assert answer.detail[0]["type"] == "json_invalid" and "too many values" in answer.body.decode()


@pytest.mark.parametrize("path, body", [
    ("/memories/recall", {"query": "tea"}), ("/reflect", {"query": "tea"}), ("/directives", {"name": "n", "content": "c"}),
    ("/mental-models", {"name": "n", "source_query": "q"}), ("/memories", {})])
def test_lists_longer_than_a_statement_takes_are_refused(kept, path, body):
    tags = [f"t{i}" for i in range(70_000)]
    body = {"items": [{"content": "x", "tags": tags}]} if path == "/memories" else {**body, "tags": tags}
    answer = kept.post(path, body)
    refused(answer, 422)
    assert answer.detail[0]["type"] == "too_long" and answer.detail[0]["loc"][-1] == "tags", answer


# queries

@pytest.mark.parametrize("path", [p for m, p in ROUTES if m == "GET" and p.endswith(
    ("/list", "/documents", "/chunks", "/entities", "/tags", "/directives", "/mental-models", "/operations"))])
def test_queries_of_lists(kept, path):
    url = with_ids(path, kept.ids)
    for query in ("limit=x", "offset=-1", "limit=1e3", "offset=99999999999999999999", "limit=%00x"):
        refused(kept.api.get(url + "?" + query), 422)
    for query in ("x=%zz", "%ff=1"):
        assert kept.api.get(url + "?" + query).status in (200, 400)
    for text in ("'; DROP TABLE banks; --", "%' OR '1'='1", "\\", "_%", "🎉", "\x00", "\ud83d".encode("utf-8", "surrogatepass")):
        for key in ("q", "search", "tags", "type", "status"):
            answer = kept.api.call("GET", url, **{key: text})
            assert answer.status in (200, 422), answer
            json.loads(answer.body)


# text

DIRTY = 'nul \\u0000 bell \\u0007 half \\ud83d quote \' " -- ; DROP TABLE banks; 🎉'.replace('"', '\\"')
CLEAN = 'nul  bell  half  quote \' " -- ; DROP TABLE banks; 🎉'


def test_hostile_text_is_stored_as_text(extractive_stack):
    bank = extractive_stack.bank("dirty '\"%\\ 🎉/ä")
    try:
        bank.make(retain_extraction_mode="chunks", enable_observations=False)
        for path, body in (
            ("/memories", '{"items":[{"content":"@","context":"@","document_id":"doc","tags":["@"],"metadata":{"@":"@"}}]}'),
            ("/directives", '{"name":"@","content":"@","tags":["@"]}'),
            ("/mental-models", '{"id":"mm","name":"@","source_query":"@","tags":["@"]}'),
            ("/memories/recall", '{"query":"@","tags":["@"]}'),
        ):
            ok(bank.api.raw("POST", bank.path + path, body.replace("@", DIRTY).encode(), JSON))
        memory, = bank.memories(tags=CLEAN)
        assert (memory["text"], memory["context"], memory["tags"]) == (CLEAN, CLEAN, [CLEAN])
        assert memory["metadata"] == {CLEAN: CLEAN}
        directive, = ok(bank.get("/directives"))["items"]
        assert (directive["name"], directive["content"], directive["tags"]) == (CLEAN, CLEAN, [CLEAN])
        model = ok(bank.get("/mental-models/mm"))
        assert (model["name"], model["source_query"], model["tags"]) == (CLEAN, CLEAN, [CLEAN])
        assert bank.recall("bell half")["results"][0]["text"] == CLEAN
    finally:
        bank.delete("")
