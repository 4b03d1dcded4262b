"""The document of a refresh as the closing call gives it: contract mental-models 14.1, reflect A12, A14."""
import json

import pytest

from stack import Stack, ok

SECTIONS = [{"heading": "Fruit", "level": 2, "blocks": ["Alice likes green apples."]}]
TEXT = "## Fruit\n\nAlice likes green apples."


@pytest.fixture(scope="module")
def hasty():
    """A server whose worker does not retry."""
    s = Stack(settings={"worker_max_retries": 0, "worker_task_retry_backoff_seconds": 0,
                        "llm_max_retries": 0}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def llm(hasty):
    hasty.llm.reset()
    yield hasty.llm
    hasty.llm.reset()


@pytest.fixture
def fruit(hasty, llm):
    """A bank with one fact and its observation, quiet."""
    bank = hasty.bank()
    bank.make()
    bank.retain("Alice likes green apples.")
    bank.idle()
    llm.reset()
    return bank


def closing(document=None, times=None, finish="tool_calls", raw=None):
    raw = raw or json.dumps({"document": document, "answer_found": True})
    rule = {"scope": "reflect", "when": {"tool_forced": "done"},
            "reply": {"tool_calls": [{"name": "done", "raw_args": raw}], "finish_reason": finish}}
    return rule if times is None else {**rule, "times": times}


def rewrite(reply, times=None):
    rule = {"scope": "reflect", "when": {"tools": False}, "reply": reply}
    return rule if times is None else {**rule, "times": times}


def refreshed(bank, **body):
    """Operation and model after the first refresh."""
    made = ok(bank.post("/mental-models", {"name": "Fruit", "source_query": "What does Alice like?", **body}))
    op = bank.wait(made["operation_id"])
    return op, ok(bank.get("/mental-models/" + made["mental_model_id"]))


FORMS = {
    "object": {"sections": SECTIONS},
    "text": json.dumps({"sections": SECTIONS}),
    "text of text": json.dumps(json.dumps({"sections": SECTIONS})),
    "bare list": SECTIONS,
    "one section": SECTIONS[0],
    "level as text": {"sections": [{**SECTIONS[0], "level": "2"}]},
    "hashes in the heading": {"sections": [{**SECTIONS[0], "heading": " ## Fruit "}]},
    "blank blocks": {"sections": [{**SECTIONS[0], "blocks": [" ", *SECTIONS[0]["blocks"], ""]},
                                  {"heading": "", "level": 2, "blocks": []}]},
}


@pytest.mark.parametrize("form", FORMS)
def test_document_forms_that_are_taken(fruit, llm, form):
    llm.script(closing(FORMS[form]))
    op, model = refreshed(fruit)
    assert op["status"] == "completed" and model["content"].strip() == TEXT
    assert len(llm.calls("reflect")) == 1


def test_document_cut_off_is_repaired_when_the_reply_is_whole(fruit, llm):
    llm.script(closing(raw='{"document": {"sections": [{"heading": "Fruit", "level": 2, "blocks": '
                           '["Alice likes green apples."'))
    op, model = refreshed(fruit)
    assert op["status"] == "completed" and model["content"].strip() == TEXT


FAULTS = {
    "sections no list": ({"sections": "x"}, "sections"),
    "a section no object": ({"sections": ["x"]}, "sections[0]"),
    "blocks no list": ({"sections": [{"heading": "a", "level": 2, "blocks": "x"}]}, "sections[0].blocks"),
    "a block null": ({"sections": [{"heading": "a", "level": 2, "blocks": ["x", None]}]}, "sections[0].blocks[1]"),
    "another shape": ({"title": "x"}, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_refused_document_is_asked_for_once_more(fruit, llm, fault):
    document, named = FAULTS[fault]
    llm.script(closing(document, times=1), closing({"sections": SECTIONS}))
    op, model = refreshed(fruit)
    assert op["status"] == "completed" and model["content"].strip() == TEXT
    first, second = llm.calls("reflect")
    last = second["body"]["messages"][-1]
    assert last["role"] == "tool" and named in json.loads(last["content"])["error"]
    assert second["body"]["messages"][-2]["tool_calls"][0]["id"] == last["tool_call_id"]


def test_document_refused_twice_fails_the_refresh(fruit, llm):
    llm.script(closing({"sections": "x"}))
    op, model = refreshed(fruit)
    assert op["status"] == "failed" and op["result_metadata"]["failure_reason"] == "unexpected_error"
    assert model["content"] == "" and len(llm.calls("reflect")) == 2


def test_document_names_ids_by_their_real_name(fruit, llm):
    invented = "99999999-9999-4999-8999-999999999999"
    llm.script(closing({"sections": [{"heading": "OBS~1", "level": 2, "blocks": [f"See OBS~1, not {invented}."]}]}))
    op, model = refreshed(fruit)
    ident = fruit.memories(type="observation")[0]["id"]
    assert model["content"].strip() == f"## {ident}\n\nSee {ident}, not [unverified id]."


LONG = {"sections": [{"heading": "Fruit", "level": 2,
                      "blocks": ["Alice likes green apples number %d very much." % i for i in range(120)]}]}


def test_long_document_is_shortened_once(fruit, llm):
    llm.script(closing(LONG), rewrite({"text": "```json\n" + json.dumps({"sections": SECTIONS}) + "\n```"}))
    op, model = refreshed(fruit, max_tokens=256)
    assert model["content"].strip() == TEXT
    assert len(llm.calls("reflect")) == 2
    body = llm.calls("reflect")[1]["body"]
    assert "256" in body["messages"][-1]["content"] and "max_tokens" not in body
    assert "document_tokens" not in model["reflect_response"]


def test_shortening_that_is_no_document_is_asked_for_again(fruit, llm):
    llm.script(closing(LONG), rewrite({"text": "Apples."}, times=1), rewrite({"json": {"sections": SECTIONS}}))
    op, model = refreshed(fruit, max_tokens=256)
    assert model["content"].strip() == TEXT and len(llm.calls("reflect")) == 3
    assert llm.calls("reflect")[2]["body"]["messages"][-2] == {"role": "assistant", "content": "Apples."}


@pytest.mark.parametrize("reply,asked", [({"text": "Apples."}, 3), ({"text": ""}, 2), ({"status": 422, "body": "x"}, 2)])
def test_models_case_39_useless_shortening_keeps_the_long_document(fruit, llm, reply, asked):
    llm.script(closing(LONG), rewrite(reply))
    op, model = refreshed(fruit, max_tokens=256, trigger={"keep_trace": True})
    assert any("max_tokens" in w for w in model["reflect_response"]["trace"]["warnings"])
    assert op["status"] == "completed" and "number 119" in model["content"]
    assert len(llm.calls("reflect")) == asked
    assert model["reflect_response"]["document_tokens"] > 256
    assert model["reflect_response"]["document_budget"] == 256


def test_text_of_a_synthesis_becomes_a_document(fruit, llm):
    llm.script({"scope": "reflect", "when": {"tool_forced": "done"}, "reply": {"text": "chat"}}, rewrite({"text": TEXT}))
    op, model = refreshed(fruit)
    assert op["status"] == "completed" and model["content"].strip() == TEXT


def test_done_asks_for_sections_without_unions(fruit, llm):
    refreshed(fruit)
    tool = llm.calls("reflect")[0]["body"]["tools"][0]["function"]["parameters"]
    assert "answer" not in tool["properties"] and "document" in tool["required"]
    assert not any(word in json.dumps(tool) for word in ("anyOf", "oneOf", "allOf"))


def test_calls_of_a_refresh_name_their_scopes(fruit, llm):
    op, model = refreshed(fruit, trigger={"keep_trace": True})
    assert {c["scope"] for c in llm.chats()} == {"reflect_tool_call", "reflect"}
    trace = model["reflect_response"]["trace"]
    assert [c["scope"] for c in trace["llm_calls"]][-1] == "closing_done"
