"""An MCP client for the tests: requests to one address, each on its own."""
import json

import pytest

from stack import ok, quote

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
