"""MCP over HTTP: addresses, keys, frames, arguments, the list of tools (contract mcp, cases 1-20, 55; faults
52-54, 56). The tools themselves are in test_mcp_tools.py."""
import json
import time
import uuid

import pytest

from mcp_client import HANDSHAKE, LEGACY, MULTI, SINGLE, Mcp, chunks_mode, error, exists, mcp, one, texts  # noqa: F401
from stack import Bank, ok, quote
from test_cgi import answer as cgi_answer, run as cgi_run


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
    answer = mcp.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (answer.status, answer.body) == (202, b"")
    assert mcp.result("initialize", {"protocolVersion": "1999-01-01"})["protocolVersion"] in HANDSHAKE
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
