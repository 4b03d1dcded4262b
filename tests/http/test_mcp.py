"""MCP: contract mcp, cases 1-23, 25, 26, 31, 32, 48, 49, 55, 56; reported faults 52-57."""
import json
import threading
import time
import uuid

import pytest

from stack import Bank, ok, quote
from test_cgi import answer as cgi_answer, run as cgi_run

HANDSHAKE = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MULTI = ["retain", "recall", "reflect", "list_banks", "create_bank", "list_mental_models", "get_mental_model",
         "create_mental_model", "update_mental_model", "delete_mental_model", "refresh_mental_model", "get_memory",
         "list_operations", "get_operation", "cancel_operation", "get_bank"]
LEGACY = ["hindsight_put", "hindsight_search"]
SINGLE = [name for name in MULTI if name not in ("list_banks", "create_bank")]


class Mcp:
    """Requests to one address, each on its own."""

    def __init__(self, api, path="/mcp/", **headers):
        self.api, self.path = api, path
        self.headers = {k.replace("_", "-"): v for k, v in headers.items()}

    def send(self, body, **headers):
        headers = {**self.headers, **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.api.post(self.path, body, headers=headers)

    def raw(self, body, **headers):
        sent = {"Content-Type": "application/json", **self.headers,
                **{k.replace("_", "-"): v for k, v in headers.items()}}
        return self.api.raw("POST", self.path, body, {k: v for k, v in sent.items() if v is not None})

    def request(self, method, params=None, id=1, **headers):
        body = {"jsonrpc": "2.0", "id": id, "method": method}
        if params is not None:
            body["params"] = params
        return self.send(body, **headers)

    def result(self, method, params=None):
        answer = ok(self.request(method, params))
        assert "error" not in answer, answer
        return answer["result"]

    def tools(self):
        return {t["name"]: t for t in self.result("tools/list")["tools"]}

    def call(self, tool, **arguments):
        """The whole result of a tool."""
        return self.result("tools/call", {"name": tool, "arguments": arguments})

    def object(self, tool, **arguments):
        """The object that a tool gives, failures it tells included."""
        r = self.call(tool, **arguments)
        assert r["isError"] is False, r
        text, structured = r["content"][0]["text"], r["structuredContent"]
        if set(structured) == {"result"}:
            assert structured["result"] == text
        else:
            assert structured == json.loads(text)
        return json.loads(text)

    def refused(self, tool, **arguments):
        """The text of an isError result."""
        r = self.call(tool, **arguments)
        assert r["isError"] is True and "structuredContent" not in r and len(r["content"]) == 1, r
        assert r["content"][0]["type"] == "text"
        return r["content"][0]["text"]


def error(answer, status, code):
    assert answer.status == status, answer
    assert answer.headers["Content-Type"] == "application/json"
    body = answer.json()
    assert body["jsonrpc"] == "2.0" and "result" not in body and body["error"]["code"] == code, body
    return body


@pytest.fixture
def mcp(api, llm):
    return Mcp(api)


@pytest.fixture
def one(stack, api, bank):
    """The address of a fresh bank that is not made yet."""
    return Mcp(api, f"/mcp/{quote(bank.id)}/")


def exists(bank):
    return bank.get("/profile").status == 200


def chunks_mode(bank):
    """Texts are stored as they are, nothing follows from them."""
    bank.make(retain_extraction_mode="chunks", enable_observations=False)
    return bank


def texts(bank):
    return sorted(m["text"] for m in bank.memories())


# addresses

def test_mcp_case_01_both_forms_of_an_address_answer_without_redirect(api, llm):
    for path in ["/mcp", "/mcp/", "/mcp/b", "/mcp/b/", "/mcp?x=1", "/mcp/b/?a=%zz"]:
        answer = Mcp(api, path).request("initialize", {"protocolVersion": "2025-11-25"})
        assert ok(answer)["result"]["protocolVersion"] == "2025-11-25"
        assert "Mcp-Session-Id" not in answer.headers


def test_only_whole_segments_are_the_address(api):
    for path in ["/mcpx", "/mcpx/", "/MCP/"]:
        assert ok(Mcp(api, path).request("ping"), 404) == {"detail": "Not Found"}
    for path in ["/mcp/a/b", "/mcp/a/b/", "/mcp//", "/mcp//a"]:
        assert ok(Mcp(api, path).request("ping"), 404) == {"error": "Not Found"}


def test_bad_bank_ids_in_the_path_are_refused(api):
    for path in ["/mcp/%zz/", "/mcp/a%00b/"]:       # by the web server already
        assert Mcp(api, path).request("ping").status == 400
    assert ok(Mcp(api, "/mcp/%ff").request("ping"), 400) == {"error": "Invalid bank id"}
    answer = api.raw("POST", "/mcp/", b"{}", {"X-Bank-Id": b"\xff"})
    assert ok(answer, 400) == {"error": "Invalid bank id"}


def test_addresses_as_plain_cgi_below_a_base_path(stack, llm):
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    for base in ["", "/mem/ory"]:
        def post(path):
            done = cgi_run(stack, "POST", path, body, program="mcp", env={
                "HINDSIGHT_API_BASE_PATH": base, "CONTENT_TYPE": "application/json"})
            status, headers, got = cgi_answer(done)
            return status, json.loads(got)

        for path in ["/mcp", "/mcp/", "/mcp/b", "/mcp/b/", "/mcp/a%2Fb?x=%zz"]:
            assert post(base + path) == (200, {"jsonrpc": "2.0", "id": 1, "result": {}})
        for path in ["/mcp/%zz", "/mcp/%00/", "/mcp/%ff/"]:
            assert post(base + path) == (400, {"error": "Invalid bank id"})
        for path in ["/mcp/a/b", "/mcp/a/%zz", "/mcp//"]:
            assert post(base + path) == (404, {"error": "Not Found"})
        for path in ["/mcpx", "/other/mcp"] + (["/mcp", "/mem/mcp"] if base else []):
            assert post(path if base else base + path) == (404, {"detail": "Not Found"})


def test_an_escaped_slash_is_part_of_the_bank_id(stack, api, llm):
    bank = Bank(api, "a/b " + uuid.uuid4().hex)
    Mcp(api, f"/mcp/{quote(bank.id)}").call("hindsight_put", content="Slash.", context="")
    assert exists(bank)


def test_mcp_case_02_no_word_is_reserved(api, llm):
    for path in ["/mcp/sse/", "/mcp/messages/"]:
        tools = Mcp(api, path).tools()
        assert list(tools) == SINGLE
        assert all("bank_id" not in t["inputSchema"]["properties"] for t in tools.values())


def test_mcp_case_03_the_path_wins_over_the_header(stack, api, llm):
    mine, other = chunks_mode(stack.bank()), stack.bank()
    Mcp(api, "/mcp/" + mine.id, X_Bank_Id=other.id).call("hindsight_put", content="Here.", context="")
    assert texts(mine) == ["Here."] and not exists(other)


def test_mcp_case_04_argument_then_header_then_default(stack, api, llm):
    a, h, default = stack.bank(), stack.bank(), Bank(api, "default")
    for bank in [a, h, default]:
        bank.make(name="of " + bank.id)
    mcp = Mcp(api, "/mcp/", X_Bank_Id=h.id)
    assert mcp.object("get_bank", bank_id=a.id)["bank_id"] == a.id
    assert mcp.object("get_bank", bank_id="")["bank_id"] == h.id
    assert mcp.object("get_bank", bank_id=None)["bank_id"] == h.id
    assert Mcp(api).object("get_bank")["bank_id"] == "default"
    assert Mcp(api, X_Bank_Id="").object("get_bank")["bank_id"] == "default"
    assert "bank_id" in mcp.refused("get_bank", bank_id=5)
    default.delete()


def test_the_default_bank_is_the_servers_to_choose(own_stack):
    s = own_stack(llm=False, worker=False, env={"HINDSIGHT_MCP_BANK_ID": "house"})
    s.bank("house", make=True)
    assert Mcp(s.api()).object("get_bank")["bank_id"] == "house"


def test_mcp_case_05_a_bank_argument_has_no_effect_on_the_address_of_a_bank(stack, api, llm):
    x, y = chunks_mode(stack.bank()), stack.bank()
    one = Mcp(api, "/mcp/" + x.id)
    operation = one.object("retain", content="In x.", bank_id=y.id)["operation_id"]
    x.wait(operation)
    assert texts(x) == ["In x."] and not exists(y)


# probes, methods, headers

def test_mcp_case_06_a_probe_needs_no_key(own_stack):
    s = own_stack(llm=False, worker=False, settings={"tenant_api_key": "secret"})
    api = s.api()
    for path in ["/mcp", "/mcp/", "/mcp/b", "/mcp/b/"]:
        assert ok(api.get(path)) == {}
        answer = api.get(path, headers={"MCP-Protocol-Version": "2025-11-25"})
        assert ok(answer, 401) == {"error": "Authentication failed: Invalid API key"}
        answer = api.get(path, headers={"MCP-Protocol-Version": "2025-11-25", "Authorization": "bearer secret"})
        assert error(answer, 405, -32600)["error"]["message"] == "Method Not Allowed"
        assert answer.headers["Allow"] == "POST"
    assert api.get("/mcp/a/b").status == 401


def test_fault_52_a_get_before_anything_else_answers_at_once(api, llm):
    for path in ["/mcp", "/mcp/", "/mcp/alice", "/mcp/alice/"]:
        began = time.monotonic()
        assert ok(api.get(path)) == {}
        for name in ["Mcp-Session-Id", "MCP-Protocol-Version"]:
            assert api.get(path, headers={name: "x"}).status == 405
        for method in ["HEAD", "OPTIONS", "DELETE", "PUT", "PATCH", "BREW"]:
            answer = api.raw(method, path)
            assert (answer.status, answer.headers["Allow"]) == (405, "POST")
        assert time.monotonic() - began < 3


def test_delete_says_what_is_not_supported(api):
    body = error(api.raw("DELETE", "/mcp/"), 405, -32600)
    assert body["error"]["message"] == "Method Not Allowed: Session termination not supported"
    assert body["id"] is None


def test_mcp_case_07_each_key_opens_its_own_door(own_stack):
    s = own_stack(llm=False, worker=False, settings={"tenant_api_key": "http", "mcp_auth_token": "mcp"})
    api = s.api()
    with_mcp = Mcp(api, Authorization="Bearer mcp")
    assert "recall" in with_mcp.tools()
    assert with_mcp.object("list_banks")["banks"] == []
    assert ok(Mcp(api, Authorization="Bearer http").request("ping"), 401) == {"error": "Invalid authentication token"}
    assert ok(Mcp(api).request("ping"), 401) == {"error": "Authorization header required"}
    assert ok(Mcp(api, Authorization="mcp").request("ping"))["result"] == {}
    assert api.get("/v1/default/banks", headers={"Authorization": "Bearer mcp"}).status == 401
    assert api.get("/v1/default/banks", headers={"Authorization": "Bearer http"}).status == 200


def test_mcp_may_need_no_key_beside_http(own_stack):
    s = own_stack(llm=False, worker=False,
                  settings={"tenant_api_key": "http", "tenant_mcp_auth_disabled": True})
    assert ok(Mcp(s.api()).request("ping"))["result"] == {}
    assert s.api().get("/v1/default/banks").status == 401


def test_mcp_can_be_switched_off(own_stack):
    s = own_stack(llm=False, worker=False, settings={"mcp_enabled": False})
    for path in ["/mcp", "/mcp/", "/mcp/b"]:
        assert ok(Mcp(s.api(), path).request("ping"), 404) == {"detail": "Not Found"}
        assert s.api().get(path).status == 404
    assert ok(s.api().get("/version"))["features"]["mcp"] is False


def test_the_version_tells_that_mcp_is_served(api):
    assert ok(api.get("/version"))["features"]["mcp"] is True


def test_mcp_case_08_no_accept_header_is_refused(mcp):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    for accept in [None, "*/*", "application/json", "text/event-stream", "text/html"]:
        answer = mcp.raw(body, Accept=accept)
        assert ok(answer)["result"] == {} and answer.headers["Content-Type"] == "application/json"


def test_the_content_type_is_json_or_missing(mcp):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    for kind in [None, "application/json", "Application/JSON; charset=utf-8"]:
        assert ok(mcp.raw(body, Content_Type=kind))["result"] == {}
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/jsonx"]:
        error(mcp.raw(body, Content_Type=kind), 415, -32600)


def test_a_body_over_the_cap_is_refused(mcp):
    error(mcp.raw(b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"' + b"x" * (20 << 20) + b'"}'), 413, -32600)


# frames

def test_mcp_case_09_initialize_agrees_on_a_version(mcp):
    for version in HANDSHAKE:
        assert mcp.result("initialize", {"protocolVersion": version})["protocolVersion"] == version
    for version in ["1999-01-01", "2026-07-28", "2024-10-07", ""]:
        assert mcp.result("initialize", {"protocolVersion": version})["protocolVersion"] == "2025-11-25"
    for header in ["nope", "2026-07-28", "1999-01-01"]:
        r = ok(mcp.request("initialize", {"protocolVersion": "2025-06-18"}, MCP_Protocol_Version=header))["result"]
        assert r["protocolVersion"] == "2025-06-18"
        assert r["capabilities"] == {"tools": {"listChanged": False}}
        assert r["serverInfo"]["name"] == "hindsight-mcp-server" and "instructions" not in r
    for params in [None, {}, {"protocolVersion": 5}]:
        error(mcp.request("initialize", params), 200, -32602)


def test_mcp_case_09_requests_under_another_version_are_refused(mcp):
    """Until the era without a handshake is served, its clients are told to shake hands."""
    for header in ["nope", "2026-07-28"]:
        for method in ["tools/list", "ping", "server/discover"]:
            body = error(mcp.request(method, id="x", MCP_Protocol_Version=header), 400, -32601)
            assert body["id"] == "x"
        answer = mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, MCP_Protocol_Version=header)
        assert (answer.status, answer.body) == (202, b"")
    for header in HANDSHAKE:
        assert ok(mcp.request("ping", MCP_Protocol_Version=header))["result"] == {}


def test_the_version_is_the_products(api, mcp):
    info = mcp.result("initialize", {"protocolVersion": "2025-11-25"})["serverInfo"]
    assert info["version"] == ok(api.get("/version"))["api_version"]


def test_mcp_case_10_ids_come_back_as_they_were(api, llm):
    for given in ["abc", 0, "", -1, 9007199254740993, "0"]:
        back = ok(Mcp(api).request("tools/list", id=given))["id"]
        assert back == given and type(back) is type(given)


def test_mcp_case_11_notifications_are_accepted(mcp):
    for method in ["notifications/initialized", "notifications/cancelled", "notifications/whatever", "tools/list"]:
        answer = mcp.send({"jsonrpc": "2.0", "method": method})
        assert (answer.status, answer.body) == (202, b"")
    for body in [{"jsonrpc": "2.0", "id": 1, "result": {}}, {"jsonrpc": "2.0", "id": 1, "error": {"code": 1}}]:
        assert mcp.send(body).status == 202


def test_mcp_case_12_batches_are_known_to_the_first_versions(mcp):
    ping = {"jsonrpc": "2.0", "method": "ping"}
    batch = [{**ping, "id": 1}, ping, {**ping, "id": "b"}, {"id": 3}, {**ping, "id": 4, "method": "no"}]
    for headers in [{}, {"MCP_Protocol_Version": "2024-11-05"}, {"MCP_Protocol_Version": "2025-03-26"}]:
        replies = ok(mcp.send(batch, **headers))
        assert [r["id"] for r in replies] == [1, "b", None, 4]
        assert replies[0]["result"] == {} and replies[1]["result"] == {}
        assert [r["error"]["code"] for r in replies[2:]] == [-32600, -32601]
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"]:
        error(mcp.send(batch, MCP_Protocol_Version=version), 400, -32600)
    for wrong in [[], [{**ping, "id": i} for i in range(101)],
                  [{**ping, "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26"}}]]:
        error(mcp.send(wrong), 400, -32600)
    assert len(ok(mcp.send([{**ping, "id": i} for i in range(100)]))) == 100
    answer = mcp.send([ping, {"jsonrpc": "2.0", "id": 1, "result": {}}])
    assert (answer.status, answer.body) == (202, b"")


