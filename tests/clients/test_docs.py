"""The blocks of docs/CLIENTS.md run as they stand, and answer what the document shows."""
import json
import pathlib
import re
import subprocess

import pytest

from stack import Stack

DOC = pathlib.Path(__file__).resolve().parents[2] / "docs/CLIENTS.md"
URL = "http://127.0.0.1:8888"


def blocks(language):
    """(code, what is shown below it) of each block of a language."""
    found = re.findall(rf"^```{language}\n(.*?)^```\n(?:```\n(.*?)^```)?", DOC.read_text(), re.M | re.S)
    assert found, language
    return found


def dateless(text):
    return re.sub(r"\d{4}-\d\d-\d\d", "DATE", text)


@pytest.fixture(scope="module")
def plain():
    """A server without a model, as the quickstart starts it."""
    with Stack(llm=False) as s:
        yield s


@pytest.fixture
def code(plain):
    """The only block of a language for the test's server, and its output."""
    def one(language):
        (text, shown), = blocks(language)
        return text.replace(URL, f"http://127.0.0.1:{plain.port}"), shown
    return one


def same(r, shown):
    assert r.returncode == 0, r.stdout + r.stderr
    assert dateless(r.stdout) == dateless(shown)


def test_docs_curl_blocks_work(plain):
    for text, shown in blocks("sh"):
        same(subprocess.run(["sh", "-eu", "-c", text.replace(URL, f"http://127.0.0.1:{plain.port}")],
                            capture_output=True, text=True, timeout=120), shown)


def test_docs_python_block_works(code, python, tmp_path):
    text, shown = code("python")
    script = tmp_path / "memory.py"
    script.write_text(text)
    same(python(script), shown)


def test_docs_typescript_block_works(code, node, tmp_path):
    text, shown = code("ts")
    script = tmp_path / "memory.ts"
    script.write_text(text)
    same(node("typed.mjs", script), shown)


def test_docs_mcp_blocks_reach_a_server(plain):
    """Each block is JSON with one address, and a server of MCP answers there."""
    for text, _ in blocks("json"):
        path, = re.findall(re.escape(URL) + r'(/mcp/[^"]*)"', json.dumps(json.loads(text)))
        r = plain.api().post(path, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}})
        assert r.status == 200 and r.json()["result"]["protocolVersion"] == "2025-06-18", r


def test_docs_say_how_to_send_a_key(python, node, tmp_path):
    """The blocks with what their comments say about a key, against a server that has this key."""
    with Stack(llm=False, settings={"tenant_api_key": "the-key"}) as s:
        here = f"http://127.0.0.1:{s.port}"
        (text, shown), = blocks("python")
        plain, keyed = "Hindsight(base_url=URL)", 'Hindsight(base_url=URL, api_key="the-key")'
        assert f"with a key: {keyed}\n" in text
        script = tmp_path / "memory.py"
        script.write_text(text.replace(URL, here))
        assert "401, message" in python(script).stderr
        script.write_text(text.replace(URL, here).replace(plain, keyed))
        same(python(script), shown)

        (text, shown), = blocks("ts")
        script = tmp_path / "memory.ts"
        for plain, keyed in (("new HindsightClient({ baseUrl })", 'new HindsightClient({ baseUrl, apiKey: "the-key" })'),
                             ("createConfig({ baseUrl })",
                              'createConfig({ baseUrl, headers: { Authorization: "Bearer the-key" } })')):
            assert f"with a key: {keyed}\n" in text
            text = text.replace(plain, keyed)
        script.write_text(text.replace(URL, here))
        same(node("typed.mjs", script), shown)

        for text, _ in blocks("json"):
            server, = next(iter(json.loads(text).values())).values()
            r = s.api().post("/mcp/notes/", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=server.get("headers"))
            assert r.status == (200 if "headers" in server else 401), r


def test_docs_name_the_tested_versions():
    here = pathlib.Path(__file__).parent
    npm = json.loads((here / "package.json").read_text())["dependencies"]["@vectorize-io/hindsight-client"]
    pip = re.search(r"hindsight-client==(.*)", (here / "requirements.txt").read_text())[1]
    text = DOC.read_text()
    assert f"`npm install @vectorize-io/hindsight-client` ({npm})" in text
    assert f"`pip install hindsight-client` ({pip})" in text
