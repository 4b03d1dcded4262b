// The main job with the official TypeScript client: every answer is looked at, a wrong one ends the script.
import assert from "node:assert/strict";
import { HindsightClient, createClient, createConfig, sdk } from "@vectorize-io/hindsight-client";

const baseUrl = process.argv[2];
const bank = "ts client";
const client = new HindsightClient({ baseUrl });
const low = createClient(createConfig({ baseUrl }));

async function step(name, fn) {
	await fn();
	console.log(`ok ${name}`);
}

// Poll as a client does that knows no ?wait=.
async function finished(operationId) {
	for (let i = 0; i < 600; i++) {
		const { data } = await sdk.getOperationStatus({
			client: low, path: { bank_id: bank, operation_id: operationId },
		});
		if (!["pending", "processing"].includes(data.status)) return data;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	throw new Error(`operation ${operationId} did not end`);
}

await step("version", async () => {
	const v = await client.getVersion();
	assert.match(v.api_version, /^\d+\.\d+\.\d+$/);
	assert.equal(typeof v.features.observations, "boolean");
});

await step("create bank", async () => {
	const made = await client.createBank(bank, { name: "Client bank", reflectMission: "Answer briefly." });
	assert.equal(made.bank_id, bank);
	assert.equal(made.name, "Client bank");
	const profile = await client.getBankProfile(bank);
	assert.deepEqual(profile, made);
});

await step("retain", async () => {
	const kept = await client.retain(bank, "Alice works at the observatory in Potsdam.", {
		context: "introduction", tags: ["people"], documentId: "intro", metadata: { source: "test" },
	});
	assert.equal(kept.success, true);
	assert.equal(kept.items_count, 1);
	const batch = await client.retainBatch(bank, [
		{ content: "Alice measures the light of variable stars.", tags: ["people"] },
		{ content: "The observatory closes on Mondays." },
	], { async: true });
	assert.equal((await finished(batch.operation_id)).status, "completed");
	const list = await client.listMemories(bank, { type: "world" });
	assert.ok(list.total >= 3, JSON.stringify(list));
});

await step("recall", async () => {
	const found = await client.recall(bank, "Where does Alice work?", { tags: ["people"], includeEntities: true });
	assert.ok(found.results.length >= 1);
	assert.ok(found.results.some((r) => r.text.includes("observatory")), JSON.stringify(found.results));
});

await step("reflect", async () => {
	const answer = await client.reflect(bank, "Where does Alice work?", { includeFacts: true, includeToolCalls: true });
	assert.ok(answer.text.length > 0);
	assert.ok(answer.based_on.memories.length >= 1, JSON.stringify(answer));
	assert.ok(answer.usage.total_tokens > 0);
	assert.ok(answer.trace.tool_calls.length >= 1);
});

let model;
await step("create mental model and wait for its operation", async () => {
	const made = await client.createMentalModel(bank, "Alice", "Who is Alice?", { tags: ["people"], maxTokens: 512 });
	model = made.mental_model_id;
	assert.match(model, /^mm-[0-9a-f]{32}$/);
	const op = await finished(made.operation_id);
	assert.equal(op.status, "completed", JSON.stringify(op));
	assert.equal(op.details.outcome, "content_written");
});

await step("get mental model", async () => {
	const m = await client.getMentalModel(bank, model);
	assert.ok(m.content.includes("Alice"), m.content);
	assert.equal(m.is_stale, false);
	assert.ok(Object.keys(m.reflect_response.based_on).length >= 1);
	assert.equal((await client.getMentalModel(bank, model, { detail: "metadata" })).content, null);
});

await step("list mental models", async () => {
	const list = await client.listMentalModels(bank, { tags: ["people"], detail: "content" });
	assert.equal(list.total, 1);
	assert.equal(list.items[0].id, model);
	assert.ok(list.items[0].content.includes("Alice"));
});

await step("refresh mental model", async () => {
	const again = await client.refreshMentalModel(bank, model);
	assert.equal((await finished(again.operation_id)).status, "completed");
});

await step("delete", async () => {
	await client.deleteMentalModel(bank, model);
	assert.equal((await client.listMentalModels(bank)).total, 0);
	await client.deleteBank(bank);
	await assert.rejects(() => client.getBankProfile(bank), (e) => e.statusCode === 404 || /404|not found/i.test(String(e)));
});