def test_fault_56_protocol_manners(mcp):
    body = error(mcp.request("no/such", id=7), 200, -32601)
    assert body["id"] == 7 and body["error"]["message"] == "Method not found" and body["error"]["data"] == "no/such"
    for broken in [b"{", b"", b"nope", b"{}x", b'"\xff"', b"[" * 200]:
        body = error(mcp.raw(broken), 400, -32700)
        assert body["id"] is None and body["error"]["message"].startswith("Parse error")
    good = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    for wrong in [{"id": 1, "method": "ping"}, {**good, "jsonrpc": "1.0"}, {**good, "jsonrpc": 2},
                  {**good, "method": 5}, {**good, "params": "x"}, {**good, "id": None}, {**good, "id": True},
                  {**good, "id": {}}, {**good, "id": [1]}, {**good, "id": 1.5}, {"jsonrpc": "2.0", "id": 1}, 5, "x"]:
        assert error(mcp.send(wrong), 400, -32600)["id"] is None
    assert ok(mcp.request("ping", Mcp_Session_Id="of-nobody"))["result"] == {}
    assert ok(mcp.request("ping", {"_meta": {"progressToken": 1}}))["result"] == {}
    assert ok(mcp.send({**good, "params": None}))["result"] == {}
    assert mcp.object("list_banks")["limit"] == 100      # nothing came before it


