"""Prompt preview: contract reflect part B, cases 46-55 and 64; faults 49, 50; what is shown is what is sent."""
import itertools
import json
import re
import subprocess

import pytest

from stack import ok, program_path

NOW = "2026-03-04T05:06:07Z"
CHOICES = ["concise", "verbose", "custom", "verbatim", "chunks"]
BLOCK_KEYS = {"text", "source", "field", "section", "heading", "active", "value", "kind", "choices", "editable"}
ANSWER_KEYS = {"messages", "strategy", "strategies", "run_settings", "response_schema", "skipped_reason", "warnings"}
OPERATIONS = ["retain", "consolidation", "reflect"]
NASTY = "  Bills: 100 %s of {users} {{and}} \"quotes\" %n \\ 😀\n=====\n## NO HEADING\nlast"
LABELS = [{"key": "area", "description": "where {it} is", "values": [{"value": "north"}, {"value": "south"}]},
          {"key": "themes", "type": "multi-values", "values": [{"value": "a"}, {"value": "b"}]},
          {"key": "note", "free_values": True, "optional": False},
          {"key": "open", "type": "multi-text"},
          {"key": "place", "type": "map", "fields": {"city": {}, "kind": {"type": "value", "values": [{"value": "x"}]}}}]
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def configure(bank, **updates):
    ok(bank.patch("/config", {"updates": updates}))


def preview(bank, operation="retain", **body):
    """A preview whose general rules were checked."""
    p = ok(bank.post("/prompts/preview", {"operation": operation, **body}))
    check(p, operation)
    return p


def check(p, operation):
    assert set(p) == ANSWER_KEYS
    assert [m["role"] for m in p["messages"]] == ["system", "user"]
    for b in itertools.chain(*[m["blocks"] for m in p["messages"]]):
        assert set(b) == BLOCK_KEYS
        assert b["active"] == (b["text"] != ""), b
        assert b["active"] or b["source"] == ("builtin" if b["section"] else "config"), b
        assert (b["choices"] == CHOICES) == (b["kind"] == "choice") == (b["field"] == "retain_extraction_mode"), b
        assert (b["choices"] is None) == (b["kind"] != "choice")
        assert b["value"] is None or isinstance(b["value"], str)
        assert not (b["section"] and (b["field"] or b["editable"] or b["source"] == "config")), b
        assert b["source"] == "builtin" or b["field"] and not b["heading"], b
    assert [w for w in p["warnings"] if set(w) != {"code", "field", "message"} or not w["message"].endswith(".")] == []
    if operation != "retain":
        assert p["strategy"] is None and p["strategies"] == [] and p["run_settings"] == []
        assert p["response_schema"] is None and p["skipped_reason"] is None


def blocks(p, role, **want):
    found = p["messages"][0 if role == "system" else 1]["blocks"]
    return [b for b in found if all(b[k] == v for k, v in want.items())]


def only(p, role, **want):
    found = blocks(p, role, **want)
    assert len(found) == 1, found
    return found[0]


def joined(p):
    """The messages that the active blocks make."""
    return [{"role": m["role"], "content": "".join(b["text"] for b in m["blocks"] if b["active"])}
            for m in p["messages"]]


