"""The official TypeScript client (npm, 0.9.1) does the main job."""


def test_typescript_client_does_the_main_job(stack, node):
    r = node("main_job.mjs", f"http://127.0.0.1:{stack.port}")
    assert r.returncode == 0, r.stdout + r.stderr
    done = [line[3:] for line in r.stdout.splitlines() if line.startswith("ok ")]
    assert done == ["version", "create bank", "retain", "recall", "reflect",
                    "create mental model and wait for its operation", "get mental model", "list mental models",
                    "refresh mental model", "delete"]