def test_wrong_params_are_told_as_such(mcp):
    for method, params in [("tools/call", None), ("tools/call", {"name": 5}), ("tools/call", []),
                           ("tools/call", {"name": "recall", "arguments": []}), ("tools/list", {"cursor": "x"}),
                           ("tools/call", {"name": "recall", "arguments": "x"})]:
        assert error(mcp.request(method, params, id=3), 200, -32602)["id"] == 3
    assert "tools" in mcp.result("tools/list", {"cursor": None})


def test_lists_of_what_is_not_there_are_empty(mcp):
    assert mcp.result("resources/list") == {"resources": []}
    assert mcp.result("resources/templates/list") == {"resourceTemplates": []}
    assert mcp.result("prompts/list") == {"prompts": []}


# arguments

def test_mcp_case_13_extra_arguments_are_dropped(stack, one, bank):
    chunks_mode(bank)
    op = one.object("retain", content="Extra.", explanation="because", reasoning="thus")["operation_id"]
    bank.wait(op)
    stored = json.dumps([bank.memories(), bank.operation(op, include_payload=True)])
    assert "Extra." in stored and "because" not in stored and "thus" not in stored


def test_mcp_case_14_lists_and_objects_may_be_texts(stack, one, bank):
    chunks_mode(bank)
    for content, arguments in [("two", {"tags": '["a","b"]', "metadata": '{"k":"v"}'}),
                               ("one", {"tags": "solo"}), ('{"json": [1]}', {"tags": ["x"]})]:
        bank.wait(one.object("retain", content=content, **arguments)["operation_id"])
    stored = {m["text"]: m for m in bank.memories()}
    assert stored["two"]["tags"] == ["a", "b"] and stored["two"]["metadata"] == {"k": "v"}
    assert stored["one"]["tags"] == ["solo"] and '{"json": [1]}' in stored
    model = one.object("create_mental_model", name="M", source_query="?", trigger='{"mode":"delta"}')
    shown = ok(bank.get("/mental-models/" + model["mental_model_id"]))
    assert shown["trigger"]["mode"] == "delta"
    assert one.object("recall", query='["two"]')["results"]
    assert one.object("recall", query="two", tags='["a"]')["results"][0]["tags"] == ["a", "b"]
    for tags in ["not-json", "{}", "[1]", [1], 5]:
        assert "'tags" in one.refused("recall", query="x", tags=tags)


def test_fault_53_arguments_as_strings_and_extra_arguments(stack, one, bank):
    chunks_mode(bank)
    kept = [('["looks", "like", "a list"]', {"tags": '["a"]', "explanation": "why", "metadata": '{"k":"v"}'}),
            ("plain", {"tags": "not json"})]
    for content, arguments in kept:
        bank.wait(one.object("retain", content=content, **arguments)["operation_id"])
    stored = {m["text"]: m for m in bank.memories()}
    assert stored[kept[0][0]]["tags"] == ["a"] and stored[kept[0][0]]["metadata"] == {"k": "v"}
    assert stored["plain"]["tags"] == ["not json"]
    assert "tags" in one.refused("recall", query="x", tags="not json")


def test_mcp_case_15_types_are_read_leniently_but_checked(stack, one, mcp, bank):
    chunks_mode(bank).retain("A long enough text about gardens.")
    for given in ["50", " 50 ", 50.0, "50.0", 50]:
        assert one.object("recall", query="gardens", max_tokens=given)["results"]
    for given in [None, True, 1.5, "lots", [], {}]:
        assert "'max_tokens'" in one.refused("recall", query="x", max_tokens=given)
    for given in ["yes", "OFF", 1, 0, "t"]:
        one.object("recall", query="gardens", include_chunks=given)
    for given in ["maybe", 2, None, []]:
        assert "include_chunks" in one.refused("recall", query="x", include_chunks=given)
    assert "metadata" in one.refused("retain", content="x", metadata={"n": 5})
    for given in [5, None, ["x"], {}]:
        assert "'query'" in one.refused("recall", query=given)
    assert "'query' is required" in one.refused("recall")
    for tool, arguments in [("list_operations", {"limit": 0}), ("list_operations", {"limit": 101}),
                            ("list_operations", {"offset": -1}), ("list_mental_models", {"limit": 1001}),
                            ("list_mental_models", {"limit": 0}), ("list_mental_models", {"offset": -1})]:
        assert list(arguments)[0] in one.refused(tool, **arguments)
    assert mcp.object("list_banks", limit=0)["banks"] == []
    several = one.refused("recall", tags={}, max_tokens="x")
    assert several.startswith("Invalid arguments for recall: ")
    assert all(name in several for name in ["query", "tags", "max_tokens"])


