"""Reflect: the loop, its errors and its ends; contract reflect A11, A12, faults 16, 17, 19, 20, 26."""
import pytest

from reflect_calls import (TOOLS, reflect, everything, call, calls, loop, closing, final, offered,
                           loop_calls, tool_messages, scopes, tools_of, output, memory_texts, texts_in,
                           facts, modelled)  # noqa: F401
from stack import ok

# ---- the loop ----

def test_reflect_case_08_only_observations(facts, llm):
    answer = everything(facts, fact_types=["observation"])
    assert tools_of(answer) == ["search_observations"]
    for c in loop_calls(llm):
        assert "recall" not in offered(c)
        assert "recall" not in texts_in(c["body"]["messages"], "system")
    assert answer["based_on"]["memories"] == []


def test_reflect_fact_types_world_hides_observations(facts, llm):
    answer = everything(facts, fact_types=["world"])
    assert tools_of(answer) == ["recall"]
    assert all("search_observations" not in offered(c) for c in loop_calls(llm))
    assert {m["type"] for m in answer["based_on"]["memories"]} == {"world"}


def forced(llm):
    return [offered(c)[0] if len(offered(c)) == 1 else "*" for c in loop_calls(llm)]


def test_reflect_case_09_forced_order_with_models(modelled, llm):
    llm.reset()
    reflect(modelled, budget="high")
    assert forced(llm) == ["search_mental_models", "search_observations", "recall", "*"]
    assert offered(loop_calls(llm)[-1]) == TOOLS
    assert all(c["body"]["tool_choice"] == "required" for c in loop_calls(llm) + llm.calls("reflect"))
    assert [offered(c) for c in llm.calls("reflect")] == [["done"]]
    assert llm.calls("reflect")[0]["body"]["messages"][-1]["role"] == "user"


def test_reflect_case_10_fresh_models_release_the_forcing(modelled, llm):
    llm.reset()
    answer = everything(modelled)
    assert forced(llm) == ["search_mental_models", "*"]
    assert tool_messages(loop_calls(llm)[1])[0]["guidance"]
    assert "guidance" not in output(answer, "search_mental_models")
    assert [m["text"].split(":")[0] for m in answer["based_on"]["mental_models"]] == ["Alice"]
    assert answer["based_on"]["mental_models"][0]["context"] == "concept (structural)"
    modelled.retain("Alice also likes plums.")
    llm.reset()
    result = output(everything(modelled), "search_mental_models")["mental_models"][0]
    assert result["is_stale"] is True and result["staleness_reason"]
    assert forced(llm)[:3] == ["search_mental_models", "search_observations", "recall"]


def test_reflect_case_11_no_model_found_does_not_release(modelled, llm):
    ident = ok(modelled.get("/mental-models"))["items"][0]["id"]
    llm.reset()
    answer = everything(modelled, exclude_mental_model_ids=[ident])
    assert output(answer, "search_mental_models")["mental_models"] == []
    assert forced(llm)[:3] == ["search_mental_models", "search_observations", "recall"]
    llm.reset()
    reflect(modelled, exclude_mental_models=True)
    assert all("search_mental_models" not in offered(c) for c in loop_calls(llm))


@pytest.mark.parametrize("name", ["functions.done", "call=functions.done", "call=done", "done<|channel|>commentary"])
def test_reflect_case_12_names_of_done(facts, llm, name):
    llm.script(loop(call(name, answer="early", answer_found=True), n=3),
               closing(call(name, answer="The end.", answer_found=True)))
    assert reflect(facts)["text"] == "The end."
    assert len(loop_calls(llm)) == 3


def test_reflect_case_13_functions_recall_is_recall(facts, llm):
    llm.script(loop(call("functions.recall", query="apples", reason="r"), tool_forced="recall"))
    answer = everything(facts)
    assert tools_of(answer) == ["search_observations", "recall"]
    assert "Alice likes green apples." in memory_texts(answer)


def test_reflect_case_14_done_first_is_refused(facts, llm):
    llm.script(loop(call("done", answer="I know it all.", answer_found=True), n=1))
    answer = everything(facts)
    assert "I know it all." not in answer["text"]
    second = loop_calls(llm)[1]
    assert tool_messages(second)[0]["error"]
    assert second["body"]["messages"][-2]["tool_calls"][0]["function"]["name"] == "done"


def test_reflect_case_14_only_done_ever_ends_in_synthesis(facts, llm):
    llm.script(loop(call("done", answer="Invented.", answer_found=True)), final({"text": "Written at the end."}))
    answer = everything(facts)
    assert answer["text"] == "Written at the end."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "agent_4", "final"]
    assert answer["trace"]["tool_calls"] == []


