"""Calls, rules and readings that the reflect tests share."""
import json
import re

import pytest

from stack import ok

TOOLS = ["search_mental_models", "read_mental_models", "search_observations", "recall", "expand",
         "answer_ready", "done"]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def reflect(bank, query="What does Alice like?", status=200, **body):
    return ok(bank.post("/reflect", {"query": query, **body}), status)


def everything(bank, query="What does Alice like?", **body):
    """A reflect that shows its evidence and its trace."""
    return reflect(bank, query, include={"facts": {}, "tool_calls": {}}, **body)


def call(name, **args):
    return {"tool_calls": [{"name": name, "args": args}]}


def calls(*pairs):
    return {"tool_calls": [{"name": name, "args": args} for name, args in pairs]}


def loop(reply, **when):
    """A rule for the loop's calls."""
    return {"scope": "reflect_tool_call", "when": when, "reply": reply}


def closing(reply, **more):
    """A rule for the closing call."""
    return {"scope": "reflect", "when": {"tool_forced": "done"}, "reply": reply, **more}


def final(reply, **more):
    """A rule for the calls without tools: synthesis, rewrite."""
    return {"scope": "reflect", "when": {"tools": False}, "reply": reply, **more}


def offered(c):
    return [t["function"]["name"] for t in c["body"].get("tools") or []]


def loop_calls(llm):
    return llm.calls("reflect_tool_call")


def tool_messages(c):
    """Contents of the tool messages of one request, read."""
    return [json.loads(m["content"]) for m in c["body"]["messages"] if m["role"] == "tool"]


def scopes(answer):
    return [c["scope"] for c in answer["trace"]["llm_calls"]]


def tools_of(answer):
    return [t["tool"] for t in answer["trace"]["tool_calls"]]


def output(answer, tool):
    """The first result of a tool in the trace."""
    return next(t["output"] for t in answer["trace"]["tool_calls"] if t["tool"] == tool)


def memory_texts(answer, kind=None):
    return sorted(m["text"] for m in answer["based_on"]["memories"] if kind in (None, m["type"]))


def texts_in(messages, role):
    return "\n".join(m["content"] for m in messages if m["role"] == role)


def quiet(bank):
    """No observations: only what is retained is there."""
    bank.make()
    ok(bank.patch("/config", {"updates": {"enable_observations": False}}))


@pytest.fixture
def facts(bank):
    """A bank with two facts and nothing else."""
    quiet(bank)
    bank.retain("Alice likes green apples.")
    bank.retain("Bob likes old trains.")
    return bank


def fact_ids(bank):
    return {m["text"]: m["id"] for m in bank.memories()}


@pytest.fixture
def modelled(bank):
    """Facts, consolidated, and a fresh model over them."""
    bank.make()
    bank.retain("Alice likes green apples.")
    bank.idle()
    model = bank.model("Alice", "What does Alice like?")
    assert model["content"] and not model["is_stale"]
    return bank