def test_mcp_case_16_tools_that_are_not_offered_are_unknown(stack, api, mcp, one, bank):
    bank.make()
    ok(bank.patch("/config", {"updates": {"mcp_enabled_tools": ["recall"]}}))
    for client, name in [(mcp, "no_such_tool"), (one, "retain"), (one, "list_banks"), (one, "hindsight_put"),
                         (Mcp(api, X_Bank_Id=bank.id), "hindsight_put")]:
        r = client.call(name, content="x")
        assert r == {"content": [{"type": "text", "text": f"Unknown tool: '{name}'"}], "isError": True}
    # an argument does not go round the list of the bank that it names
    assert mcp.refused("retain", content="x", bank_id=bank.id) == "Unknown tool: 'retain'"
    assert mcp.refused("hindsight_put", content="x", context="", bank_id=bank.id) == "Unknown tool: 'hindsight_put'"
    assert mcp.object("recall", query="x", bank_id=bank.id)["results"] == []


def test_mcp_case_17_a_bank_chooses_its_tools(stack, api, one, bank):
    def choose(value):
        ok(bank.patch("/config", {"updates": {"mcp_enabled_tools": value}}))

    bank.make()
    multi = Mcp(api, X_Bank_Id=bank.id)
    assert list(one.tools()) == SINGLE
    choose(["retain", "unknown_name"])
    assert list(one.tools()) == ["retain"] and list(multi.tools()) == ["retain"]
    assert one.refused("recall", query="x") == "Unknown tool: 'recall'"
    choose([])
    assert one.tools() == {} and one.refused("retain", content="x") == "Unknown tool: 'retain'"
    choose(["hindsight_search"])
    assert list(multi.tools()) == ["hindsight_search"]
    choose(None)
    assert list(one.tools()) == SINGLE


def test_mcp_case_18_and_19_the_server_chooses_tools_and_adds_to_two_texts(own_stack):
    s = own_stack(llm=False, worker=False, env={
        "HINDSIGHT_API_MCP_ENABLED_TOOLS": "retain, recall,reflect,list_banks,",
        "HINDSIGHT_API_MCP_INSTRUCTIONS": "  Speak of ships.  "})
    one, multi = Mcp(s.api(), "/mcp/b/"), Mcp(s.api())
    assert list(one.tools()) == ["retain", "recall", "reflect"]
    tools = multi.tools()
    assert list(tools) == ["retain", "recall", "reflect", "list_banks"]
    for name in ["retain", "recall"]:
        assert tools[name]["description"].endswith("\n\nAdditional instructions: Speak of ships.")
    assert "ships" not in tools["reflect"]["description"]
    bank = s.bank("b", make=True)
    ok(bank.patch("/config", {"updates": {"mcp_enabled_tools": ["recall", "get_bank"]}}))
    assert list(one.tools()) == ["recall"]


@pytest.mark.parametrize("value, names", [("", SINGLE), (" , ", SINGLE), ("list_banks", []), ("no_such", [])])
def test_an_empty_list_of_the_server_is_none(own_stack, value, names):
    s = own_stack(llm=False, worker=False, env={"HINDSIGHT_API_MCP_ENABLED_TOOLS": value})
    bank = s.bank("b", make=True)
    one = Mcp(s.api(), "/mcp/b/")
    assert list(one.tools()) == names
    ok(bank.patch("/config", {"updates": {"mcp_enabled_tools": ["recall"]}}))
    assert list(one.tools()) == [n for n in names if n == "recall"]


# the list

def test_mcp_case_20_every_tool_is_described_and_answers_in_its_shape(api, llm, bank):
    one, multi = Mcp(api, "/mcp/" + bank.id), Mcp(api, X_Bank_Id=bank.id)
    assert list(multi.tools()) == MULTI + LEGACY and list(one.tools()) == SINGLE
    nothing = {"content": " ", "query": " ", "bank_id": "_bad\u0001" * 99, "mental_model_id": "none",
               "name": " ", "source_query": " ", "memory_id": "x", "operation_id": "x", "context": ""}
    for client in [one, multi]:
        for name, t in client.tools().items():
            assert t["description"].strip() and t["title"].strip()
            given = {k: v for k, v in nothing.items() if k in t["inputSchema"]["properties"]}
            if name != "create_bank":
                given.pop("bank_id", None)
            r = client.call(name, **given)
            if name in LEGACY:
                assert "outputSchema" not in t and r["isError"] is True
                continue
            assert r["isError"] is False
            wrapped = t["outputSchema"].get("x-fastmcp-wrap-result")
            assert bool(wrapped) == (client is multi and name != "retain")
            assert r["structuredContent"] == ({"result": r["content"][0]["text"]} if wrapped
                                              else json.loads(r["content"][0]["text"]))
    assert not exists(bank)


def test_annotations_tell_readers_from_writers(mcp):
    tools = mcp.tools()
    readers = {"recall", "reflect", "list_banks", "get_bank", "list_mental_models", "get_mental_model", "get_memory",
               "list_operations", "get_operation", "hindsight_search"}
    assert {n for n, t in tools.items() if t["annotations"]["readOnlyHint"]} == readers
    assert {n for n, t in tools.items() if t["annotations"].get("destructiveHint")} == {"delete_mental_model"}
    assert all(t["annotations"]["openWorldHint"] is False for t in tools.values())


def subschemas(s):
    yield s
    for v in s.values() if isinstance(s, dict) else s:
        if isinstance(v, (dict, list)):
            yield from subschemas(v)


def test_mcp_case_55_schemas_are_plain_and_small(api, mcp, one):
    for client in [mcp, one]:
        answer = client.request("tools/list")
        assert len(answer.body) < 76 * 1024
        assert b"$ref" not in answer.body and b"$defs" not in answer.body
        for t in answer.json()["result"]["tools"]:
            schema = t["inputSchema"]
            assert schema["type"] == "object" and "additionalProperties" not in schema
            assert "required" not in schema or schema["required"]
            for s in subschemas(schema):
                for p in (s.get("properties", {}).values() if isinstance(s, dict) else []):
                    assert p["description"].strip()
                    assert ("type" in p) != ("anyOf" in p)


