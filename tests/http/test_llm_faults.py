"""Model faults seen from outside: retain with broken, missing, late and refused replies."""
import json
import time

import pytest

from stack import Stack, ok, wait_for

KEY = "test-key-123"
SCOPE = "retain_extract_facts"


def fact(what, **members):
    return {"what": what, "when": "N/A", "where": "N/A", "who": "N/A", "why": "N/A", "fact_kind": "conversation",
            "fact_type": "world", "occurred_start": None, "occurred_end": None, "entities": [],
            "causal_relations": [], **members}


def facts(*list_of_facts):
    return {"json": {"facts": list(list_of_facts)}}


def rule(reply, **more):
    return {"scope": SCOPE, "reply": reply, **more}


def texts(bank):
    return sorted(m["text"] for m in bank.memories() if m["fact_type"] != "observation")


def retain_async(bank, *contents, **item):
    r = ok(bank.post("/memories", {"async": True, "items": [{"content": c, **item} for c in contents]}))
    return r["operation_id"]


def child_of(bank, parent_id):
    operations = ok(bank.get("/operations", limit=100, exclude_parents=True))["operations"]
    return next(o for o in operations if o["task_type"] == "retain")


@pytest.fixture(scope="module")
def patient_stack():
    """Worker retries after no time, so that whole operations can be retried in a test."""
    s = Stack(settings={"worker_max_retries": 3, "worker_task_retry_backoff_seconds": 0}).start()
    yield s
    assert not s.stop()


# fault 16: JSON wrapped in code fences

QUOTED = "She wrote ```make``` in a note {and} smiled"
OBJECT = json.dumps({"facts": [fact(QUOTED)]})


@pytest.mark.parametrize("reply", [
    "```json\n" + OBJECT + "\n```",
    "```\n" + OBJECT + "\n```",
    "```json\n" + OBJECT,
    "Here are the facts:\n" + OBJECT + "\nThat is all.",
    "<think>what to keep?</think>\n```json\n" + OBJECT + "\n```",
], ids=["json-fence", "plain-fence", "no-closing-fence", "prose", "reasoning"])
def test_fault_16_json_in_code_fences_is_read_at_once(bank, llm, reply):
    llm.script(rule({"text": reply}))
    bank.retain("A note about make.")
    assert texts(bank) == [QUOTED] and len(llm.calls(SCOPE)) == 1


def test_fault_16_an_empty_fence_is_asked_again(bank, llm):
    llm.script(rule({"text": "```json\n```"}, times=1), rule(facts(fact("second try"))))
    bank.retain("A note.")
    assert texts(bank) == ["second try"] and len(llm.calls(SCOPE)) == 2


# fault 17: null or empty content

def test_fault_17_null_content_twice_then_facts(bank, llm):
    llm.script(rule({"text": None}, times=2), rule(facts(fact("third try"))))
    bank.retain("A note.")
    assert texts(bank) == ["third try"] and len(llm.calls(SCOPE)) == 3


@pytest.mark.parametrize("content", [None, "", "<think>hm</think>"])
def test_fault_17_nothing_ever_is_a_failure(bank, llm, content):
    llm.script(rule({"text": content}))
    answer = bank.post("/memories", {"items": [{"content": "A note.", "document_id": "d"}]})
    assert answer.status == 500 and "returned nothing" in answer.detail
    assert 1 < len(llm.calls(SCOPE)) <= 16
    assert texts(bank) == [] and bank.get("/documents/d").status == 404


# fault 18: almost-JSON

GOOD = {"facts": [fact("He said yes")]}


@pytest.mark.parametrize("reply,want,calls", [
    (json.dumps(GOOD).replace("]}", ",]}"), "He said yes", 4),
    (json.dumps(GOOD) + "]}", "He said yes", 4),
    (json.dumps(GOOD).replace("said yes", "said\nyes"), "He said\nyes", 4),
    (json.dumps(GOOD).replace('"', "'"), "He said yes", 4),
    (json.dumps(GOOD).replace("said yes", "said \\ud83d yes"), "He said  yes", 1),
], ids=["trailing-comma", "extra-brackets", "raw-newline", "single-quotes", "lone-surrogate"])
def test_fault_18_almost_json_is_repaired_in_the_end(bank, llm, reply, want, calls):
    llm.script(rule({"text": reply}))
    bank.retain("A note.")
    assert texts(bank) == [want] and len(llm.calls(SCOPE)) == calls


