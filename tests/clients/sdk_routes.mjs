// Every function of the TypeScript client's generated sdk whose route is served: called, its answer looked at,
// and all answers compared with the types that the client declares for them.
import assert from "node:assert/strict";
import { createClient, createConfig, sdk } from "@vectorize-io/hindsight-client";
import ts from "typescript";

const GENERATED = "node_modules/@vectorize-io/hindsight-client/generated";
const baseUrl = process.argv[2];
const low = createClient(createConfig({ baseUrl }));
const bank = "ts/sdk bank";
const answers = [];
const called = new Set();

// Not served; each is refused, so that this list cannot outlive that.
const later = [
	"auditLogStats", "clearMemoryObservations", "clearObservations", "createKnowledgeFolder", "createKnowledgePage",
	"createWebhook", "deleteKnowledgeNode", "deleteWebhook", "downloadFile", "dryRunExtractMemories",
	"exportBankTemplate", "exportDocuments", "exportDocumentsSyncRemoved",
	"exportKnowledgeBase", "fileRetain", "getBankTemplateSchema", "getEntityGraph", "getGraph",
	"getKnowledgeBaseTree", "getKnowledgePage", "getMemoriesTimeseries", "getObservationHistory",
	"importBankTemplate", "importDocuments", "listAuditLogs", "listLlmRequests", "listObservationScopes",
	"listWebhookDeliveries", "listWebhooks", "llmRequestStats", "recoverConsolidation",
	"regenerateEntityObservations", "reprocessDocument", "searchKnowledgeBase", "testBankLlm", "updateDocument",
	"updateKnowledgeNode", "updateMemory", "updateWebhook",
];

async function call(name, { status = 200, path = {}, ...rest } = {}) {
	called.add(name);
	const r = await sdk[name]({ client: low, path: { bank_id: bank, ...path }, ...rest });
	assert.equal(r.response.status, status, `${name}: ${r.response.status} ${JSON.stringify(r.error ?? r.data)}`);
	if (status >= 400) return r.error;
	answers.push({ name, status, data: r.data });
	return r.data;
}

async function step(name, fn) {
	await fn();
	console.log(`ok ${name}`);
}