def test_schemas_say_what_is_checked(mcp):
    tools = mcp.tools()
    recall = tools["recall"]["inputSchema"]
    assert recall["required"] == ["query"]
    p = recall["properties"]
    assert p["query"] == {"type": "string", "description": p["query"]["description"]}
    assert p["max_tokens"]["type"] == "integer" and p["max_tokens"]["default"] == 4096
    assert p["tags_match"]["enum"] == ["any", "all", "any_strict", "all_strict", "exact"]
    assert p["tags_match"]["default"] == "any"
    assert p["tags"]["anyOf"] == [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]
    assert p["tags"]["default"] is None
    assert p["tag_groups"]["anyOf"][0]["items"] == {"type": "object", "additionalProperties": True}
    assert p["bank_id"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    metadata = tools["retain"]["inputSchema"]["properties"]["metadata"]
    assert metadata["anyOf"][0] == {"type": "object", "additionalProperties": {"type": "string"}}
    limit = tools["list_operations"]["inputSchema"]["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"], limit["default"]) == (1, 100, 20)
    trigger = tools["create_mental_model"]["inputSchema"]["properties"]["trigger"]["anyOf"][0]
    assert trigger["additionalProperties"] is False and len(trigger["properties"]) == 19
    assert all(m["default"] is None and {"type": "null"} in m["anyOf"] for m in trigger["properties"].values())
    assert trigger["properties"]["fact_types"]["anyOf"][0]["items"]["enum"] == ["world", "experience", "observation"]
    put = tools["hindsight_put"]["inputSchema"]
    assert put["required"] == ["bank_id", "content", "context"]


# banks

def test_fault_54_an_address_for_one_bank_shows_one_bank(stack, api, llm):
    alice, bob = chunks_mode(stack.bank()), chunks_mode(stack.bank())
    alice.retain("Alice likes tea.")
    bob.retain("Bob likes tea.")
    one, multi = Mcp(api, "/mcp/" + alice.id), Mcp(api, X_Bank_Id=bob.id)
    tools = one.tools()
    assert not {"list_banks", "create_bank", "get_bank_stats"} & set(tools)
    assert all("bank_id" not in t["inputSchema"]["properties"] for t in tools.values())
    found = one.object("recall", query="tea", bank_id=bob.id)["results"]
    assert [f["text"] for f in found] == ["Alice likes tea."]
    assert one.refused("list_banks") == "Unknown tool: 'list_banks'"
    assert "bank_id" in multi.tools()["recall"]["inputSchema"]["properties"]
    assert [f["text"] for f in multi.object("recall", query="tea")["results"]] == ["Bob likes tea."]
    assert [f["text"] for f in multi.object("recall", query="tea", bank_id=alice.id)["results"]] == ["Alice likes tea."]


def test_mcp_case_23_reading_makes_no_bank(stack, api, llm):
    bank = stack.bank()
    one = Mcp(api, "/mcp/" + bank.id)
    missing = f"Bank '{bank.id}' not found"
    assert one.object("get_bank") == {"error": missing}
    assert one.object("recall", query="x") == {"error": missing, "results": []}
    assert one.object("list_mental_models") == {"error": missing, "items": []}
    assert one.object("list_operations") == {"error": missing}
    assert one.object("get_operation", operation_id=str(uuid.uuid4()))["status"] == "not_found"
    assert one.refused("hindsight_search", query="x") == f"Error: Memory bank '{bank.id}' not found"
    assert not exists(bank)
    makers = {"create_bank": {}, "retain": {"content": "x"}, "reflect": {"query": "x?"},
              "hindsight_put": {"content": "x", "context": ""},
              "create_mental_model": {"name": "M", "source_query": "?"}}
    for tool, arguments in makers.items():
        made = stack.bank()
        Mcp(api).call(tool, bank_id=made.id, **arguments)
        assert exists(made), tool


def test_create_bank_never_fails_because_it_exists(mcp, stack):
    bank = stack.bank()
    assert mcp.object("create_bank", bank_id=bank.id)["bank_id"] == bank.id
    made = mcp.object("create_bank", bank_id=bank.id, name="N", mission="Answer.")
    assert made == {"bank_id": bank.id, "name": "N", "mission": "Answer.",
                    "disposition": {"skepticism": 3, "literalism": 3, "empathy": 3}}
    assert mcp.object("create_bank", bank_id=bank.id) == made
    assert mcp.object("get_bank", bank_id=bank.id) == made
    assert ok(bank.get("/config"))["overrides"] == {"reflect_mission": "Answer."}
    listed = mcp.object("list_banks", query=bank.id.upper())
    assert (listed["total"], listed["limit"], listed["offset"]) == (1, 100, 0)
    assert listed["banks"][0]["mission"] == "Answer."
    assert "error" in mcp.object("create_bank", bank_id="_" * 200)


# retain, recall, reflect

def test_mcp_case_31_retain_refuses_what_is_no_time(stack, one, bank):
    chunks_mode(bank)
    for given, words in [("yesterday", "Invalid timestamp format 'yesterday'. Expected ISO format like "
                          "'2024-01-15T10:30:00' or '2024-01-15T10:30:00Z'"), ("unset", "Invalid timestamp"),
                         ("9999-12-31", "Timestamp year 9999 is a placeholder, not a date."),
                         ("0001-01-01T00:00:00Z", "Timestamp year 1 is a placeholder, not a date.")]:
        r = one.object("retain", content="x", timestamp=given)
        assert r["status"] == "error" and words in r["message"] and "operation_id" not in r
    long = one.object("retain", content="x", timestamp="\u00e9" + "\u20ac" * 400)["message"]
    assert "\u00e9" + "\u20ac" * 99 + "'" in long
    items = [{"content": "x", "timestamp": "\u20ac" * 400}]
    assert bank.post("/memories", {"items": items}).detail[0]["type"] == "value_error"
    assert one.object("list_operations")["total"] == 0
    for given in ["2024-01-15T10:30:00", "2024-01-15T10:30:00Z"]:
        bank.wait(one.object("retain", content=given, timestamp=given)["operation_id"])
    for empty in ["", None]:
        assert one.object("retain", content="now", timestamp=empty)["status"] == "accepted"
    times = {m["text"]: m["mentioned_at"] for m in bank.memories()}
    assert times["2024-01-15T10:30:00"] == times["2024-01-15T10:30:00Z"] == "2024-01-15T10:30:00+00:00"


def test_retain_keeps_all_that_it_is_given(stack, one, bank):
    chunks_mode(bank)
    r = one.object("retain", content="Whole.", context="work", tags=["t"], metadata={"k": "v"}, document_id="d",
                   timestamp="2024-01-15", strategy=None, update_mode="replace")
    assert r == {"status": "accepted", "message": "Memory storage initiated", "operation_id": r["operation_id"]}
    bank.wait(r["operation_id"])
    m = bank.memories()[0]
    assert (m["text"], m["context"], m["tags"], m["metadata"]) == ("Whole.", "work", ["t"], {"k": "v"})
    assert m["document_id"] == "d" and m["mentioned_at"].startswith("2024-01-15")
    bank.wait(one.object("retain", content="Plain.")["operation_id"])
    assert {m["context"] for m in bank.memories()} == {"work", "general"}


def test_retain_failures_are_a_status(stack, one, bank):
    for arguments in [{"content": " "}, {"content": "x", "tags": [""]}, {"content": "x", "update_mode": "sometimes"},
                      {"content": "x", "update_mode": "append"}, {"content": "x", "document_id": "d" * 600}]:
        r = one.object("retain", **arguments)
        assert r["status"] == "error" and r["message"] and list(r) == ["status", "message"]
    assert one.object("retain", content="")["message"] == "content cannot be empty"
    assert not exists(bank)