def test_fault_18_beyond_repair_is_a_visible_failure(bank, llm):
    llm.script(rule({"text": "I could not find any facts, sorry."}))
    answer = bank.post("/memories", {"items": [{"content": "A note."}]})
    assert answer.status == 500 and "Fact extraction failed" in answer.detail
    assert texts(bank) == [] and len(llm.calls(SCOPE)) == 4


# fault 24: errors that will not heal

@pytest.mark.parametrize("reply", [
    {"status": 401, "body": {"error": {"message": "bad key " + KEY}}}, {"status": 403}, {"status": 404},
    {"status": 400, "body": {"error": {"message": "context length exceeded"}}},
], ids=["401", "403", "404", "overflow"])
def test_fault_24_one_call_for_what_will_not_heal(stack, bank, llm, reply):
    llm.script(rule(reply))
    answer = bank.post("/memories", {"items": [{"content": "A note."}]})
    assert answer.status == 500 and len(llm.calls(SCOPE)) == 1
    assert texts(bank) == []
    for text in [answer.body.decode()] + [p.log_text() for p in stack.processes.values() if p.name != "llm"]:
        assert KEY not in text and llm.base_url not in text


@pytest.mark.parametrize("status", [401, 403])
def test_fault_24_an_operation_with_bad_credentials_fails_at_once(bank, llm, status):
    llm.script(rule({"status": status}))
    parent = retain_async(bank, "A note.")
    assert bank.wait(parent)["status"] == "failed"
    child = child_of(bank, parent)
    assert child["status"] == "failed" and child["retry_count"] == 0 and str(status) in child["error_message"]
    assert KEY not in child["error_message"] and len(llm.calls(SCOPE)) == 1


# fault 29: temporary failure

def test_fault_29_temporary_failure_is_retried_by_the_worker(patient_stack):
    llm, bank = patient_stack.llm, patient_stack.bank()
    llm.reset()
    llm.script(rule({"status": 503}, times=4))
    parent = retain_async(bank, "Ana likes tea.")
    assert bank.wait(parent, 120)["status"] == "completed"
    assert child_of(bank, parent)["retry_count"] == 1
    assert texts(bank) == ["Ana likes tea."] and len(llm.calls(SCOPE)) == 5


def test_fault_29_lasting_failure_fails_and_can_be_retried(patient_stack):
    llm, bank = patient_stack.llm, patient_stack.bank()
    llm.reset()
    llm.script(rule({"status": 503}))
    parent = retain_async(bank, "Ana likes tea.")
    assert bank.wait(parent, 120)["status"] == "failed"
    child = child_of(bank, parent)
    assert child["status"] == "failed" and "503" in child["error_message"] and texts(bank) == []
    llm.reset()
    ok(bank.post(f"/operations/{child['id']}/retry"))
    assert bank.wait(child["id"], 60)["status"] == "completed"
    assert texts(bank) == ["Ana likes tea."] and len(llm.calls(SCOPE)) == 1


# retain cases

@pytest.mark.parametrize("reply", [{"json": {"facts": "x"}}, {"json": {"answer": 1}}, {"json": ["x"]}, {"json": 7}])
def test_retain_case_11_wrong_shapes_are_an_error(bank, llm, reply):
    llm.script(rule(reply))
    answer = bank.post("/memories", {"items": [{"content": "A note.", "document_id": "d"}]})
    assert answer.status == 500 and "no top-level 'facts' list after 4 attempts" in answer.detail
    assert len(llm.calls(SCOPE)) == 4 and bank.get("/documents/d").status == 404


def test_retain_case_11_a_bare_array_is_accepted(bank, llm):
    llm.script(rule({"json": [fact("one"), fact("two")]}))
    bank.retain("A note.")
    assert texts(bank) == ["one", "two"] and len(llm.calls(SCOPE)) == 1


def test_no_facts_is_a_valid_answer(bank, llm):
    llm.script(rule(facts()))
    bank.retain("Hello there!", document_id="d")
    assert texts(bank) == [] and ok(bank.get("/documents/d"))["memory_unit_count"] == 0
    assert len(llm.calls(SCOPE)) == 1


