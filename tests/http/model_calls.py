"""Servers, calls and readings that the tests of mental models share."""
import json

import pytest

from stack import Stack, ok  # noqa: E402

MODEL_KEYS = {"id", "bank_id", "name", "source_query", "content", "tags", "max_tokens", "trigger",
              "last_refreshed_at", "last_memory_seen_at", "last_refresh_failed_at", "last_full_refreshed_at",
              "created_at", "is_knowledge_page", "reflect_response", "is_stale"}
TRIGGER_KEYS = {"mode", "budget", "refresh_after_consolidation", "refresh_cron", "full_refresh_cron",
                "min_refresh_interval_seconds", "fact_types", "exclude_mental_models",
                "exclude_mental_model_ids", "tags_match", "tag_groups", "include_chunks", "recall_max_tokens",
                "recall_chunks_max_tokens", "reflect_search_observations_max_tokens",
                "reflect_search_observations_include_entities", "reflect_search_mental_models_max_tokens",
                "response_schema", "keep_trace"}
TRACE_KEYS = {"recorded_at", "effective_mode", "mode_fallback_reason", "outcome", "tool_calls", "llm_calls",
              "delta_operations", "retraction", "usage", "duration_ms", "warnings"}
BASED_ON = {"world", "experience", "observation", "opinion", "mental-models", "directives"}
PRESERVED = "content_preserved_no_new_facts"
QUERY = "Who leads the design team?"


@pytest.fixture(scope="module")
def hasty():
    """A server whose worker retries a failed operation once, at once."""
    s = Stack(settings={"worker_max_retries": 1, "worker_task_retry_backoff_seconds": 0,
                        "llm_max_retries": 0}).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


@pytest.fixture
def hasty_bank(hasty):
    hasty.llm.reset()
    yield hasty.bank()
    hasty.llm.reset()


@pytest.fixture(scope="module")
def idle():
    """A server without a worker: what is queued stays."""
    s = Stack(worker=False).start()
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


def sent(call):
    """The body of a recorded model call as text."""
    return json.dumps(call["body"], ensure_ascii=False)


def create(bank, name="Model", source_query=QUERY, **body):
    return ok(bank.post("/mental-models", {"name": name, "source_query": source_query, **body}))


def read(bank, model_id, **query):
    return ok(bank.get(f"/mental-models/{model_id}", **query))


def made_model(bank, **body):
    """A model after its first refresh."""
    made = create(bank, **body)
    bank.wait(made["operation_id"])
    return read(bank, made["mental_model_id"])


def refresh(bank, model_id, body=None):
    """The operation of an explicit refresh, once it has ended."""
    return bank.wait(ok(bank.post(f"/mental-models/{model_id}/refresh", body))["operation_id"])


def history(bank, model_id):
    return ok(bank.get(f"/mental-models/{model_id}/history"))


def versions(bank, model_id):
    return [e["previous_content"] for e in history(bank, model_id) if "kind" not in e]


def document(*blocks):
    """A rule: the closing call answers with these blocks."""
    doc = {"sections": [{"heading": "", "level": 2, "blocks": list(blocks)}]}
    return {"when": {"tool_forced": "done"}, "reply": {"value": {"document": doc, "answer_found": True}}}


def done(**args):
    return {"when": {"tool_forced": "done"}, "reply": {"value": args}}


def refused():
    """A rule: every turn of the loop is refused, which no retry of one call heals."""
    return {"scope": "reflect_tool_call", "reply": {"status": 401, "body": {"error": {"message": "no"}}}}


def filled(bank, text="Carol leads the design team."):
    """A bank with a fact and its observation, quiet."""
    bank.retain(text)
    bank.idle()
    return bank


def times(model):
    return {k: v for k, v in model.items() if k.startswith("last_") or k == "created_at"}
