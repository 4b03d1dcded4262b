"""Answers against the recorded response schemas of the API (its own document, which is not ours to copy).

HS_API_SHAPE names the recorded OpenAPI document; without it these tests are skipped."""
import json
import os
import pathlib

import pytest

from stack import ok, quote

RECORDED = os.environ.get("HS_API_SHAPE", "")
pytestmark = pytest.mark.skipif(not RECORDED, reason="HS_API_SHAPE names no recorded API document")

# members that the recorded schemas do not declare: ours, or left open there
OURS = {"attachments", "llm_provider", "reflect_search_mental_models_max_tokens"}
# answers in which an absent member is right (reflect: the seed says which)
SPARSE = {"ReflectResponse", "ReflectBasedOn", "ReflectFact", "ReflectTrace", "ReflectToolCall", "ReflectLLMCall",
          "ReflectMentalModel", "ReflectDirective", "TokenUsage"}
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
         "null": type(None)}


class Shapes:
    """The recorded document; faults() lists where a value is not what a schema says."""

    def __init__(self, path):
        self.doc = json.loads(pathlib.Path(path).read_text())

    def of(self, method, path, status="200"):
        answer = self.doc["paths"][path][method]["responses"][status]
        return answer.get("content", {}).get("application/json", {}).get("schema", {})

    def faults(self, schema, value, where="", name=None):
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            return self.faults(self.doc["components"]["schemas"][name], value, where, name)
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            found = [self.faults(s, value, where) for s in choices]
            return min(found, key=lambda f: (len(f), f))
        found = []
        kind = schema.get("type")
        if kind:
            right = isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))
            if not right:
                return [f"{where}: {type(value).__name__} in place of {kind}"]
        if "enum" in schema and value not in schema["enum"]:
            found.append(f"{where}: {value!r} is none of {schema['enum']}")
        if isinstance(value, list) and "items" in schema:
            for i, item in enumerate(value):
                found += self.faults(schema["items"], item, f"{where}[{i}]")
        if isinstance(value, dict):
            found += self.members(schema, value, where, name)
        return found

    def members(self, schema, value, where, name):
        found = []
        declared = schema.get("properties", {})
        others = schema.get("additionalProperties")
        needed = schema.get("required", []) if name in SPARSE else declared
        for key in needed:
            if key not in value:
                found.append(f"{where}.{key}: absent")
        for key, item in value.items():
            if key in declared:
                found += self.faults(declared[key], item, f"{where}.{key}")
            elif isinstance(others, dict):
                found += self.faults(others, item, f"{where}.{key}")
            elif declared and not others and key not in OURS:
                found.append(f"{where}.{key}: unknown")
        return found


@pytest.fixture(scope="module")
def shapes():
    return Shapes(RECORDED)


@pytest.fixture(scope="module")
def filled(stack):
    """A bank with a little of everything."""
    stack.llm.reset()
    bank = stack.bank()
    bank.make(name="Shapes", reflect_mission="Answer shortly.")
    bank.retain("Carol leads the design team. Dave writes code.", document_id="notes", tags=["team"],
                context="minutes", metadata={"k": "v"}, timestamp="2026-03-01T10:00:00Z")
    bank.idle()
    ok(bank.post("/directives", {"name": "Short", "content": "Be short.", "tags": []}))
    model = bank.model("Design", "Who leads the design team?")
    ok(bank.post("/mental-models/" + model["id"] + "/refresh"))
    bank.idle()
    return bank


def ids(bank):
    first = lambda path, key="items", **q: ok(bank.get(path, **q))[key][0]["id"]
    chunk = ok(bank.get("/documents/notes/chunks"))["items"][0]["chunk_id"]
    return {"bank_id": quote(bank.id), "memory_id": first("/memories/list"), "document_id": "notes",
            "chunk_id": quote(chunk), "entity_id": first("/entities"), "directive_id": first("/directives"),
            "mental_model_id": first("/mental-models"), "operation_id": first("/operations", "operations")}