def test_recall_gives_facts_with_both_names_of_their_kind(stack, one, mcp, bank):
    chunks_mode(bank).retain("Rivers flow.", tags=["water"], document_id="r")
    r = one.object("recall", query="rivers")
    assert list(r) == ["results", "trace", "entities", "chunks", "source_facts", "source_facts_truncated"]
    assert all(r[key] is None for key in list(r)[1:])
    fact = r["results"][0]
    assert fact["type"] == fact["fact_type"] == "world" and "attachments" not in fact and fact["entities"] is None
    assert fact["tags"] == ["water"] and fact["document_id"] == "r" and fact["scores"]["final"] > 0
    more = one.object("recall", query="rivers", include_chunks=True, include_source_facts=True, budget="HIGH")
    assert list(more["chunks"].values()) == [{"chunk_text": "Rivers flow.", "chunk_index": 0, "truncated": False}]
    assert more["source_facts"] == {} and more["source_facts_truncated"] is False
    for budget in ["low", "Mid", "boundless"]:
        assert one.object("recall", query="rivers", budget=budget)["results"]
    assert one.object("recall", query="rivers", tags=[], tags_match="exact")["results"] == []
    assert one.object("recall", query="rivers", tags_match="exact")["results"]
    assert one.object("recall", query="rivers", tag_groups=[{"not": {"tags": ["water"]}}])["results"] == []
    text = mcp.call("recall", query="rivers", bank_id=bank.id)["content"][0]["text"]
    assert "\n" not in text and json.loads(text)["results"][0]["id"] == fact["id"]


def test_mcp_case_26_what_recall_cannot_serve_is_an_error_object(stack, one, mcp, bank):
    bank.make()
    wrong = [({"tags": ["a"], "tag_groups": [{"tags": ["b"]}]}, "'tags' and 'tag_groups' are mutually exclusive."
              " Use 'tag_groups' for compound filtering."),
             ({"types": ["opinions"]}, "Invalid fact type"), ({"query_timestamp": "soon"}, "Invalid timestamp format"),
             ({"temporal_window": {"start": "2024-01-01"}}, "end"),
             ({"temporal_window": {"start": "2024-01-02", "end": "2024-01-01"}}, "before"),
             ({"min_scores": {"final": "high"}}, "final"), ({"tag_groups": [{"or": 5}]}, "")]
    for arguments, words in wrong:
        for client in [one, Mcp(mcp.api, X_Bank_Id=bank.id)]:
            r = client.object("recall", query="x", **arguments)
            assert words in r["error"] and r["results"] == [] and list(r) == ["error", "results"]
    for given in ["bogus", None, "ANY"]:
        assert "tags_match" in one.refused("recall", query="x", tags_match=given)
    quoted = 'say "no"\\'
    for client in [one, Mcp(mcp.api, X_Bank_Id=bank.id)]:
        assert quoted in client.object("get_mental_model", mental_model_id=quoted)["error"]


def test_mcp_case_25_reflect_adds_only_what_is_asked(stack, one, bank, llm):
    chunks_mode(bank).retain("Bridges carry trains.")
    plain = one.object("reflect", query="What do bridges carry?")
    assert list(plain) == ["text", "structured_output", "structured_output_error", "usage"]
    assert plain["text"] and plain["structured_output"] is None and plain["usage"]["total_tokens"] > 0
    based = one.object("reflect", query="What do bridges carry?", include_based_on=True)
    assert set(based) - set(plain) == {"based_on"}
    assert based["based_on"]["world"][0]["text"] == "Bridges carry trains."
    traced = one.object("reflect", query="What do bridges carry?", include_trace=True)
    assert set(traced) - set(plain) == {"tool_trace", "llm_trace", "directives_applied"}
    assert traced["tool_trace"] and traced["llm_trace"]


def test_reflect_failures_carry_an_empty_text(stack, one, bank, llm):
    r = one.object("reflect", query=" ")
    assert r == {"error": "query must not be blank", "text": ""}
    assert one.object("reflect", query=" ", context="Tell me about rivers.", budget="endless")["text"]
    assert "error" in one.object("reflect", query="x", response_schema={"type": "string"})


# the legacy tools

def test_mcp_case_32_put_then_search(stack, mcp, llm):
    mine, other = chunks_mode(stack.bank()), chunks_mode(stack.bank())
    r = mcp.call("hindsight_put", bank_id=mine.id, content="User prefers Python.", context="preferences",
                 explanation="asked for")
    assert r == {"content": [{"type": "text", "text": "Fact stored successfully"}], "isError": False}
    found = mcp.call("hindsight_search", bank_id=mine.id, query="Which language?  Python?", explanation="x")
    assert set(found) == {"content", "isError"} and len(found["content"]) == 1
    results = json.loads(found["content"][0]["text"])["results"]
    assert [list(f) for f in results] == [["id", "text", "type", "context", "event_date", "document_id"]]
    assert results[0]["text"] == "User prefers Python." and results[0]["type"] == "world"
    assert results[0]["context"] == "preferences" and results[0]["event_date"] is None
    nothing = mcp.call("hindsight_search", bank_id=other.id, query="Python")
    assert nothing["content"][0]["text"] == '{"results":[]}' and nothing["isError"] is False
    assert mcp.refused("hindsight_search", bank_id="unknown-bank", query="x") == \
        "Error: Memory bank 'unknown-bank' not found"


def test_mcp_case_32_legacy_failures_are_texts(stack, mcp, bank, llm):
    good = {"bank_id": bank.id, "content": "c", "context": "x", "query": "q"}
    for tool, names in [("hindsight_put", ["bank_id", "content", "context"]),
                        ("hindsight_search", ["bank_id", "query"])]:
        for name in names:
            rest = {k: v for k, v in good.items() if k != name}
            assert mcp.refused(tool, **rest) == f"Error: {name} is required"
            for wrong in [5, None, ["x"], {}]:
                text = mcp.refused(tool, **rest, **{name: wrong})
                assert text.startswith("Error: ") and name in text
            if name != "context":
                assert mcp.refused(tool, **rest, **{name: " "}) == f"Error: {name} is required"
    text = mcp.refused("hindsight_search", bank_id=bank.id, query="x", max_tokens="lots")
    assert text.startswith("Error: ") and "max_tokens" in text
    assert not exists(bank)
    assert mcp.call("hindsight_put", bank_id=bank.id, content="c", context="")["isError"] is False


def test_legacy_tools_on_the_address_of_one_bank(stack, one, bank, llm):
    chunks_mode(bank)
    assert not set(LEGACY) & set(one.tools())
    for named in [{}, {"bank_id": bank.id}, {"bank_id": None}]:
        assert one.call("hindsight_put", content="Named.", context="", **named)["isError"] is False
    assert one.refused("hindsight_put", content="x", context="", bank_id="bob") == "Error: Memory bank 'bob' not found"
    assert one.refused("hindsight_search", query="x", bank_id="bob") == "Error: Memory bank 'bob' not found"


# mental models

def model(bank, model_id):
    return ok(bank.get("/mental-models/" + model_id))


