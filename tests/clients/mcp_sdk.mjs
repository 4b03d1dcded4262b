// The official MCP client (handshake era) lists the tools and calls each: every answer is looked at.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const baseUrl = process.argv[2];
const bank = "mcp sdk";
const called = new Set();

async function step(name, fn) {
	await fn();
	console.log(`ok ${name}`);
}

async function connect(path, headers = {}) {
	const client = new Client({ name: "client-test", version: "1" });
	const transport = new StreamableHTTPClientTransport(new URL(path, baseUrl), { requestInit: { headers } });
	transport.onerror = (e) => { throw e; };
	await client.connect(transport);
	client.transportUsed = transport;
	return client;
}

// The object a tool gives; the client itself has checked it against the tool's output schema.
async function call(client, name, args) {
	called.add(name);
	const r = await client.callTool({ name, ...(args ? { arguments: args } : {}) });
	assert.notEqual(r.isError, true, JSON.stringify(r));
	assert.equal(r.content.length, 1);
	return JSON.parse(r.content[0].text);
}

async function finished(client, operation_id) {
	for (let i = 0; i < 600; i++) {
		const op = await call(client, "get_operation", { operation_id });
		if (!["pending", "processing"].includes(op.status)) return op;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	throw new Error(`operation ${operation_id} did not end`);
}

let multi, one, names;
await step("connect", async () => {
	multi = await connect("/mcp/", { "X-Bank-Id": bank });
	one = await connect(`/mcp/${encodeURIComponent(bank)}/`);
	for (const client of [multi, one]) {
		assert.equal(client.getServerVersion().name, "hindsight-mcp-server");
		assert.equal(client.transportUsed.protocolVersion, "2025-11-25");
		assert.equal(client.transportUsed.sessionId, undefined);
		assert.equal(client.getInstructions(), undefined);
	}
});

await step("list tools", async () => {
	const tools = (await multi.listTools()).tools;
	names = tools.map((t) => t.name);
	assert.ok(tools.every((t) => t.description && t.inputSchema.type === "object"));
	assert.equal(names.length, 18);
	assert.equal((await one.listTools()).tools.length, 14);
});

await step("banks", async () => {
	const made = await call(multi, "create_bank", { bank_id: bank, name: "Client bank", mission: "Answer briefly." });
	assert.deepEqual(await call(multi, "get_bank"), made);
	const list = await call(multi, "list_banks", { query: bank });
	assert.equal(list.banks[0].bank_id, bank);
});

await step("retain and recall", async () => {
	const kept = await call(multi, "retain", { content: "Alice works at the observatory in Potsdam.", tags: ["people"] });
	assert.equal((await finished(multi, kept.operation_id)).status, "completed");
	const found = await call(one, "recall", { query: "Where does Alice work?", tags: ["people"], include_chunks: true });
	assert.ok(found.results.some((r) => r.text.includes("observatory")), JSON.stringify(found));
	const memory = await call(one, "get_memory", { memory_id: found.results[0].id });
	assert.equal(memory.text, found.results[0].text);
	const again = await call(multi, "recall", { query: "Where does Alice work?" });
	assert.ok(again.results.length >= 1);
});

await step("reflect", async () => {
	const answer = await call(one, "reflect", { query: "Where does Alice work?", include_based_on: true });
	assert.ok(answer.text.length > 0 && answer.based_on.world.length >= 1, JSON.stringify(answer));
});

await step("mental models", async () => {
	const made = await call(multi, "create_mental_model", {
		name: "Alice", source_query: "Who is Alice?", trigger: { mode: "delta", refresh_cron: "0 3 * * *" },
	});
	const mental_model_id = made.mental_model_id;
	assert.equal((await finished(multi, made.operation_id)).status, "completed");
	const model = await call(one, "get_mental_model", { mental_model_id });
	assert.ok(model.content.includes("Alice") && model.trigger.mode === "delta", JSON.stringify(model));
	assert.equal((await call(multi, "list_mental_models")).items[0].id, mental_model_id);
	const changed = await call(multi, "update_mental_model", { mental_model_id, name: "About Alice" });
	assert.equal(changed.name, "About Alice");
	const refresh = await call(one, "refresh_mental_model", { mental_model_id });
	assert.equal((await finished(one, refresh.operation_id)).status, "completed");
	assert.equal((await call(one, "delete_mental_model", { mental_model_id })).status, "deleted");
});

await step("operations", async () => {
	const list = await call(multi, "list_operations", { limit: 5 });
	assert.ok(list.total >= 3);
	const refused = await call(multi, "cancel_operation", { operation_id: list.operations[0].operation_id });
	assert.match(refused.error, /cannot be cancelled: status is 'completed'/);
});

await step("legacy tools", async () => {
	for (const name of ["hindsight_put", "hindsight_search"]) called.add(name);
	const put = await multi.callTool({
		name: "hindsight_put", arguments: { bank_id: bank, content: "Alice plays chess.", context: "hobbies" },
	});
	assert.deepEqual(put.content, [{ type: "text", text: "Fact stored successfully" }]);
	const found = await multi.callTool({ name: "hindsight_search", arguments: { bank_id: bank, query: "chess" } });
	assert.ok(JSON.parse(found.content[0].text).results.some((r) => r.text.includes("chess")));
	const missing = await multi.callTool({ name: "hindsight_search", arguments: { bank_id: "unknown-bank", query: "x" } });
	assert.equal(missing.isError, true);
	assert.equal(missing.content[0].text, "Error: Memory bank 'unknown-bank' not found");
});

await step("failures are results", async () => {
	const unknown = await one.callTool({ name: "no_such_tool", arguments: {} });
	assert.equal(unknown.isError, true);
	assert.equal(unknown.content[0].text, "Unknown tool: 'no_such_tool'");
	const wrong = await one.callTool({ name: "recall" });
	assert.equal(wrong.isError, true);
	assert.deepEqual(await call(one, "get_memory", { memory_id: "x" }), { error: "Invalid memory_id: 'x' is not a valid UUID" });
	await one.ping();
});

await step("every tool was called", async () => {
	assert.deepEqual([...called].sort(), [...names].sort());
});

// A stream that ended at once would be opened again and again.
await step("idle", async () => {
	await new Promise((resolve) => setTimeout(resolve, 5000));
	await multi.ping();
	await multi.close();
	await one.close();
});
