"""The official TypeScript client (npm, 0.9.1): the main job, then every function of its sdk."""


def steps(r):
    """The steps a script has done; it must have ended well."""
    assert r.returncode == 0, r.stdout + r.stderr
    return [line[3:] for line in r.stdout.splitlines() if line.startswith("ok ")]


def test_typescript_client_does_the_main_job(stack, node):
    assert steps(node("main_job.mjs", f"http://127.0.0.1:{stack.port}")) == [
        "version", "create bank", "retain", "recall", "reflect", "create mental model and wait for its operation",
        "get mental model", "list mental models", "refresh mental model", "delete"]


def test_typescript_sdk_reaches_every_route(stack, node):
    stack.llm.script({"scope": "retain_*", "when": {"contains": "zither"}, "times": 1, "reply": {"delay": 2}})
    assert steps(node("sdk_routes.mjs", f"http://127.0.0.1:{stack.port}")) == [
        "monitoring", "banks", "config", "directives", "retain, recall, reflect", "consolidation",
        "memories, documents, chunks", "entities, tags", "mental models", "operations", "cancel, retry", "delete",
        "nothing is left out", "answers have the declared types"]