def test_mcp_case_21_create_checks_values_in_order(stack, one, bank):
    good = {"name": "M", "source_query": "What?"}
    for arguments, words in [({"name": " ", "source_query": " "}, "name cannot be empty"),
                             ({"source_query": "\n"}, "source_query cannot be empty"),
                             ({"max_tokens": 255}, "max_tokens must be between 256 and 8192, got 255"),
                             ({"max_tokens": 8193}, "max_tokens must be between 256 and 8192, got 8193"),
                             ({"tags_match": "bogus"}, "tags_match must be one of any, all, any_strict, all_strict, "
                              "exact, got 'bogus'")]:
        assert one.object("create_mental_model", **{**good, **arguments}) == {"error": words}
    for arguments in [{"mental_model_id": "Not Good"}, {"tags": [""]}, {"name": "n" * 300}]:
        assert list(one.object("create_mental_model", **{**good, **arguments})) == ["error"]
    assert not exists(bank)
    for tokens in [256, 8192]:
        made = one.object("create_mental_model", **good, max_tokens=tokens)
        shown = model(bank, made["mental_model_id"])
        assert shown["max_tokens"] == tokens and shown["trigger"]["tags_match"] is None
        assert made["status"] == "created" and made["message"].startswith("Mental model 'M' created.")
        bank.wait(made["operation_id"])
    assert one.object("create_mental_model", **good, mental_model_id="mine")["mental_model_id"] == "mine"
    assert "mine" in one.object("create_mental_model", **good, mental_model_id="mine")["error"]


def test_mcp_case_22_the_list_shows_no_texts(stack, one, bank):
    made = bank.model(name="Listed", source_query="What?", tags=["a"])
    bank.model(name="Other", tags=["b"])
    listed = one.object("list_mental_models", detail="full", tags=["a"])
    assert list(listed) == ["items", "total"] and listed["total"] == 1
    assert set(listed["items"][0]) == {
        "id", "bank_id", "name", "tags", "last_refreshed_at", "last_memory_seen_at", "last_refresh_failed_at",
        "last_full_refreshed_at", "created_at", "is_knowledge_page", "is_stale"}
    assert listed["items"][0]["is_stale"] is False and listed["items"][0]["id"] == made["id"]
    assert len(one.object("list_mental_models", limit=1, offset=1)["items"]) == 1
    metadata = one.object("get_mental_model", mental_model_id=made["id"], detail="metadata")
    content = one.object("get_mental_model", mental_model_id=made["id"], detail="content")
    full = one.object("get_mental_model", mental_model_id=made["id"])
    assert set(content) - set(metadata) == {"source_query", "max_tokens", "trigger", "content"}
    assert set(full) - set(content) == {"reflect_response", "structured_content", "is_stale"}
    assert one.object("get_mental_model", mental_model_id=made["id"], detail="some") == content
    assert full["content"] == made["content"] and full["trigger"] == made["trigger"]


def test_mcp_case_48_a_trigger_is_stored_or_refused_whole(stack, one, bank):
    good = {"name": "M", "source_query": "What?"}
    made = one.object("create_mental_model", **good,
                      trigger={"refresh_cron": "0 3 * * *", "fact_types": ["observation"]})
    trigger = model(bank, made["mental_model_id"])["trigger"]
    assert trigger["refresh_cron"] == "0 3 * * *" and trigger["fact_types"] == ["observation"]
    plain = model(bank, one.object("create_mental_model", **good)["mental_model_id"])["trigger"]
    assert {k for k in plain if trigger[k] != plain[k]} == {"refresh_cron", "fact_types"}
    total = one.object("list_mental_models")["total"]
    for wrong in [{"bogus": 1}, {"refresh_cron": "never"}, {"fact_types": []}, {"mode": "quick"}, [], 5,
                  {"refresh_cron": "0 3 * * *", "refresh_after_consolidation": True},
                  {"tag_groups": [{"xor": []}]}, {"min_refresh_interval_seconds": -1}]:
        assert "'trigger" in one.refused("create_mental_model", **good, trigger=wrong)
    for arguments, words in [
            ({"trigger": {"tags_match": "any"}, "tags_match": "all"},
             "trigger.tags_match='any' conflicts with tags_match='all'; set it in one place"),
            ({"trigger": {"tags_match": None}, "tags_match": "all"}, "trigger.tags_match=None conflicts with tags_match='all'"),
            ({"trigger": {"refresh_after_consolidation": True}, "trigger_refresh_after_consolidation": False},
             "trigger.refresh_after_consolidation=True conflicts with trigger_refresh_after_consolidation=False; "
             "set it in one place"),
            ({"trigger": {"refresh_cron": "0 3 * * *"}, "trigger_refresh_after_consolidation": True},
             "refresh_after_consolidation and refresh_cron are mutually exclusive: a mental model refreshes either "
             "after consolidation or on a cron schedule, not both.")]:
        assert words in one.object("create_mental_model", **good, **arguments)["error"]
    assert one.object("list_mental_models")["total"] == total
    same = one.object("create_mental_model", **good, trigger={"tags_match": "all", "mode": None}, tags_match="all",
                      trigger_refresh_after_consolidation=True)
    trigger = model(bank, same["mental_model_id"])["trigger"]
    assert (trigger["tags_match"], trigger["refresh_after_consolidation"], trigger["mode"]) == ("all", True, "full")