def test_all_facts_malformed_is_an_error(bank, llm):
    llm.script(rule({"json": {"facts": [{"statement": "x"}, 7]}}))
    answer = bank.post("/memories", {"items": [{"content": "A note."}]})
    assert answer.status == 500 and "all 2 facts returned by the LLM were unusable" in answer.detail
    second = llm.calls(SCOPE)[1]["body"]["messages"]
    assert len(second) == 3 and "statement" in second[2]["content"] and "what" in second[2]["content"]


def test_a_few_malformed_facts_are_dropped_in_the_end(bank, llm):
    llm.script(rule({"json": {"facts": [fact("good"), {"statement": "x"}]}}))
    bank.retain("A note.")
    assert texts(bank) == ["good"] and len(llm.calls(SCOPE)) == 4


def test_retain_case_12_entities_in_objects(bank, llm):
    llm.script(rule(facts(fact("Ana meets Bo", entities=[{"text": "Ana"}, "Bo"]), fact("rain", entities=None))))
    bank.retain("A note.")
    names = {e["canonical_name"] for e in ok(bank.get("/entities"))["items"]}
    assert names == {"Ana", "Bo"} and texts(bank) == ["Ana meets Bo", "rain"]


def test_retain_case_13_causes_that_point_nowhere_are_ignored(stack, bank, llm):
    def cause(target, kind="caused_by"):
        return [{"target_index": target, "relation_type": kind}]

    llm.script(rule(facts(fact("a", causal_relations=cause(0)), fact("b", causal_relations=cause(5)),
                          fact("c", causal_relations=cause(-1)), fact("d", causal_relations=cause(0, "causes")),
                          fact("effect", causal_relations=cause(1)))))
    bank.retain("A note.")
    rows = stack.sql("SELECT f.text AS f, t.text AS t FROM memory_links l JOIN banks b ON b.bank_no=l.bank_no "
                     "JOIN memory_units f ON f.unit_no=l.from_no AND f.bank_no=l.bank_no "
                     "JOIN memory_units t ON t.unit_no=l.to_no AND t.bank_no=l.bank_no "
                     "WHERE b.bank_id=%s AND l.link_type='caused_by'", bank.id)
    assert [(r["f"], r["t"]) for r in rows] == [("effect", "b")] and texts(bank) == ["a", "b", "c", "d", "effect"]


def test_retain_case_60_a_reply_without_facts_is_asked_again(bank, llm):
    llm.script(rule({"json": {"result": []}}, times=1), rule(facts(fact("right"))))
    bank.retain("A note.")
    first, second = (c["body"]["messages"] for c in llm.calls(SCOPE))
    assert texts(bank) == ["right"] and second[:2] == first
    assert len(second) == 3 and second[2]["role"] == "user" and "facts" in second[2]["content"]


SENTENCE = "The committee of the old town met and wrote down what it saw. "


def test_retain_case_61_a_chunk_that_is_always_cut_off(bank, llm):
    ok(bank.put("", {"name": bank.id}))
    ok(bank.patch("/config", {"updates": {"retain_chunk_size": 400}}))
    llm.script(rule({"text": "{", "finish_reason": "length"}, when={"contains": "BROKEN"}))
    content = (SENTENCE * 6).strip() + "\n\n" + "BROKEN " + (SENTENCE * 5).strip() + "\n\nA last part."
    parent = retain_async(bank, content)
    operation = bank.wait(parent)
    assert operation["status"] == "completed"
    assert operation["result_metadata"]["extraction_errors_count"] == 1
    assert texts(bank) and not any("BROKEN" in t for t in texts(bank))


def test_retain_case_61_every_chunk_cut_off_is_a_failure(bank, llm):
    llm.script(rule({"text": "{", "finish_reason": "length"}))
    answer = bank.post("/memories", {"items": [{"content": "A short note."}]})
    assert answer.status == 500 and len(llm.calls(SCOPE)) == 1 and texts(bank) == []


def test_a_reply_that_was_cut_off_is_answered_by_halves(bank, llm):
    llm.script(rule({"text": "{", "finish_reason": "length"}, times=1))
    content = ("First half begins. " + SENTENCE * 8 + "Second half begins. " + SENTENCE * 8).strip()
    bank.retain(content)
    calls = [c["body"]["messages"][-1]["content"].split("## TEXT\n")[1] for c in llm.calls(SCOPE)]
    assert len(calls) == 3 and calls[0] == content
    assert (calls[1] + " " + calls[2]) == calls[0] and len(texts(bank)) == 2