def test_reflect_case_15_done_beside_recall(facts, llm):
    llm.script(loop(calls(("recall", {"query": "x", "reason": "r"}), ("done", {"answer": "First", "answer_found": True})),
                    n=2),
               closing(call("done", answer="Second", answer_found=True)))
    answer = everything(facts)
    assert answer["text"] == "Second"
    assert tools_of(answer) == ["search_observations"]


def test_reflect_case_16_answer_ready_beside_recall(facts, llm):
    llm.script(loop(calls(("answer_ready", {"answer_found": True}), ("recall", {"query": "apples", "reason": "r"})), n=2))
    answer = everything(facts)
    assert tools_of(answer) == ["search_observations", "recall"]
    assert memory_texts(answer)


def test_reflect_case_17_nothing_found_forces_one_recall(modelled, llm):
    llm.reset()
    llm.script(loop(call("answer_ready", answer_found="false"), tools_include="answer_ready"))
    answer = everything(modelled)
    assert forced(llm) == ["search_mental_models", "*", "recall", "*"]
    assert scopes(answer)[-1] == "closing_done"
    llm.reset()
    llm.script(loop(call("done", answer="?", answer_found=False), tools_include="answer_ready"))
    everything(modelled)
    assert forced(llm) == ["search_mental_models", "*", "recall", "*"]
    assert tool_messages(loop_calls(llm)[2])[-1]["error"]


def test_reflect_case_18_unknown_tools_only(facts, llm):
    llm.script(loop(call("lookup", query="x")), final({"text": "Nothing."}))
    answer = everything(facts)
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "agent_4", "final"]
    assert answer["trace"]["tool_calls"] == []
    assert all(m["error"] for m in tool_messages(loop_calls(llm)[3]))


def test_reflect_case_19_text_first_is_a_failure(facts, llm):
    llm.script(loop({"text": "Hello! " + "x" * 600}))
    answer = facts.post("/reflect", {"query": "hi"})
    assert answer.status == 500
    assert "search_observations" in answer.detail and "stop" in answer.detail and "tool" in answer.detail
    assert "Hello!" in answer.detail and answer.detail.endswith("...")
    assert len(llm.chats()) - len(llm.calls("retain_extract_facts")) == 1


def test_fault_19_text_in_place_of_a_tool(facts, llm):
    llm.script({"scope": "reflect*", "reply": {"text": "Hello!", "tool_calls": []}})
    answer = facts.post("/reflect", {"query": "hi", "include": {"facts": {}}})
    assert answer.status == 500 and "tool" in answer.detail


def test_reflect_case_19_text_at_a_forced_step_is_asked_again(facts, llm):
    llm.script({**loop({"text": "Hmm."}, n=2)})
    answer = everything(facts)
    assert forced(llm)[:3] == ["search_observations", "recall", "recall"]
    assert tools_of(answer) == ["search_observations", "recall"]


def test_reflect_case_19_text_in_a_free_turn_closes(facts, llm):
    llm.script(loop({"text": "I am done."}, n=3))
    answer = everything(facts)
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "closing_done"]
    assert "I am done." not in answer["text"]


def test_reflect_case_24_text_in_the_closing_call_too(facts, llm):
    llm.script(closing({"text": "chat"}), final({"text": "From the data."}))
    answer = everything(facts)
    assert answer["text"] == "From the data."
    assert scopes(answer)[-2:] == ["closing_done", "final"]
    data = texts_in(llm.calls("reflect")[-1]["body"]["messages"], "user")
    assert "Alice likes green apples." in data
    assert memory_texts(answer)


def test_reflect_case_24_failed_closing_call(facts, llm):
    llm.script(closing({"status": 500, "body": "no"}), final({"text": "From the data."}))
    answer = everything(facts)
    assert answer["text"] == "From the data."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3", "final"]


def test_fault_20_text_together_with_a_tool_call(facts, llm):
    llm.script(loop({"text": "Let me look", **call("search_observations", query="a", reason="r")}, n=1),
               loop({"text": "Let me look", **call("recall", query="apples", reason="r")}, n=2),
               loop({"text": "So", **call("done", answer="First", answer_found=True)}, n=3),
               closing({"text": "Here it is", **call("done", answer="Answer", answer_found=True)}))
    answer = everything(facts)
    assert answer["text"] == "Answer"
    assert tools_of(answer) == ["search_observations", "recall"]
    assistant = [m for m in loop_calls(llm)[1]["body"]["messages"] if m["role"] == "assistant"]
    assert assistant[0]["tool_calls"]


def test_fault_26_endless_tool_use(facts, llm):
    again = call("recall", query="apples", reason="r")
    llm.script(loop(again), closing(again), final({"text": "It ends."}))
    answer = everything(facts)
    assert answer["text"] == "It ends."
    assert len(loop_calls(llm)) == 4
    assert [offered(c) for c in llm.calls("reflect")] == [["done"], []]
    llm.reset()
    llm.script(loop(again), closing(again), final({"text": ""}))
    assert facts.post("/reflect", {"query": "q"}).status == 500