BANK = "/v1/default/banks/{bank_id}"
READS = ["/health/live", "/version", "/v1/default/banks", BANK + "/profile", BANK + "/config", BANK + "/stats",
         BANK + "/directives", BANK + "/directives/{directive_id}", BANK + "/memories/list", BANK + "/documents",
         BANK + "/documents/{document_id}", BANK + "/documents/{document_id}/chunks",
         "/v1/default/chunks/{chunk_id}", BANK + "/entities", BANK + "/entities/{entity_id}", BANK + "/tags",
         BANK + "/mental-models", BANK + "/mental-models/{mental_model_id}", BANK + "/operations",
         BANK + "/operations/{operation_id}"]


@pytest.mark.parametrize("path", READS)
def test_reads_have_the_recorded_shape(shapes, filled, path):
    schema = shapes.of("get", path)
    assert schema
    answer = ok(filled.api.get(path.format(**ids(filled))))
    assert shapes.faults(schema, answer) == []


@pytest.mark.parametrize("detail", ["metadata", "content", "full"])
def test_models_have_the_recorded_shape(shapes, filled, detail):
    model_id = ids(filled)["mental_model_id"]
    one = ok(filled.get("/mental-models/" + model_id, detail=detail))
    assert shapes.faults(shapes.of("get", BANK + "/mental-models/{mental_model_id}"), one) == []
    page = ok(filled.get("/mental-models", detail=detail))
    assert page["items"] and shapes.faults(shapes.of("get", BANK + "/mental-models"), page) == []


@pytest.mark.parametrize("method, path, body", [
    ("put", BANK, {"name": "n"}),
    ("patch", BANK, {"name": "Shapes"}),
    ("patch", BANK + "/config", {"updates": {"retain_mission": "Names."}}),
    ("delete", BANK + "/config", None),
    ("post", BANK + "/directives", {"name": "d", "content": "c"}),
    ("patch", BANK + "/directives/{directive_id}", {"priority": 3}),
    ("post", BANK + "/memories", {"items": [{"content": "Erin sings."}]}),
    ("post", BANK + "/memories", {"items": [{"content": "Frank sings."}], "async": True}),
    ("post", BANK + "/memories", {"items": []}),
    ("post", BANK + "/memories/recall", {"query": "design", "include": {"entities": {}, "chunks": {},
                                                                        "source_facts": {}}}),
    ("post", BANK + "/memories/recall", {"query": "nowhere-to-be-found", "types": ["experience"]}),
    ("post", BANK + "/consolidate", None),
    ("post", BANK + "/reflect", {"query": "Who leads design?"}),
    ("post", BANK + "/reflect", {"query": "Who leads design?", "include": {"facts": {}, "tool_calls": {}}}),
    ("post", BANK + "/mental-models", {"name": "m", "source_query": "q"}),
    ("patch", BANK + "/mental-models/{mental_model_id}", {"name": "renamed"}),
    ("post", BANK + "/mental-models/{mental_model_id}/refresh", None),
    ("post", BANK + "/mental-models/{mental_model_id}/clear", None),
])
def test_writes_answer_the_recorded_shape(shapes, filled, method, path, body):
    schema = shapes.of(method, path)
    assert schema
    answer = ok(filled.api.call(method.upper(), path.format(**ids(filled)), body))
    assert shapes.faults(schema, answer) == []


def test_ends_of_things_answer_the_recorded_shape(shapes, stack, llm):
    bank = stack.bank(make=True)
    llm.script({"scope": "retain_*", "reply": {"status": 401}})
    parent = ok(bank.post("/memories", {"items": [{"content": "x y."}], "async": True}))["operation_id"]
    assert bank.wait(parent)["status"] == "failed"
    child = bank.operation(parent)["child_operations"][0]["operation_id"]
    assert shapes.faults(shapes.of("get", BANK + "/operations/{operation_id}"), bank.operation(child)) == []
    llm.reset()
    llm.script({"scope": "retain_*", "reply": {"hang": True}})
    for method, path, name in (("post", f"/operations/{child}/retry", "/operations/{operation_id}/retry"),
                               ("delete", f"/operations/{child}", "/operations/{operation_id}")):
        answer = ok(bank.call(method.upper(), path))
        assert shapes.faults(shapes.of(method, BANK + name), answer) == []
    llm.reset()
    bank.retain("Gina sings.", document_id="d")
    for path, name in (("/documents/d", "/documents/{document_id}"), ("/memories", "/memories"), ("", "")):
        answer = ok(bank.delete(path))
        assert shapes.faults(shapes.of("delete", BANK + name), answer) == []
