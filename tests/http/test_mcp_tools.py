"""MCP: what the tools do (contract mcp, cases 21-27, 31, 32, 38, 48, 49, 56; faults 54, 55, 57)."""
import json
import threading
import uuid

import pytest

from mcp_client import LEGACY, MULTI, Mcp, chunks_mode, error, exists, mcp, one, texts  # noqa: F401
from stack import ok


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
    offered = multi.tools()
    assert set(MULTI) <= set(offered)
    for name in tools:
        assert "bank_id" in offered[name]["inputSchema"]["properties"]
        assert "bank_id" not in offered[name]["inputSchema"].get("required", [])
    by_path = Mcp(api, "/mcp/" + alice.id, X_Bank_Id=bob.id).object("recall", query="tea")["results"]
    assert [f["text"] for f in by_path] == ["Alice likes tea."]
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
    assert "not a valid UUID" in one.object("get_memory", memory_id="nonexistent")["error"]


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