def test_reflect_call_ids_are_unique(facts, llm):
    def same(name, **args):
        return {"tool_calls": [{"name": name, "args": args, "id": ""}, {"name": name, "args": args, "id": "x"},
                               {"name": name, "args": args, "id": "x"}]}
    llm.script(loop(same("search_observations", query="a", reason="r"), n=1),
               loop(same("recall", query="a", reason="r"), n=2))
    reflect(facts)
    messages = loop_calls(llm)[2]["body"]["messages"]
    asked = [c["id"] for m in messages for c in m.get("tool_calls") or []]
    assert len(asked) == len(set(asked)) == 6
    assert asked == [m["tool_call_id"] for m in messages if m["role"] == "tool"]


# ---- errors ----

def test_reflect_case_21_one_failed_call_asks_the_same_tool_again(facts, llm):
    llm.script({**loop({"status": 500, "body": "x"}), "times": 4})
    answer = everything(facts)
    assert scopes(answer)[:2] == ["agent_1_err", "agent_2"]
    assert set(forced(llm)[:5]) == {"search_observations"}


def test_reflect_case_21_two_failed_calls_in_a_row(facts, llm):
    llm.script(loop({"status": 500, "body": "x"}, n=list(range(3, 30))))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(loop_calls(llm)) == 2 + 8
    assert llm.calls("reflect") == []


@pytest.mark.parametrize("status,count", [(401, 1), (403, 1), (404, 1), (400, 1), (405, 2), (413, 2), (422, 2)])
def test_reflect_case_21_refusals(facts, llm, status, count):
    llm.script(loop({"status": status, "body": {"error": {"message": "no such thing"}}}))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500
    assert len(loop_calls(llm)) == count
    assert "127.0.0.1" not in answer.detail and "test-key" not in answer.detail


def test_reflect_case_21_content_policy(facts, llm):
    llm.script(loop({"text": None, "finish_reason": "content_filter"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(loop_calls(llm)) == 1


def test_reflect_case_21_refused_in_the_closing_call(facts, llm):
    llm.script(closing({"status": 401, "body": "x"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(llm.calls("reflect")) == 1


def test_reflect_case_22_overflow_goes_to_the_synthesis(facts, llm):
    llm.script(loop({"status": 400, "body": {"error": {"message": "This model's maximum context length is 5"}}},
                    n=[3, 4, 5, 6]), final({"text": "Short of room."}))
    answer = everything(facts)
    assert answer["text"] == "Short of room."
    assert scopes(answer) == ["agent_1", "agent_2", "agent_3_err", "final"]
    assert len(loop_calls(llm)) == 3


@pytest.mark.parametrize("args", [{"answer": " \n", "answer_found": True}, {"answer_found": True},
                                  {"answer": 7, "answer_found": True}, {"answer": None}])
def test_reflect_case_23_no_answer(facts, llm, args):
    llm.script(closing(call("done", **args)))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and "answer" in answer.detail
    assert len(llm.calls("reflect")) == 1


CUT = '{"answer": "The apples are gree'


def test_reflect_case_23_cut_arguments_are_repaired(facts, llm):
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "tool_calls"}))
    assert reflect(facts)["text"] == "The apples are gree"
    assert len(llm.calls("reflect")) == 1


def test_reflect_case_23_cut_off_by_length_is_asked_once_more(facts, llm):
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "length"}, times=1))
    answer = everything(facts)
    assert "Alice likes green apples." in answer["text"]
    assert scopes(answer)[-2:] == ["closing_done", "closing_done"]
    assert tool_messages(llm.calls("reflect")[1])[-1]["error"]
    llm.reset()
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": CUT}], "finish_reason": "length"}))
    assert facts.post("/reflect", {"query": "q"}).status == 500
    assert len(llm.calls("reflect")) == 2


def test_fault_17_empty_replies_fail_with_a_reason(facts, llm):
    llm.script({"scope": "reflect*", "reply": {"text": None}})
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and answer.detail
    assert len(llm.chats()) < 20
    llm.reset()
    llm.script(closing({"text": ""}), final({"text": None}))
    answer = facts.post("/reflect", {"query": "q"})
    assert answer.status == 500 and answer.detail


def test_fault_16_fenced_arguments(facts, llm):
    fenced = '```json\n{"answer": "Quoted ``` inside.", "answer_found": true}\n```'
    llm.script(closing({"tool_calls": [{"name": "done", "raw_args": fenced}], "finish_reason": "stop"}))
    assert reflect(facts)["text"] == "Quoted ``` inside."
