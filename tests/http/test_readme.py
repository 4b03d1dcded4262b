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


def test_readme_names_files_that_exist():
    root = README.parent
    for link in re.findall(r"\]\(([^)]+)\)", README.read_text()):
        assert (root / link).exists(), link
