"""The official Python client (PyPI, 1.1.0) does the main job."""


def test_python_client_does_the_main_job(stack, python):
    r = python("main_job.py", f"http://127.0.0.1:{stack.port}")
    assert r.returncode == 0, r.stdout + r.stderr
    done = [line[3:] for line in r.stdout.splitlines() if line.startswith("ok ")]
    assert done == ["version", "create bank", "config", "retain", "recall", "reflect", "directives", "preview",
                    "mental model", "update, refresh, history, clear", "delete"]
