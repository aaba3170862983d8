#!/usr/bin/env node
// Before a tool deletes or overwrites something, the user is asked, if the client can: nothing happens without consent. Clients that can't are served as before.
const { existsSync, writeFileSync } = await import("node:fs");
const { finish, require, same, sleep, STET, stet, test } = await import(process.env.STET_SOURCE + "/test/mcp/tap.mjs");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const { ElicitRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const asked = [];
let answer = () => ({ action: "accept", content: {} });
async function connect(capabilities, words = ["--all-tools"]) {
    const client = new Client({ name: "test", version: "1" }, { capabilities });
    if (capabilities.elicitation) client.setRequestHandler(ElicitRequestSchema, async (request) => (asked.push(request.params), answer()));
    await client.connect(new StdioClientTransport({ command: STET, args: ["mcp", ...words], stderr: "inherit" }));
    await client.listTools();
    return client;
}
const call = (client, name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options);
const value = async (client) => (await call(client, "stet_get", { cell: "a" })).structuredContent?.value;

stet(["init"]);
let client = await connect({ elicitation: {} });
await call(client, "stet_set", { cell: "a", value: 1 });
same("the user was asked", asked.length, 1);
test("what and with what", asked[0].message.includes("stet_set") && asked[0].message.includes('"value":1'), asked);
same("and agreed", await value(client), 1);
same("reading asks nothing", asked.length, 1);

for (const action of ["decline", "cancel"]) {
    answer = () => ({ action });
    const refused = await call(client, "stet_set", { cell: "a", value: 2 });
    test(`${action}: it did not run, and says why`, refused.isError && refused.content[0].text.includes("did not agree"), refused);
    same(`${action}: nothing was changed`, await value(client), 1);
}
answer = () => { throw new Error("no window"); };
test("an error of the client is no consent", (await call(client, "stet_set", { cell: "a", value: 2 })).isError);
same("nothing was changed by it", await value(client), 1);

answer = () => ({ action: "accept", content: {} });
const before = asked.length;
await call(client, "stet_gc", { dry_run: true });
same("a dry run asks nothing", asked.length, before);
writeFileSync("p.json", '{"pattern": 1, "name": "p", "nodes": []}');
await call(client, "stet_run", { pattern: "p.json", record: true });
const run = (await call(client, "stet_runs_search")).structuredContent.records[0].runId;
const plan = (await call(client, "stet_runs_delete", { run_id: [run] })).structuredContent;
same("nor does a plan", [asked.length, plan.runs.length], [before, 1]);
answer = () => ({ action: "decline" });
await call(client, "stet_runs_delete", { run_id: [run], apply: plan.plan });
test("what the plan says is asked", asked.length === before + 1 && existsSync(`.stet/runs/${run}/state.json`), asked);
answer = () => ({ action: "accept", content: {} });
await call(client, "stet_runs_delete", { run_id: [run], apply: plan.plan });
test("and done", !existsSync(`.stet/runs/${run}`));

// A slow user keeps nobody waiting, and a call can be cancelled meanwhile.
let decide;
answer = () => new Promise((done) => (decide = done));
const slow = call(client, "stet_set", { cell: "a", value: 3 });
while (!decide) await sleep(10);
same("others are served while the user thinks", await value(client), 1);
decide({ action: "accept", content: {} });
await slow;
same("then it is done", await value(client), 3);
const stop = new AbortController();
decide = undefined;
const given = call(client, "stet_set", { cell: "a", value: 4 }, { signal: stop.signal }).catch((error) => error);
while (!decide) await sleep(10);
stop.abort("enough");
await given;
decide({ action: "accept", content: {} });
await sleep(300);
same("a call that was cancelled does nothing, whatever is answered", await value(client), 3);
await client.close();

client = await connect({});
const count = asked.length;
await call(client, "stet_set", { cell: "a", value: 5 });
same("a client that can't ask is served", [await value(client), asked.length], [5, count]);

// The second call after a failure repeats the reason, with what the command printed last.
writeFileSync("stet.toml", '[nodes.sum]\ncommand = "echo one; echo two >&2; echo no rows in table >&2; exit 3"\ncache = false\n');
await call(client, "stet_run");
const again = await call(client, "stet_run", { no_retry_failed: true });
test("the second call repeats the last lines", again.content[0].text.includes("no rows in table"), again);
const why = await call(client, "stet_why", { piece: "pipeline" });
test("so does why", why.content[0].text.includes("no rows in table"), why);
test("and status", (await call(client, "stet_status")).content[0].text.includes("no rows in table"));
await client.close();

const lists = stet(["mcp"], { input: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n' });
const list = lists.stdout.split("\n").find((line) => line.includes('"id":2'));
test("the list of tools has at most 24,000 bytes", list && list.length <= 24000, list?.length);
const wrong = stet(["mcp"], { input: '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}\n' });
test("a wrong version is named, with those that are right", /2027-01-01.*2026-07-28.*2025-11-25/.test(wrong.stdout), wrong.stdout);
finish();