async function finished(operation_id) {
	for (let i = 0; i < 600; i++) {
		const op = await call("getOperationStatus", { path: { operation_id } });
		if (!["pending", "processing"].includes(op.status)) return op;
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
	throw new Error(`operation ${operation_id} did not end`);
}

async function settled() {
	for (const status of ["pending", "processing"]) {
		const list = await call("listOperations", { query: { status } });
		for (const op of list.operations) await finished(op.id);
	}
}

await step("monitoring", async () => {
	assert.equal((await call("healthEndpointHealthGet")).status, "healthy");
	assert.ok(await call("getReadiness"));
	assert.ok(await call("getLiveness"));
	assert.equal((await call("getVersion")).features.observations, true);
	assert.match(await call("metricsEndpointMetricsGet", { parseAs: "text" }), /^# (HELP|TYPE) hindsight/m);
});

await step("banks", async () => {
	const made = await call("createOrUpdateBank", { body: { name: "SDK", retain_mission: "People." } });
	assert.equal(made.bank_id, bank);
	const changed = await call("updateBank", { body: { name: "SDK bank", disposition_empathy: 5 } });
	assert.deepEqual([changed.name, changed.disposition.empathy], ["SDK bank", 5]);
	assert.deepEqual(await call("getBankProfile"), changed);
	assert.ok((await call("listBanks")).banks.some((b) => b.bank_id === bank));
	await call("updateBankDisposition", {
		status: 410, body: { disposition: { skepticism: 1, literalism: 1, empathy: 1 } },
	});
	await call("addBankBackground", { status: 410, body: { content: "x" } });
});

await step("config", async () => {
	assert.equal((await call("getBankConfig")).overrides.retain_mission, "People.");
	const set = await call("updateBankConfig", { body: { updates: { retain_chunk_size: 2000 } } });
	assert.deepEqual([set.config.retain_chunk_size, set.overrides.retain_chunk_size], [2000, 2000]);
	assert.deepEqual((await call("resetBankConfig")).overrides, {});
});

await step("directives", async () => {
	const made = await call("createDirective", {
		body: { name: "Brevity", content: "One sentence.", priority: 2, tags: ["people"] },
	});
	const path = { directive_id: made.id };
	assert.deepEqual(await call("getDirective", { path }), made);
	assert.equal((await call("updateDirective", { path, body: { is_active: false } })).is_active, false);
	const query = { active_only: false };
	assert.deepEqual((await call("listDirectives", { query })).items.map((d) => d.id), [made.id]);
	await call("deleteDirective", { path });
	await call("getDirective", { path, status: 404 });
});

await step("retain, recall, reflect", async () => {
	const kept = await call("retainMemories", {
		body: {
			items: [
				{
					content: "Alice works at the observatory in Potsdam.", context: "introduction", tags: ["people"],
					document_id: "a/b c", metadata: { source: "test" }, timestamp: "2026-03-01T10:00:00Z",
					entities: [{ text: "Alice", type: "person" }],
				},
				{ content: "The observatory closes on Mondays." },
			],
			document_tags: ["sdk"],
		},
	});
	assert.deepEqual([kept.success, kept.items_count, kept.async], [true, 2, false]);
	const queued = await call("retainMemories", {
		body: { async: true, items: [{ content: "Alice measures variable stars.", tags: ["people"] }] },
	});
	assert.equal((await finished(queued.operation_id)).status, "completed");
	await settled();
	const found = await call("recallMemories", {
		body: {
			query: "Where does Alice work?", tags: ["people"], tags_match: "any_strict", trace: true,
			include: { entities: {}, chunks: {}, source_facts: {} },
		},
	});
	assert.ok(found.results.some((r) => r.text.includes("observatory")), JSON.stringify(found));
	assert.ok(Object.keys(found.chunks).length >= 1, JSON.stringify(found));
	const answer = await call("reflect", {
		body: { query: "Where does Alice work?", budget: "low", include: { facts: {}, tool_calls: {} } },
	});
	assert.ok(answer.text && answer.based_on.memories.length >= 1 && answer.trace.llm_calls.length >= 1);
});

await step("consolidation", async () => {
	assert.equal((await finished((await call("triggerConsolidation")).operation_id)).status, "completed");
	await settled();
	const stats = await call("getAgentStats", { query: { refresh: true } });
	assert.deepEqual([stats.total_documents, stats.pending_operations], [3, 0]);
	assert.ok(stats.nodes_by_fact_type.observation >= 1, JSON.stringify(stats));
});

let memory;
await step("memories, documents, chunks", async () => {
	const list = await call("listMemories", { query: { type: "world", q: "OBSERVATORY", limit: 1 } });
	assert.deepEqual([list.items.length, list.limit, list.offset], [1, 1, 0]);
	assert.equal(list.total, 2);
	memory = list.items[0].id;
	const one = await call("getMemory", { path: { memory_id: memory } });
	assert.equal(one.text, list.items[0].text);
	const documents = await call("listDocuments", { query: { q: "a/b" } });
	assert.deepEqual(documents.items.map((d) => d.id), ["a/b c"]);
	const path = { document_id: "a/b c" };
	const doc = await call("getDocument", { path });
	assert.equal(doc.original_text, "Alice works at the observatory in Potsdam.");
	assert.deepEqual([...doc.tags].sort(), ["people", "sdk"]);
	const chunks = await call("listDocumentChunks", { path });
	assert.equal(chunks.items[0].chunk_text, doc.original_text);
	assert.equal((await call("getChunk", { path: { chunk_id: chunks.items[0].chunk_id } })).document_id, "a/b c");
});

await step("entities, tags", async () => {
	const alice = (await call("listEntities")).items.find((e) => e.canonical_name === "Alice");
	assert.ok(alice.mention_count >= 1);
	assert.equal((await call("getEntity", { path: { entity_id: alice.id } })).canonical_name, "Alice");
	const tags = await call("listTags", { query: { q: "peop*" } });
	assert.equal(tags.items[0].tag, "people");
});

await step("mental models", async () => {
	const made = await call("createMentalModel", {
		body: {
			id: "alice", name: "Alice", source_query: "Who is Alice?", tags: ["people"], max_tokens: 512,
			trigger: { mode: "full", refresh_cron: "0 6 * * *", tags_match: "any_strict" },
		},
	});
	const path = { mental_model_id: made.mental_model_id };
	assert.equal((await finished(made.operation_id)).details.outcome, "content_written");
	const model = await call("getMentalModel", { path });
	assert.ok(model.content.includes("Alice") && model.trigger.refresh_cron === "0 6 * * *");
	const list = await call("listMentalModels", { query: { tags: ["people"], detail: "full" } });
	assert.deepEqual([list.total, list.items[0].id], [1, "alice"]);
	const changed = await call("updateMentalModel", { path, body: { trigger: { mode: "delta" }, max_tokens: 700 } });
	assert.deepEqual([changed.max_tokens, changed.trigger.mode, changed.trigger.tags_match], [700, "delta", "any_strict"]);
	assert.equal((await finished((await call("refreshMentalModel", { path })).operation_id)).status, "completed");
	const quiet = await call("dryRunRefreshMentalModel", { path });
	assert.deepEqual([quiet.effective_mode, quiet.would_persist, quiet.diff], ["delta", false, ""]);
	const cleared = await call("clearMentalModel", { path });
	assert.ok(!cleared.content);
	const dry = await call("dryRunRefreshMentalModel", { path });
	assert.deepEqual([dry.mode_fallback_reason, dry.outcome], ["no_baseline_content", "content_written"]);
	assert.ok((await call("getMentalModelHistory", { path })).length >= 1);
	await call("deleteMentalModel", { path });
	await call("getMentalModel", { path, status: 404 });
});

await step("operations", async () => {
	const list = await call("listOperations", { query: { type: "refresh_mental_model", limit: 1 } });
	assert.equal(list.operations.length, 1);
	const path = { operation_id: list.operations[0].id };
	await call("cancelOperation", { path, status: 409 });
	await call("retryOperation", { path, status: 409 });
	assert.equal((await call("deleteOperation", { path })).success, true);
	assert.equal((await call("getOperationStatus", { path })).status, "not_found");
});

// The model answers late for this text, so that its operation is cancelled while it runs.
await step("cancel, retry", async () => {
	const { operation_id } = await call("retainMemories", {
		body: { async: true, items: [{ content: "The zither waits for its strings." }] },
	});
	const path = { operation_id };
	for (let i = 0; i < 100; i++) {
		const op = await call("getOperationStatus", { path });
		if (op.child_operations.some((child) => child.status === "processing")) break;
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
	assert.equal((await call("cancelOperation", { path })).success, true);
	assert.equal((await finished(operation_id)).status, "cancelled");
	assert.equal((await call("retryOperation", { path })).success, true);
	assert.equal((await finished(operation_id)).status, "completed");
	await settled();
});

await step("delete", async () => {
	assert.equal((await call("deleteDocument", { path: { document_id: "a/b c" } })).success, true);
	await call("getDocument", { path: { document_id: "a/b c" }, status: 404 });
	assert.equal((await call("clearBankMemories", { query: { type: "world" } })).success, true);
	assert.equal((await call("listMemories", { query: { type: "world" } })).total, 0);
	assert.equal((await call("deleteBank")).success, true);
	await call("getBankProfile", { status: 404 });
});

await step("nothing is left out", async () => {
	const functions = Object.keys(sdk);
	assert.deepEqual(functions.filter((f) => !called.has(f) && !later.includes(f)), []);
	const some = "00000000-0000-4000-8000-000000000000";
	const path = {
		bank_id: bank, memory_id: some, document_id: some, entity_id: some, mental_model_id: some, page_id: some,
		node_id: some, webhook_id: some, key: some,
	};
	for (const name of later) {
		const r = await sdk[name]({ client: low, path });
		// no row of a route table: its own words, or those of the row that has a UUID in this place
		const refused = /^(Not Found|Method Not Allowed)$|is not a valid UUID$|is not implemented$/;
		assert.match(String(r.error?.detail), refused, `${name} is served: ${r.response.status}`);
	}
});

// A value as TypeScript source: strings keep their literal type, objects are no fresh literals, so that
// members the client does not know are no errors.
function source(value) {
	if (typeof value === "string") return `${JSON.stringify(value)} as ${JSON.stringify(value)}`;
	if (Array.isArray(value)) return `[${value.map(source).join(", ")}]`;
	if (value === null || typeof value !== "object") return String(value);
	return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${source(v)}`).join(", ")}}`;
}

// Lines on what differs between the answers and the declared types.
function typeErrors(list) {
	const lines = [`import type * as T from "./${GENERATED}/types.gen";`];
	const where = new Map();
	list.forEach(({ name, status, data }, i) => {
		const type = name[0].toUpperCase() + name.slice(1) + "Responses";
		lines.push(`const v${i} = ${source(data)};`);
		lines.push(`export const t${i}: T.${type}[${status}] = v${i};`);
		where.set(lines.length - 1, name);
	});
	const file = "answers.ts";
	const options = { strict: true, noEmit: true, skipLibCheck: true, module: ts.ModuleKind.ESNext,
		moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022, types: [] };
	const host = ts.createCompilerHost(options);
	const [read, exists] = [host.getSourceFile, host.fileExists];
	host.fileExists = (f) => f === file || exists(f);
	host.getSourceFile = (f, ...rest) =>
		f === file ? ts.createSourceFile(f, lines.join("\n"), options.target) : read(f, ...rest);
	const program = ts.createProgram([file], options, host);
	return ts.getPreEmitDiagnostics(program).map((d) => {
		const at = d.file && d.start !== undefined ? d.file.getLineAndCharacterOfPosition(d.start).line : -1;
		return `${where.get(at) ?? d.file?.fileName}: ${ts.flattenDiagnosticMessageText(d.messageText, "\n")}`;
	});
}

await step("answers have the declared types", async () => {
	const wrong = typeErrors(answers);
	assert.deepEqual([...new Set(wrong)], []);
	const broken = structuredClone(answers.find((a) => a.name === "getMentalModel"));
	broken.data.id = 7;
	assert.equal(typeErrors([broken]).length, 1, "a wrong type is seen");
});
