"""The main job with the official Python client: every answer is looked at, a wrong one ends the script."""
import asyncio
import re
import sys
import time

from hindsight_client import Hindsight
from hindsight_client_api.exceptions import ApiException
from hindsight_client_api.models.prompt_preview_request import PromptPreviewRequest
from hindsight_client_api.models.update_mental_model_request import UpdateMentalModelRequest

BANK = "py client"
client = Hindsight(base_url=sys.argv[1])
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
run = loop.run_until_complete


def step(name):
    def decorate(fn):
        fn()
        print("ok", name, flush=True)
    return decorate


def finished(operation_id):
    """Poll as a client does that knows no ?wait=."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        op = run(client.operations.get_operation_status(BANK, operation_id))
        if op.status not in ("pending", "processing"):
            return op
        time.sleep(0.1)
    raise TimeoutError(operation_id)


def refused(status, fn, *args, **kw):
    """fn is refused with this status."""
    try:
        fn(*args, **kw)
    except ApiException as e:
        assert e.status == status, e
        return e.body
    raise AssertionError(f"{fn.__name__} was not refused")


@step("version")
def _():
    v = client.get_version()
    assert re.fullmatch(r"\d+\.\d+\.\d+", v.api_version), v
    assert v.features.observations is True and v.features.mcp is True, v


@step("create bank")
def _():
    made = client.create_bank(BANK, reflect_mission="Answer briefly.", retain_mission="People and instruments.",
                              disposition_empathy=5)
    assert made.bank_id == BANK and made.disposition.empathy == 5, made
    assert [b.bank_id for b in run(client.banks.list_banks(q="PY cli")).banks] == [BANK]


@step("config")
def _():
    assert client.get_bank_config(BANK)["overrides"]["retain_mission"] == "People and instruments."
    assert client.update_bank_config(BANK, retain_chunk_size=2000)["config"]["retain_chunk_size"] == 2000
    client.reset_bank_config(BANK)
    assert client.get_bank_config(BANK)["overrides"] == {}
    client.update_bank_config(BANK, retain_mission="People and instruments.", reflect_mission="Answer briefly.")


@step("retain")
def _():
    kept = client.retain(BANK, "Alice works at the observatory in Potsdam.", context="introduction",
                         tags=["people"], document_id="intro", metadata={"source": "test"},
                         timestamp="2026-03-01T10:00:00Z")
    assert kept.success and kept.items_count == 1 and kept.var_async is False, kept
    batch = client.retain_batch(BANK, [
        {"content": "Alice measures the light of variable stars.", "tags": ["people"]},
        {"content": "The observatory closes on Mondays."},
    ], retain_async=True)
    assert finished(batch.operation_id).status == "completed"
    assert client.list_memories(BANK, type="world").total >= 3


@step("recall")
def _():
    found = client.recall(BANK, "Where does Alice work?", tags=["people"], include_entities=True, include_chunks=True)
    assert any("observatory" in r.text for r in found.results), found
    assert found.chunks, found


@step("reflect")
def _():
    answer = client.reflect(BANK, "Where does Alice work?", include_facts=True)
    assert answer.text and answer.based_on.memories and answer.usage.total_tokens > 0, answer


@step("directives")
def _():
    made = client.create_directive(BANK, "Brevity", "Answer in one sentence.", tags=["people"])
    assert client.get_directive(BANK, made.id).content == "Answer in one sentence."
    assert client.update_directive(BANK, made.id, priority=3).priority == 3
    assert [d.id for d in client.list_directives(BANK).items] == [made.id]
    client.delete_directive(BANK, made.id)
    refused(404, client.get_directive, BANK, made.id)


@step("preview")
def _():
    def preview(operation):
        return run(client.banks.preview_prompt(BANK, PromptPreviewRequest(operation=operation)))

    def mine(shown, field):
        """The one active block of a setting."""
        blocks = [b for m in shown.messages for b in m.blocks if b.var_field == field and b.active]
        assert len(blocks) == 1 and blocks[0].editable and blocks[0].source == "config", blocks
        return blocks[0]

    client.update_bank_config(BANK, observations_mission="Where people work.")
    retain, consolidation, reflect = map(preview, ("retain", "consolidation", "reflect"))
    assert "People and instruments." in mine(retain, "retain_mission").text
    assert "Where people work." in mine(consolidation, "observations_mission").text
    assert mine(reflect, "reflect_mission").value == "Answer briefly."
    for shown in (retain, consolidation, reflect):
        assert [m.role for m in shown.messages] == ["system", "user"] and shown.skipped_reason is None, shown
    assert any(s.var_field == "retain_chunk_size" for s in retain.run_settings), retain.run_settings
    assert retain.response_schema["type"] == "object"
    client.update_bank_config(BANK, retain_extraction_mode="chunks")
    skipped = preview("retain")
    assert skipped.skipped_reason and skipped.response_schema is None, skipped
    client.update_bank_config(BANK, retain_extraction_mode="concise")


@step("mental model")
def _():
    made = client.create_mental_model(BANK, "Alice", "Who is Alice?", tags=["people"], max_tokens=512,
                                      trigger={"refresh_cron": "0 6 * * *"}, id="alice")
    assert made.mental_model_id == "alice", made
    op = finished(made.operation_id)
    assert op.status == "completed", op
    assert op.details.outcome == "content_written", op
    model = client.get_mental_model(BANK, "alice")
    assert "Alice" in model.content and model.is_stale is False, model
    assert model.trigger.refresh_cron == "0 6 * * *" and model.trigger.mode == "full", model.trigger
    assert any(model.reflect_response["based_on"].values()), model
    listed = client.list_mental_models(BANK, tags=["people"])
    assert listed.total == 1 and listed.items[0].content is None, listed


@step("update, refresh, history, clear")
def _():
    client.update_mental_model(BANK, "alice", name="Alice at work", trigger={"mode": "delta"})
    model = client.get_mental_model(BANK, "alice")
    assert (model.name, model.trigger.mode, model.trigger.refresh_cron) == ("Alice at work", "delta", "0 6 * * *")
    run(client.mental_models.update_mental_model(BANK, "alice", UpdateMentalModelRequest(max_tokens=700)))
    assert client.get_mental_model(BANK, "alice").max_tokens == 700
    client.retain(BANK, "Alice was made head of the photometry group.", tags=["people"])
    assert client.get_mental_model(BANK, "alice").is_stale is True
    before = client.get_mental_model(BANK, "alice")
    dry = client.dry_run_refresh_mental_model(BANK, "alice")
    assert dry.effective_mode == "delta" and dry.facts.retrieved["world"] == 1 and dry.trace.llm_calls, dry
    assert client.get_mental_model(BANK, "alice") == before, "a dry run writes nothing"
    assert finished(client.refresh_mental_model(BANK, "alice", mode="full").operation_id).status == "completed"
    assert "photometry" in client.get_mental_model(BANK, "alice").content
    earlier = client.get_mental_model_history(BANK, "alice")[0]["previous_content"]
    assert "observatory" in earlier and "photometry" not in earlier, earlier
    client.clear_mental_model(BANK, "alice")
    assert "photometry" in client.get_mental_model_history(BANK, "alice")[0]["previous_content"]
    assert not client.get_mental_model(BANK, "alice").content


@step("delete")
def _():
    client.delete_mental_model(BANK, "alice")
    assert client.list_mental_models(BANK).total == 0
    client.delete_bank(BANK)
    assert "not found" in refused(404, client.list_memories, BANK)


client.close()