def test_mcp_case_49_update_merges_the_trigger(stack, one, bank):
    made = one.object("create_mental_model", name="M", source_query="What?",
                      trigger={"refresh_cron": "0 3 * * *", "fact_types": ["world"]})["mental_model_id"]

    def update(**arguments):
        r = one.object("update_mental_model", mental_model_id=made, **arguments)
        assert "is_stale" not in r, r
        return r

    operations = one.object("list_operations")["total"]
    t = update(trigger={"refresh_after_consolidation": True})["trigger"]
    assert (t["refresh_cron"], t["refresh_after_consolidation"], t["fact_types"]) == (None, True, ["world"])
    assert update(trigger={"fact_types": None})["trigger"]["fact_types"] is None
    assert update(tags_match="exact")["trigger"]["refresh_after_consolidation"] is True
    r = update(name="New", max_tokens=300, tags=["a"])
    assert (r["name"], r["max_tokens"], r["tags"], r["source_query"]) == ("New", 300, ["a"], "What?")
    assert update() == update(name=None, tags=None, trigger={})
    for arguments, words in [({"name": ""}, "name cannot be empty"), ({"max_tokens": 1}, "max_tokens must be"),
                             ({"source_query": " "}, "source_query cannot"), ({"tags_match": "x"}, "tags_match must")]:
        assert words in one.object("update_mental_model", mental_model_id=made, **arguments)["error"]
    members = [{"fact_types": ["world"]}, {"mode": "delta"}, {"keep_trace": True}, {"budget": "high"}]
    threads = [threading.Thread(target=update, kwargs={"trigger": m}) for m in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t = model(bank, made)["trigger"]
    assert all(t[k] == v for m in members for k, v in m.items())
    assert one.object("list_operations")["total"] == operations     # no refresh was queued
    missing = f"Mental model 'none' not found in bank '{bank.id}'"
    assert one.object("update_mental_model", mental_model_id="none", name="x") == {"error": missing}


def test_fault_57_a_model_with_its_scope_through_mcp(stack, one, bank):
    options = {"tags_match": "any", "mode": "delta", "fact_types": ["world", "observation"], "budget": "high",
               "exclude_mental_models": True, "tag_groups": [{"or": [{"tags": ["a"]}, {"tags": ["b"]}]}],
               "refresh_after_consolidation": True, "recall_max_tokens": 900}
    by_rest = bank.model(name="R", tags=["a"], trigger=options, wait=False)
    made = one.object("create_mental_model", name="M", source_query="What?", tags=["a"], trigger=options)
    assert set(made) == {"mental_model_id", "operation_id", "status", "message"}
    by_mcp = model(bank, made["mental_model_id"])
    assert by_mcp["trigger"] == by_rest["trigger"] and by_mcp["tags"] == ["a"]
    assert "error" in one.object("create_mental_model", name="M", source_query="?", tags_match="some")
    assert one.object("list_mental_models")["total"] == 2
    assert one.object("update_mental_model", mental_model_id=made["mental_model_id"],
                      trigger={"budget": "low"})["trigger"] == {**by_mcp["trigger"], "budget": "low"}
    bank.wait(made["operation_id"])
    again = one.object("refresh_mental_model", mental_model_id=made["mental_model_id"])
    assert again["status"] == "queued" and bank.wait(again["operation_id"])["status"] == "completed"
    gone = {"status": "deleted", "mental_model_id": made["mental_model_id"]}
    assert one.object("delete_mental_model", mental_model_id=made["mental_model_id"]) == gone


# single things

def test_fault_55_bad_ids_are_errors_in_plain_words(stack, one, bank):
    bank.make()
    for tool, key, given, words in [
            ("get_memory", "memory_id", "abc", "Invalid memory_id: 'abc' is not a valid UUID"),
            ("get_memory", "memory_id", str(uuid.UUID(int=1)), f"Memory '{uuid.UUID(int=1)}' not found"),
            ("get_mental_model", "mental_model_id", "' OR 1=1",
             f"Mental model '' OR 1=1' not found in bank '{bank.id}'"),
            ("delete_mental_model", "mental_model_id", "x", f"Mental model 'x' not found in bank '{bank.id}'"),
            ("refresh_mental_model", "mental_model_id", "x", f"Mental model x not found in bank {bank.id}"),
            ("cancel_operation", "operation_id", "x", "Invalid operation_id format: x"),
            ("get_operation", "operation_id", "x", "Invalid operation_id format: x"),
            ("cancel_operation", "operation_id", str(uuid.UUID(int=1)),
             f"Operation {uuid.UUID(int=1)} not found for bank {bank.id}")]:
        assert one.object(tool, **{key: given}) == {"error": words}
        assert one.object("get_bank")["bank_id"] == bank.id


def test_mcp_case_27_an_unknown_operation_is_no_error(stack, one, bank):
    bank.make()
    given = str(uuid.uuid4())
    r = one.object("get_operation", operation_id=given)
    assert r["status"] == "not_found" and r["operation_id"] == r["id"] == given and "error" not in r and len(r) == 9
    assert all(r[k] is None for k in r if k not in ("status", "operation_id", "id"))


def test_operations_are_shown_as_over_http(stack, one, bank):
    chunks_mode(bank)
    op = one.object("retain", content="Shown.")["operation_id"]
    bank.wait(op)
    assert one.object("get_operation", operation_id=op) == bank.operation(op)
    listed = one.object("list_operations", exclude_parents=True, type="retain")
    assert listed == {"total": 1, "operations": ok(bank.get("/operations", exclude_parents=True))["operations"]}
    assert one.object("list_operations", status="failed")["operations"] == []
    text = f"Operation {op} cannot be cancelled: status is 'completed', only 'pending' and 'processing' operations " \
        "can be cancelled"
    assert one.object("cancel_operation", operation_id=op) == {"error": text}


def test_a_waiting_operation_is_cancelled(own_stack):
    s = own_stack(llm=False, worker=False)
    one = Mcp(s.api(), "/mcp/b/")
    op = one.object("retain", content="Never stored.")["operation_id"]
    assert one.object("cancel_operation", operation_id=op) == {
        "success": True, "message": f"Operation {op} cancelled", "operation_id": op, "bank_id": "b"}
    assert one.object("get_operation", operation_id=op)["status"] == "cancelled"


def test_a_memory_is_shown_as_over_http(stack, one, bank):
    chunks_mode(bank).retain("One memory.")
    given = bank.memories()[0]["id"]
    assert one.object("get_memory", memory_id=given) == ok(bank.get("/memories/" + given))


def test_mcp_case_38_control_characters_are_dropped(stack, one, bank):
    chunks_mode(bank)
    body = (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retain","arguments":'
            b'{"content":"a\\ud83d\\ude00b\\ud83dc\\u0000d","tags":"[\\"t\\\\u0000\\"]"}}}')
    r = ok(one.raw(body))["result"]["structuredContent"]
    bank.wait(r["operation_id"])
    m = bank.memories()[0]
    assert (m["text"], m["tags"]) == ("a\U0001F600bcd", ["t"])


def test_mcp_case_56_without_the_database_the_request_fails(own_stack):
    s = own_stack(llm=False, worker=False)
    s.bank("b", make=True)
    one = Mcp(s.api(), "/mcp/b/")
    assert one.object("recall", query="x")["results"] == []
    s.processes["mariadbd"].stop()
    for tool, arguments in [("recall", {"query": "x"}), ("hindsight_search", {"query": "x"}), ("get_bank", {})]:
        answer = one.request("tools/call", {"name": tool, "arguments": arguments}, id=5)
        body = error(answer, 503, -32603)
        assert answer.headers["Retry-After"] == "1" and body["id"] == 5
        assert body["error"] == {"code": -32603, "message": "Internal error"}
    assert ok(one.request("ping"))["result"] == {}
    s.start_mariadb()
    assert one.object("recall", query="x")["results"] == []


def deep(n):
    v = 1
    for _ in range(n):
        v = [{"and": v}]
    return v


HOSTILE = [None, True, -1, 1e308, 2**63 - 1, "", "\x00", "\U0001F4A5" * 2000, [], [[]], {}, deep(20), "[" * 100,
           "' OR 1=1 --", "%00../..", {"a": {"b": []}}, "{\"a\":", ["x"] * 2000, "9" * 400]


@pytest.mark.parametrize("tool", MULTI + LEGACY)
def test_hostile_arguments_never_break_a_reply(stack, mcp, llm, bank, tool):
    bank.make()
    schema = mcp.tools()[tool]["inputSchema"]
    filler = {"query": "x", "content": "x", "context": "x", "name": "x", "source_query": "x", "bank_id": bank.id,
              "mental_model_id": "none", "memory_id": "x", "operation_id": "x"}
    if tool in ("create_mental_model", "create_bank"):
        filler.pop("mental_model_id")
    good = {k: v for k, v in filler.items() if k in schema["properties"]}
    for name in schema["properties"]:
        for value in HOSTILE:
            if name == "bank_id" and tool not in LEGACY and not value:
                continue     # the session's bank, or none: an ordinary call
            answer = mcp.request("tools/call", {"name": tool, "arguments": {**good, name: value}})
            r = ok(answer)["result"]
            assert r["content"][0]["text"] and isinstance(r["isError"], bool)
            if not r["isError"] and tool not in LEGACY:
                json.loads(r["content"][0]["text"])
    assert mcp.object("get_bank", bank_id=bank.id)["bank_id"] == bank.id
