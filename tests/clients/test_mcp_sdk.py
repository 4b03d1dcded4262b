"""The official MCP client of the handshake era (npm, @modelcontextprotocol/sdk 1.x): mcp A11, case 6."""
import re


def test_mcp_case_06_sdk_lists_and_calls_each_tool(stack, node):
    r = node("mcp_sdk.mjs", f"http://127.0.0.1:{stack.port}")
    assert r.returncode == 0, r.stdout + r.stderr
    done = [line[3:] for line in r.stdout.splitlines() if line.startswith("ok ")]
    assert done == ["connect", "list tools", "banks", "retain and recall", "reflect", "mental models", "operations",
                    "legacy tools", "failures are results", "every tool was called", "idle"]
    log = stack.processes["mcp"].log_text()
    for route in ["/mcp", "/mcp/{bank_id}"]:
        gets = re.findall(r'method="GET" route=' + re.escape(route) + r" status=(\d+)", log)
        assert gets == ["405"], "one attempt to listen a connection, no more"
