"""The README's curl tour runs as it stands, and answers what the README shows."""
import pathlib
import re
import subprocess

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(), re.M | re.S)


def test_readme_tour_works(extractive_stack):
    script = "\n".join(blocks("sh")).replace("http://127.0.0.1:8888", f"http://127.0.0.1:{extractive_stack.port}")
    r = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stdout + r.stderr
    shown = "".join(re.findall(r"^```sh\n.*?^```\n```\n(.*?)^```", README.read_text(), re.M | re.S))

    def dateless(text):
        return re.sub(r"2026-11-30|\d{4}-\d\d-\d\d(?=: Ada keeps)", "DATE", text)

    assert dateless(r.stdout) == dateless(shown)


def test_readme_enables_every_unit():
    """Every socket and timer of systemd/, and the worker."""
    root = README.parent
    line, = re.findall(r"^systemctl enable --now (.*?[^\\])$", README.read_text(), re.M | re.S)
    names = re.search(r"hindsight-\{(.*)\}\.socket", line)[1].split(",")
    assert {f"hindsight-{n}.socket" for n in names} == {p.name for p in root.glob("systemd/*.socket")}
    assert {p.name for p in root.glob("systemd/*.timer")} <= set(line.split())
    assert "hindsight-worker" in line.split()


def test_architecture_names_every_program():
    """One row of its table for each program that is built."""
    root = README.parent
    built = set(re.findall(r"\bhindsight-[a-z-]+\b", (root / "handlers/Makefile.am").read_text()))
    rows = re.findall(r"^\| `(hindsight-[a-z-]+)` \|", (root / "docs/ARCHITECTURE.md").read_text(), re.M)
    assert built and set(rows) == built and len(rows) == len(built)


def test_readme_names_files_that_exist():
    root = README.parent
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (root / link).exists(), link