def test_json_turns_are_halved_as_turns(bank, llm):
    turns = json.dumps([{"role": "user", "content": f"turn {i} " + "x" * 200} for i in range(6)])
    llm.script(rule({"text": "{", "finish_reason": "length"}, times=1))
    bank.retain(turns)
    halves = [json.loads(c["body"]["messages"][-1]["content"].split("## TEXT\n")[1]) for c in llm.calls(SCOPE)[1:]]
    assert [len(h) for h in halves] == [3, 3]


def test_reflect_case_64_provider_none(own_stack):
    s = own_stack(settings={"llm_provider": "none"})
    bank = s.bank()
    assert ok(bank.post("/memories", {"items": [{"content": "Ana keeps bees."}]}))["usage"]["total_tokens"] == 0
    assert texts(bank) == ["Ana keeps bees."]
    assert bank.recall("bees")["results"][0]["text"] == "Ana keeps bees."
    answer = bank.post("/reflect", {"query": "bees?"})
    assert answer.status == 400 and "none" in answer.detail
    assert s.llm.calls() == []


def test_reflect_case_65_special_tokens_are_ordinary_text(bank, llm):
    bank.retain("The marker <|endoftext|> stands in line one.")
    assert texts(bank) == ["The marker <|endoftext|> stands in line one."]
    assert bank.recall("<|endoftext|> marker")["results"]
    answer = bank.api.raw("POST", bank.path + "/reflect", b'{"query":"lone \\ud83d half"}',
                          {"Content-Type": "application/json"})
    assert answer.status == 200


def test_every_request_names_its_operation(bank, llm):
    bank.retain("Ana keeps bees. Bo sails.")
    bank.idle()
    ok(bank.post("/reflect", {"query": "What does Ana keep?"}))
    scopes = {c["headers"].get("x-hindsight-operation") for c in llm.chats()}
    assert scopes == {"retain_extract_facts", "consolidation", "reflect_tool_call", "reflect"}
    for c in llm.chats():
        assert bank.id not in json.dumps(c["headers"]) and c["headers"]["authorization"] == "Bearer " + KEY


def test_missions_stand_where_they_belong(bank, llm):
    missions = {"retain_mission": "RETAIN {x} 100%", "observations_mission": "OBSERVE {x} 100%",
                "reflect_mission": "REFLECT {x} 100%"}
    bank.make(**{})
    ok(bank.patch("/config", {"updates": missions}))
    bank.retain("Ana keeps bees.")
    bank.idle()
    ok(bank.post("/reflect", {"query": "What does Ana keep?"}))

    def messages(scope):
        return llm.calls(scope)[0]["body"]["messages"]

    system, user = messages("retain_extract_facts")
    assert user["content"].startswith("FOCUS") and "\n=====\nRETAIN {x} 100%\n=====\n" in user["content"]
    assert "RETAIN {x}" not in system["content"]
    system, user = messages("consolidation")
    assert user["content"].startswith("## MISSION\nOBSERVE {x} 100%\n\n") and "OBSERVE {x}" not in system["content"]
    for scope in ("reflect_tool_call", "reflect"):
        texts_of = [m["content"] or "" for m in messages(scope)]
        assert texts_of[0].count("REFLECT {x} 100%") == 1
        assert not any("REFLECT {x}" in t for t in texts_of[1:])


def test_a_sync_retain_under_a_hanging_model_ends(own_stack):
    s = own_stack(settings={"llm_timeout": 0.5, "llm_max_retries": 1})
    bank = s.bank()
    s.llm.script(rule({"hang": True}))
    started = time.monotonic()
    answer = bank.post("/memories", {"items": [{"content": "A note.", "document_id": "d"}]})
    assert answer.status == 500 and time.monotonic() - started < 8
    assert texts(bank) == [] and bank.get("/documents/d").status == 404


def test_quota_with_a_reset_time_parks_the_operation(bank, llm):
    llm.script(rule({"status": 429, "headers": {"Retry-After": "7200"}}, times=1))
    parent = retain_async(bank, "Ana likes tea.")
    child = wait_for("a parked operation", lambda: (lambda o: o if o["next_retry_at"] else None)(child_of(bank, parent)))
    assert child["status"] == "pending" and child["retry_count"] == 0 and not child["error_message"]
    assert len(llm.calls(SCOPE)) == 1
