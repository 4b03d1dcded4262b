"""The sample file tells the truth about settings that do nothing yet."""
import re

from stack import SOURCE


def sources():
    for folder in ("shared", "handlers"):
        for path in (SOURCE / folder).rglob("*.[ch]"):
            if path.name != "overrides.c":  # validates what it does not use
                yield path.read_text()


def test_settings_without_effect_say_so():
    code = "\n".join(sources())
    used = set(re.findall(r"\bHS_S_([a-z0-9_]+)", code))
    # rows that exist once for each operation are named by their ends, as ROW(timeout)
    lines = re.sub(r"\s*\\\n\s*", " ", code)
    ends = {e for macro in re.findall(r"#define (\w+)\(\w+\)[^\n]*HS_S_\w*llm_##", lines)
            for e in re.findall(rf"\b{macro}\((\w+)\)", lines)}
    sample = (SOURCE / "conf/hindsight.yaml").read_text()
    entries = re.findall(r"^# \((.*)\)\n#(\w+):", sample, re.M)
    assert len(entries) > 300 and len(ends) > 5
    silent = [name for facts, name in entries
              if "no effect yet" not in facts and name not in used
              and not re.search(r"_max_slots$", name)
              and not any(re.fullmatch(rf"(\w+_)?llm_{end}", name) for end in ends)]
    assert silent == []
    spoken = [name for facts, name in entries if "no effect yet" in facts and name in used]
    assert spoken == []