def undated(p):
    """The messages without the time of the preview."""
    return [re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+\+00:00", "NOW", m["content"]) for m in joined(p)]


def place(p, role, block):
    """The text in front of a block."""
    found = blocks(p, role)
    return "".join(b["text"] for b in found[:found.index(block)])


def codes(p):
    return [(w["code"], w["field"]) for w in p["warnings"]]


@pytest.fixture
def made(bank):
    bank.make()
    return bank


# ---- the preview is what is sent ----

SERVERS = [
    {},
    {"llm_strict_schema": True},
    {"llm_output_language": "Latin %s", "retain_optional_fact_dimensions": True},
    {"llm_output_language": "Latin", "llm_strict_schema": True, "retain_extract_causal_links": False,
     "retain_optional_fact_dimensions": True},
    {"llm_openai_compatible_json_mode": False, "retain_extract_causal_links": False},
]


@pytest.fixture(scope="module", params=SERVERS, ids=lambda s: ",".join(s) or "defaults")
def pinned(request):
    from stack import Stack
    s = Stack(settings=request.param, env={"HINDSIGHT_TEST_NOW": NOW}).start()
    s.given = request.param
    yield s
    reports = s.stop()
    assert not reports, "\n".join(reports)


MODES = ["concise", "verbose", "custom", "verbatim", "no-such-mode"]
RETAIN_BANKS = [
    {},
    {"retain_mission": NASTY},
    {"retain_custom_instructions": NASTY},
    {"entity_labels": LABELS},
    {"entity_labels": {"attributes": LABELS}, "entities_allow_free_form": False, "retain_mission": "m",
     "retain_custom_instructions": "own rules"},
]


def sample_of(p):
    """The chunk and the context that the retain preview shows."""
    text = joined(p)[1]["content"]
    return text.split("## TEXT\n", 1)[1], re.search(r"^Context: («.*»)$", text, re.M).group(1)


@pytest.mark.parametrize("mode", MODES)
def test_reflect_case_46_and_fault_49_retain_sends_what_is_shown(pinned, mode):
    strict = pinned.given.get("llm_strict_schema")
    for settings in RETAIN_BANKS:
        pinned.llm.reset()
        bank = pinned.bank()
        configure(bank, retain_extraction_mode=mode, enable_auto_consolidation=False, **settings)
        p = preview(bank)
        chunk, context = sample_of(p)
        bank.retain(chunk, context=context)
        sent = pinned.llm.calls("retain_extract_facts")
        assert len(sent) == 1, settings
        assert sent[0]["body"]["messages"] == joined(p), settings
        if strict:
            assert sent[0]["body"]["response_format"]["json_schema"]["schema"] == p["response_schema"], settings
            assert '"properties"' not in joined(p)[0]["content"]
        else:
            assert json.dumps(p["response_schema"], separators=(",", ":")) in joined(p)[0]["content"]
        # the very bytes: JSON text of the blocks stands in the raw body
        for m in joined(p):
            assert json.dumps(m["content"], ensure_ascii=False).replace("\\u007f", "\x7f") in sent[0]["raw"]


def test_reflect_case_46_chunks_mode_sends_nothing(pinned):
    pinned.llm.reset()
    bank = pinned.bank()
    configure(bank, retain_extraction_mode="chunks", enable_auto_consolidation=False)
    preview(bank)
    bank.retain("Some text.")
    assert pinned.llm.chats() == []


@pytest.mark.parametrize("mission", [None, NASTY], ids=["default", "own"])
def test_reflect_case_46_and_fault_49_consolidation_sends_what_is_shown(pinned, mission):
    pinned.llm.reset()
    bank = pinned.bank()
    configure(bank, retain_extraction_mode="chunks", enable_auto_consolidation=False, observations_mission=mission)
    p = preview(bank, "consolidation")
    shown = joined(p)[1]["content"]
    fact_id, fact = re.search(r"^\[(«.*?»)\] («.*?») \(", shown.split("## NEW FACTS\n")[1], re.M).groups()
    observation = json.loads(shown.split("## EXISTING OBSERVATIONS\n")[1].split("\n")[0])[0]
    bank.retain(observation["source_memories"][0]["text"])
    source = bank.memories(type="world")[0]["id"]
    pinned.llm.script({"scope": "consolidation", "when": {"n": 1}, "reply": {"json": {
        "creates": [{"text": observation["text"], "source_fact_ids": [source], "reason": "r"}],
        "updates": [], "deletes": []}}})
    assert bank.consolidate()["status"] == "completed"
    bank.retain(fact)
    assert bank.consolidate()["status"] == "completed"
    sent = pinned.llm.calls("consolidation")[1]["body"]["messages"]
    ids = {m["id"]: sample for m, sample in
           [(m, fact_id if m["text"] == fact else observation["id"]) for m in bank.memories()
            if m["text"] in (fact, observation["text"])]}
    assert len(sent) == 2
    for m in sent:
        m["content"] = UUID.sub(lambda u: ids.get(u.group(), u.group()), m["content"])
    assert sent == joined(p)


@pytest.mark.parametrize("mission", [None, NASTY], ids=["default", "own"])
@pytest.mark.parametrize("directives", [False, True])
def test_reflect_case_46_and_fault_49_reflect_sends_what_is_shown(pinned, mission, directives):
    bank = pinned.bank(make=True, name="Bank {of} 100 %s")
    configure(bank, reflect_mission=mission, disposition_empathy=5 if mission else None,
              enable_auto_consolidation=False)
    if directives:
        for name, content, more in (("Tone", NASTY, {}), ("Late", "be brief", {"priority": -1}),
                                    ("Tagged", "never", {"tags": ["a"]}), ("Off", "no", {"is_active": False})):
            ok(bank.post("/directives", {"name": name, "content": content, **more}), 200)
    bank.model("Doc", "What is known?")
    p = preview(bank, "reflect")
    question = blocks(p, "user")[0]["text"].rstrip("\n")
    assert re.fullmatch("«.*»", question)
    for budget in ("low", "high"):
        pinned.llm.reset()
        ok(bank.post("/reflect", {"query": question, "budget": budget}))
        sent = pinned.llm.calls("reflect_tool_call")[0]["body"]["messages"]
        # left out of the preview: the request's budget
        sent[0]["content"], n = re.subn(r"## DEPTH\n.*\n\n", "", sent[0]["content"])
        assert n == 1
        assert sent == joined(p), (mission, directives)


def test_fault_49_the_preview_equals_the_real_prompt(pinned):
    """The three missions, each where the real prompt has it."""
    bank = pinned.bank()
    configure(bank, retain_mission="MARK-A", observations_mission="MARK-B", reflect_mission="MARK-C")
    for operation, field, role, mark in (("retain", "retain_mission", "user", "MARK-A"),
                                         ("consolidation", "observations_mission", "user", "MARK-B"),
                                         ("reflect", "reflect_mission", "system", "MARK-C")):
        p = preview(bank, operation)
        b = only(p, role, field=field)
        assert mark in b["text"] and b["active"] and b["value"] == mark and b["editable"]
        assert json.dumps(p["messages"]).count(mark) == 2  # text and value
    assert b["text"].strip() == "MARK-C"
    assert "voice of a long-term memory" not in joined(p)[0]["content"]


# ---- blocks ----

def test_fault_50_switched_off_settings_stand_in_place(made):
    p = preview(made)
    b = blocks(p, "user")[0]
    assert b["field"] == "retain_mission" and not b["active"] and b["source"] == "config" and b["value"] is None
    assert blocks(p, "system", field="retain_custom_instructions") == []
    assert blocks(p, "system", field="entities_allow_free_form") == []
    assert not blocks(p, "system")[-1]["active"] and blocks(p, "system")[-1]["field"] == "entity_labels"
    assert not only(p, "system", field="retain_optional_fact_dimensions")["active"]
    for field in ("llm_output_language", "retain_extract_causal_links", "retain_optional_fact_dimensions"):
        assert only(p, "system", field=field)["editable"] is False, field
    b = only(preview(made, "consolidation"), "user", field="observations_mission")
    assert b["active"] and b["value"] is None and b["text"].startswith("## MISSION\n")


def test_reflect_case_47_retain_mission(made):
    off = blocks(preview(made), "user")[0]
    configure(made, retain_mission=NASTY)
    p = preview(made)
    on = blocks(p, "user")[0]
    assert (off["field"], off["active"], off["text"]) == ("retain_mission", False, "")
    assert (on["field"], on["active"], on["value"], on["editable"]) == ("retain_mission", True, NASTY, True)
    assert on["text"].startswith("FOCUS") and NASTY in on["text"]
    lines = on["text"].split("\n")
    fence = lines[lines.index(NASTY.split("\n")[0]) - 1]
    assert len(fence) >= 3 and len(set(fence)) == 1 and lines.count(fence) == 2 and fence not in NASTY.split("\n")
    assert NASTY.split("\n")[0] not in joined(p)[0]["content"]


def test_reflect_case_48_custom_mode(made):
    concise = undated(preview(made))
    configure(made, retain_extraction_mode="custom")
    p = preview(made)
    off = only(p, "system", field="retain_custom_instructions")
    assert not off["active"] and off["value"] is None and off["editable"]
    assert undated(p) == concise
    assert codes(p) == [("custom_instructions_empty", "retain_custom_instructions")]
    configure(made, retain_custom_instructions=NASTY)
    q = preview(made)
    on = only(q, "system", field="retain_custom_instructions")
    assert on["active"] and on["text"].startswith(NASTY) and on["value"] == NASTY and q["warnings"] == []
    assert place(p, "system", off) == place(q, "system", on)
    configure(made, retain_extraction_mode="concise")
    p = preview(made)
    assert blocks(p, "system", field="retain_custom_instructions") == [] and undated(p) == concise
    assert codes(p) == [("custom_instructions_unused", "retain_custom_instructions")]


def test_reflect_case_48_each_warning_alone(made):
    for operation in OPERATIONS:
        assert preview(made, operation)["warnings"] == []
    for updates, want in (
            ({"retain_extraction_mode": "verbos"}, ("extraction_mode_unknown", "retain_extraction_mode")),
            ({"retain_extraction_mode": "custom", "retain_custom_instructions": " \n"},
             ("custom_instructions_empty", "retain_custom_instructions")),
            ({"retain_custom_instructions": "x"}, ("custom_instructions_unused", "retain_custom_instructions")),
            ({"entities_allow_free_form": False}, ("free_form_without_labels", "entities_allow_free_form")),
            ({"entities_allow_free_form": True}, ("free_form_without_labels", "entities_allow_free_form")),
            ({"entities_allow_free_form": True, "entity_labels": []},
             ("free_form_without_labels", "entities_allow_free_form")),
            ({"retain_default_strategy": "gone"}, ("strategy_unknown", "retain_default_strategy")),
            ({"retain_extraction_mode": "chunks"}, ("chunks_no_prompt", "retain_extraction_mode"))):
        configure(made, **updates)
        assert codes(preview(made)) == [want], updates
        assert preview(made, "reflect")["warnings"] == [] and preview(made, "consolidation")["warnings"] == []
        configure(made, **dict.fromkeys(updates))
    configure(made, entities_allow_free_form=False, entity_labels=LABELS)
    assert preview(made)["warnings"] == []


def test_reflect_case_48_warnings_stand_in_order(own_stack):
    bank = own_stack(llm=False, settings={"llm_output_language": "Latin"}).bank()
    configure(bank, retain_extraction_mode="verbose", retain_strategies={"s": {
        "zeal": 1, "llm_model": "x", "retain_mission": "m", "retain_extraction_mode": "odd",
        "retain_custom_instructions": "c", "entities_allow_free_form": False, "retain_chunk_size": 99}})
    p = preview(bank, strategy="s")
    assert codes(p) == [
        ("strategy_field_ignored", "llm_model"), ("strategy_field_ignored", "zeal"),
        ("strategy_overrides", "entities_allow_free_form"), ("strategy_overrides", "retain_chunk_size"),
        ("strategy_overrides", "retain_custom_instructions"), ("strategy_overrides", "retain_extraction_mode"),
        ("strategy_overrides", "retain_mission"),
        ("extraction_mode_unknown", "retain_extraction_mode"),
        ("custom_instructions_unused", "retain_custom_instructions"),
        ("free_form_without_labels", "entities_allow_free_form"),
        ("output_language_replaces_rule", "llm_output_language"),
        ("provider_sends_no_prompt", "llm_provider")]
    assert p["run_settings"][0]["value"] == "99" and p["skipped_reason"] is None and p["response_schema"]
    for operation in ("consolidation", "reflect"):
        assert codes(preview(bank, operation)) == [("output_language_replaces_rule", "llm_output_language"),
                                                   ("provider_sends_no_prompt", "llm_provider")]
    configure(bank, retain_strategies={"s": {"zeal": 1, "retain_extraction_mode": "chunks",
                                             "entities_allow_free_form": False}})
    assert codes(preview(bank, strategy="s")) == [
        ("strategy_field_ignored", "zeal"), ("strategy_overrides", "entities_allow_free_form"),
        ("strategy_overrides", "retain_extraction_mode"), ("chunks_no_prompt", "retain_extraction_mode")]


def test_reflect_case_49_strategies(made):
    plain = joined(preview(made))
    configure(made, retain_default_strategy="Long", retain_mission="of the bank",
              retain_strategies={"Long": {"retain_extraction_mode": "verbose"}, "b": {}, "B": {"retain_mission": "x"}})
    p = preview(made)
    assert p["strategy"] == "Long" and p["strategies"] == ["B", "Long", "b"]
    assert blocks(p, "system")[0]["value"] == "verbose" and joined(p)[0] != plain[0]
    assert blocks(p, "user")[0]["value"] == "of the bank"
    for same in ("", None):
        q = preview(made, strategy=same)
        assert undated(q) == undated(p) and q["strategy"] == "Long"
    q = preview(made, strategy="B")
    assert q["strategy"] == "B" and blocks(q, "user")[0]["value"] == "x" and joined(q)[0] == plain[0]
    assert preview(made, "reflect", strategy="B")["strategy"] is None
    q = preview(made, strategy="Lnog")
    assert q["strategy"] == "Lnog" and joined(q)[0] == plain[0]
    assert codes(q) == [("strategy_unknown", "retain_strategies")]


def test_reflect_case_49_a_default_strategy_is_previewed_as_retain_uses_it(made, llm):
    configure(made, retain_default_strategy="s", enable_auto_consolidation=False,
              retain_strategies={"s": {"retain_mission": NASTY, "retain_extraction_mode": "verbatim"},
                                 "t": {"retain_extraction_mode": "verbose", "no_such": 1}})
    for strategy in (None, "t", "typo"):
        llm.reset()
        p = preview(made, strategy=strategy)
        chunk, context = sample_of(p)
        made.retain(f"{chunk} {strategy}", context=context, timestamp="unset", strategy=strategy)
        sent = llm.calls("retain_extract_facts")[0]["body"]["messages"]
        shown = joined(p)
        assert sent[0] == shown[0], strategy
        assert sent[1]["content"] == re.sub(r"(?m)^Event date: .*$", "Event date: Unknown",
                                            shown[1]["content"]) + f" {strategy}"


@pytest.mark.parametrize("size", [0, -5, 64000, 10**12])
def test_reflect_case_49_broken_chunk_sizes(made, stack, llm, size):
    stack.sql("UPDATE banks SET config=%s WHERE bank_id=%s",
              json.dumps({"retain_strategies": {"bad": {"retain_chunk_size": size}}}), made.id)
    answer = made.post("/prompts/preview", {"strategy": "bad"})
    assert answer.status == 400 and "bad" in answer.detail and "retain_chunk_size" in answer.detail
    answer = made.post("/memories", {"items": [{"content": "Some text.", "strategy": "bad"}]})
    assert answer.status == 400 and "retain_chunk_size" in answer.detail
    assert llm.chats() == []
    assert preview(made)["warnings"] == []
    stack.sql("UPDATE banks SET config=%s WHERE bank_id=%s",
              json.dumps({"retain_default_strategy": "x",
                          "retain_strategies": {"x": {"retain_structured_chunk_size": min(size, 0)}}}), made.id)
    assert made.post("/prompts/preview", {}).status == 400


def test_reflect_case_50_consolidation_and_chunks(made):
    p = preview(made, "consolidation")
    b = only(p, "user", field="observations_mission")
    assert (b["active"], b["source"], b["value"], b["editable"]) == (True, "config", None, True)
    assert b["text"].startswith("## MISSION\n") and len(b["text"]) > 40
    assert blocks(p, "system")[-1]["text"].rstrip().endswith("}") and "json" in joined(p)[1]["content"]
    configure(made, observations_mission=NASTY)
    b = only(preview(made, "consolidation"), "user", field="observations_mission")
    assert b["text"] == f"## MISSION\n{NASTY}\n\n" and b["value"] == NASTY
    configure(made, retain_extraction_mode="chunks", retain_mission="m", retain_custom_instructions="c",
              entity_labels=LABELS)
    p = preview(made)
    (b,) = blocks(p, "system")
    assert b == {"text": "", "source": "config", "field": "retain_extraction_mode", "section": "", "heading": "",
                 "active": False, "value": "chunks", "kind": "choice", "choices": CHOICES, "editable": True}
    assert blocks(p, "user") == [] and p["response_schema"] is None and p["skipped_reason"]
    assert [s["value"] for s in p["run_settings"]] == ["3000", None]
    assert codes(p) == [("chunks_no_prompt", "retain_extraction_mode")]


def test_reflect_case_53_output_language(own_stack, made):
    latin = own_stack(worker=False, settings={"llm_output_language": "Latin {x}"}).bank(make=True)
    for operation in OPERATIONS:
        plain, own = preview(made, operation), preview(latin, operation)
        rule = only(plain, "system", field="llm_output_language")
        assert rule["active"] and rule["source"] == "config" and rule["value"] is None
        assert blocks(plain, "user", field="llm_output_language") == []
        role = "user" if operation == "reflect" else "system"
        last = only(own, role, field="llm_output_language")
        assert blocks(own, role)[-1] == last and "Latin {x}" in last["text"]
        assert last["value"] == "Latin {x}" and last["editable"] is False
        assert blocks(own, "system" if role == "user" else "user", field="llm_output_language") == []
        assert rule["text"] not in joined(own)[0]["content"]
        assert codes(own) == [("output_language_replaces_rule", "llm_output_language")]


def test_reflect_case_54_body_and_nulls(made):
    assert ok(made.post("/prompts/preview", {})).keys() == ANSWER_KEYS
    for bad in (None, "extract", 3, ["retain"]):
        (fault,) = ok(made.post("/prompts/preview", {"operation": bad}), 422)["detail"]
        assert (fault["type"], fault["loc"]) == ("literal_error", ["body", "operation"]), bad
    (fault,) = ok(made.post("/prompts/preview"), 422)["detail"]
    assert (fault["type"], fault["loc"]) == ("missing", ["body"])
    (fault,) = ok(made.post("/prompts/preview", {"strategy": 3}), 422)["detail"]
    assert (fault["type"], fault["loc"]) == ("string_type", ["body", "strategy"])
    answer = made.post("/prompts/preview", {"retain_mission": "DRAFT", "content": "MINE", "operation": "retain"}, a=1)
    assert answer.headers["X-Ignored-Params"] == "a, retain_mission, content"
    assert b"DRAFT" not in answer.body and b"MINE" not in answer.body
    p = answer.json()
    assert p["strategy"] is None and p["skipped_reason"] is None
    for b in blocks(p, "system", source="builtin"):
        assert (b["field"], b["value"], b["kind"], b["choices"], b["editable"]) == (
            "retain_extraction_mode", "concise", "choice", CHOICES, True)
    assert made.get("/prompts/preview").status == 405
    assert [b["heading"] for b in blocks(p, "system") if b["heading"]] == [
        "What to keep", "Members of a fact", "Rules", "Examples", "Empty members", "Reply"]


def test_reflect_case_55_reflect_mission_and_directives(made):
    off = preview(made, "reflect")
    slot, role = only(off, "system", field="reflect_mission"), "voice of a long-term memory"
    assert not slot["active"] and slot["editable"]
    found = blocks(off, "system")
    assert role in found[found.index(slot) + 1]["text"] and found[found.index(slot) + 1]["source"] == "builtin"
    (none,) = blocks(off, "system", section="directives")
    assert not none["active"] and none["source"] == "builtin"
    ok(made.post("/directives", {"name": "Tone", "content": NASTY}), 200)
    ok(made.post("/directives", {"name": "Scoped", "content": "SCOPED", "tags": ["a"]}), 200)
    configure(made, reflect_mission=NASTY)
    on = preview(made, "reflect")
    b = only(on, "system", field="reflect_mission")
    assert b["active"] and b["text"] == NASTY.strip() + "\n\n" and b["value"] == NASTY
    assert role not in joined(on)[0]["content"] and NASTY.strip() not in joined(on)[1]["content"]
    rules, reminder = blocks(on, "system", section="directives")
    assert rules["active"] and reminder["active"] and NASTY in rules["text"] and NASTY in reminder["text"]
    assert blocks(on, "system")[-1] == reminder and "SCOPED" not in joined(on)[0]["content"]
    assert place(on, "system", rules) == place(off, "system", none)
    assert len(blocks(on, "user")) == 1
    sections = [b["section"] for b in blocks(on, "system") if b["section"]]
    assert sections == ["directives", "bank_identity", "disposition", "directives"]
    configure(made, reflect_mission=" \n ")
    assert not only(preview(made, "reflect"), "system", field="reflect_mission")["active"]


def test_entity_labels_are_asked_for(made):
    p = preview(made)
    off = only(p, "system", field="entity_labels")
    configure(made, entity_labels=LABELS)
    q = preview(made)
    first, second = blocks(q, "system", field="entity_labels")
    free = only(q, "system", field="entities_allow_free_form")
    assert [first, free, second] == blocks(q, "system")[-3:]
    assert place(p, "system", off) == place(q, "system", first)
    assert json.loads(second["value"]) == LABELS and second["kind"] == "complex" and second["editable"]
    assert second["value"] in second["text"]
    assert (free["kind"], free["value"], free["active"], free["editable"]) == ("boolean", "true", True, True)
    configure(made, entities_allow_free_form=False)
    other = only(preview(made), "system", field="entities_allow_free_form")
    assert other["value"] == "false" and other["text"] != free["text"]
    assert place(preview(made), "system", other) == place(q, "system", free)


def test_strict_schema_has_the_labels(own_stack):
    bank = own_stack(worker=False, settings={"llm_strict_schema": True}).bank()
    configure(bank, entity_labels=LABELS)
    labels = preview(bank)["response_schema"]["properties"]["facts"]["items"]["properties"]["labels"]
    nothing = ["string", "null"]
    assert labels == {"type": "object", "required": ["area", "themes", "note", "open", "place"],
                      "additionalProperties": False, "properties": {
        "area": {"type": nothing, "enum": ["north", "south", None]},
        "themes": {"type": ["array", "null"], "items": {"type": "string", "enum": ["a", "b"]}},
        "note": {"type": "string"},
        "open": {"type": ["array", "null"], "items": {"type": "string"}},
        "place": {"type": ["object", "null"], "required": ["city", "kind"], "additionalProperties": False,
                  "properties": {"city": {"type": nothing}, "kind": {"type": nothing, "enum": ["x", None]}}}}}


# ---- no effect, no secret ----

def everything(stack):
    names = [next(iter(r.values())) for r in stack.sql("SHOW TABLES")]
    return stack.sql("CHECKSUM TABLE " + ", ".join(f"`{n}`" for n in sorted(names)))


def test_reflect_case_51_nothing_is_written_or_called(own_stack):
    s = own_stack(worker=False)
    bank = s.bank()
    configure(bank, retain_extraction_mode="concise")
    ok(bank.post("/directives", {"name": "d", "content": "c"}), 200)
    before = everything(s)
    for operation in OPERATIONS:
        preview(bank, operation)
        answer = s.bank("no such bank").post("/prompts/preview", {"operation": operation})
        assert answer.status == 404 and answer.detail == "Bank 'no such bank' not found"
    preview(bank, strategy="unknown")
    assert everything(s) == before
    assert s.sql("SELECT bank_id FROM banks") == [{"bank_id": bank.id}]
    assert s.llm.calls() == []


SECRETS = ["llm_api_key", "retain_llm_api_key", "reflect_llm_api_key", "consolidation_llm_api_key",
           "mental_model_refresh_llm_api_key", "embeddings_openai_api_key", "reranker_api_key", "webhook_secret",
           "vlm_api_key", "otel_headers", "mcp_auth_token"]
ADDRESSES = ["llm_base_url", "retain_llm_base_url", "reflect_llm_base_url", "consolidation_llm_base_url",
             "embeddings_openai_base_url", "reranker_base_url"]


def test_reflect_case_51_and_case_52_secrets_keys_and_the_config_switch(own_stack):
    settings = {name: f"MARKER-{name}" for name in SECRETS}
    settings |= {name: f"http://127.0.0.1:9/MARKER-{name}/v1" for name in ADDRESSES}
    settings |= {"tenant_api_key": "MARKER-tenant", "llm_default_headers": {"x-mark": "MARKER-header"},
                 "llm_extra_body": {"x": "MARKER-body"}, "llm_model": "MARKER-model",
                 "database_name": "hindsight", "enable_bank_config_api": False}
    s = own_stack(worker=False, settings=settings)
    path = s.bank("b").path
    closed, opened = s.api(), s.api(headers={"Authorization": "Bearer MARKER-tenant"})
    ok(opened.put(path, {"retain_mission": "mine"}))
    assert opened.patch(path + "/config", {"updates": {}}).status == 404
    for operation in OPERATIONS:
        answer = opened.post(path + "/prompts/preview", {"operation": operation})
        assert answer.status == 200
        assert b"MARKER" not in answer.body and b"127.0.0.1" not in answer.body
        assert "MARKER" not in str(answer.headers)
        denied = closed.post(path + "/prompts/preview", {"operation": operation})
        assert (denied.status, denied.json()) == (401, closed.get(path + "/config").json())
    assert opened.post(s.bank("c").path + "/prompts/preview", {}).status == 404


def test_reflect_case_64_provider_none_shows_chunks(own_stack):
    bank = own_stack(llm=False, worker=False, settings={"llm_provider": "none"}).bank()
    configure(bank, retain_extraction_mode="verbose", retain_default_strategy="s",
              retain_strategies={"s": {"retain_extraction_mode": "custom"}})
    p = preview(bank)
    (b,) = blocks(p, "system")
    assert b["value"] == "chunks" and not b["active"] and blocks(p, "user") == [] and p["skipped_reason"]
    assert codes(p) == [("strategy_overrides", "retain_extraction_mode"), ("chunks_no_prompt", "retain_extraction_mode")]
    for operation in ("consolidation", "reflect"):
        assert codes(preview(bank, operation)) == [("provider_sends_no_prompt", "llm_provider")]


def test_the_built_in_provider_shows_the_prompts_of_a_model(plain_bank, made):
    plain_bank.make()
    for operation in OPERATIONS:
        p = preview(plain_bank, operation)
        assert codes(p) == [("provider_sends_no_prompt", "llm_provider")] and p["skipped_reason"] is None
    assert joined(preview(plain_bank))[0] == joined(preview(made))[0]


def test_the_program_calls_no_model():
    linked = subprocess.run(["ldd", program_path("prompts")], capture_output=True, text=True, check=True).stdout
    assert "libmariadb" in linked and "libcurl" not in linked


def test_a_warning_names_a_long_strategy_whole_characters_only(made):
    name = "อักษรไทย" * 30
    p = preview(made, strategy=name)
    shown = next(w["message"] for w in p["warnings"] if w["code"] == "strategy_unknown")
    assert name[:100] in shown and name[:101] not in shown
