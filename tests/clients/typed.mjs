// Check the types of a TypeScript file that is JavaScript as well, strictly; then run it: node typed.mjs FILE
import { copyFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";

const [typed, script] = [resolve("checked.ts"), resolve("checked.mjs")]; // here, where the packages are
copyFileSync(process.argv[2], typed);
copyFileSync(process.argv[2], script);
const options = {
	strict: true, noEmit: true, skipLibCheck: true, module: ts.ModuleKind.ESNext, types: [],
	moduleResolution: ts.ModuleResolutionKind.Bundler, target: ts.ScriptTarget.ES2022,
};
const wrong = ts.getPreEmitDiagnostics(ts.createProgram([typed], options));
for (const d of wrong) console.error(ts.flattenDiagnosticMessageText(d.messageText, "\n"), d.start);
if (wrong.length > 0) process.exit(1);
await import(pathToFileURL(script));
