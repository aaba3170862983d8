#!/usr/bin/env node
// The official clients of both eras: connect, list, call every tool with its examples, read, cancel, progress, many at once.
const { fails, finish, fresh, prepare, require, same, sleep, STET, stet, test } = await import(process.env.STET_SOURCE + "/test/mcp/tap.mjs");
const v1 = { ...require("@modelcontextprotocol/sdk/client/index.js"), ...require("@modelcontextprotocol/sdk/client/stdio.js") };
const v2 = { ...require("@modelcontextprotocol/client"), ...require("@modelcontextprotocol/client/stdio") };

const eras = {
    session: async (words, where) => {
        const client = new v1.Client({ name: "test", version: "1" });
        await client.connect(new v1.StdioClientTransport({ command: STET, args: ["mcp", ...words], stderr: "inherit", ...where }));
        return client;
    },
    stateless: async (words, where) => {
        const client = new v2.Client({ name: "test", version: "1" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
        await client.connect(new v2.StdioClientTransport({ command: STET, args: ["mcp", ...words], stderr: "inherit", ...where }));
        return client;
    },
};

async function everyTool(client) {
    const tools = [];
    let cursor, pages = 0;
    do {
        const page = await client.listTools(cursor ? { cursor } : undefined);
        tools.push(...page.tools);
        cursor = page.nextCursor;
        pages++;
    } while (cursor);
    return { tools, pages };
}

prepare();
const operations = JSON.parse(stet(["help", "--json"]).stdout).operations.filter((o) => !o.flags.includes("cliOnly"));

for (const [era, connect] of Object.entries(eras)) {
    let client = await connect(["--all-tools"], fresh());
    same(`${era}: server`, client.getServerVersion()?.name, "stet");
    test(`${era}: instructions`, client.getInstructions()?.includes("stet"));
    test(`${era}: capabilities`, client.getServerCapabilities().resources.subscribe);
    const { tools } = await everyTool(client);
    same(`${era}: every operation is a tool`, tools.length, operations.length + 1);
    await client.close();

    client = await connect(["--all-tools", "--page-size", "7"], fresh());
    if (era === "session") { // the later client follows the pages by itself
        const paged = await everyTool(client);
        same(`${era}: the same in pages`, [paged.tools.map((t) => t.name), paged.pages], [tools.map((t) => t.name), Math.ceil(tools.length / 7)]);
        await fails(`${era}: a cursor of nobody`, client.listTools({ cursor: "x" }), /-32602/);
    }
    await client.close();

    // The client checks each structured result against the output schema.
    const common = new Set(JSON.parse(stet(["mcp", "--list", "--json"]).stdout).tools.map((t) => t.name));
    for (const tool of tools) {
        if (era === "stateless" && !common.has(tool.name)) continue; // all of them once is enough
        for (const example of tool.inputSchema.examples ?? []) {
            client = await connect(["--allow", tool.name], fresh()); // few schemas to compile
            await everyTool(client);
            try {
                const result = await client.callTool({ name: tool.name, arguments: example });
                test(`${era}: ${tool.name} ${JSON.stringify(example)}`, !result.isError && result.structuredContent, result);
            } catch (error) {
                test(`${era}: ${tool.name} ${JSON.stringify(example)}`, false, error);
            }
            await client.close();
            if (era === "stateless") break;
        }
    }

    client = await connect(["--all-tools"], fresh());
    await fails(`${era}: an unknown tool`, client.callTool({ name: "stet_frobnicate", arguments: {} }), /-32602/);
    for (const [name, args, pattern] of [
        ["stet_version", { frob: 1 }, /no parameter/],
        ["stet_gc", { dry_run: "true" }, /boolean expected/],
        ["stet_gc", { dry_run: 0 }, /boolean expected/],
        ["stet_runs_list", { limit: "5" }, /integer expected/],
        ["stet_runs_list", { limit: 1.5 }, /integer expected/],
        ["stet_runs_list", { order: "sideways" }, /none of/],
        ["stet_runs_list", { status: "done" }, /array expected|none of/],
        ["stet_runs_show", {}, /missing/],
    ]) {
        const result = await client.callTool({ name, arguments: args });
        test(`${era}: ${name} ${JSON.stringify(args)} is refused`, result.isError && pattern.test(result.content[0].text) &&
            JSON.parse(result.content[0].text).error.code === "invalid", result);
    }

    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) =>
        i % 3 ? client.callTool({ name: "stet_version", arguments: {} }) : client.callTool({ name: "stet_runs_list", arguments: { limit: 1 + i } })));
    test(`${era}: two hundred at once`, answers.every((a, i) => !a.isError && (i % 3 ? a.structuredContent.version : a.structuredContent.limit === 1 + i)));

    // A slow one, cancelled; quick ones beside it.
    const stop = new AbortController();
    let ended = "";
    const slow = client.callTool({ name: "stet_runs_tail", arguments: {} }, ...(era === "session" ? [undefined] : []), { signal: stop.signal })
        .then(() => (ended = "answered"), () => (ended = "cancelled"));
    await sleep(50);
    const begun = performance.now();
    await client.callTool({ name: "stet_version", arguments: {} });
    test(`${era}: a quick call beside a slow one`, performance.now() - begun < 1000 && ended === "", `${performance.now() - begun} ms ${ended}`);
    stop.abort("enough");
    await slow;
    same(`${era}: the slow one is cancelled`, ended, "cancelled");
    test(`${era}: and the server serves on`, (await client.callTool({ name: "stet_version", arguments: {} })).structuredContent);

    const { prompts } = await client.listPrompts();
    test(`${era}: prompts`, prompts.some((p) => p.name === "check-project"));
    const prompt = await client.getPrompt({ name: "explain-run", arguments: { run: "20261115T17" } });
    test(`${era}: a prompt with its argument`, prompt.messages[0].content.text.includes("20261115T17"), prompt);
    await fails(`${era}: a prompt without its argument`, client.getPrompt({ name: "explain-run", arguments: {} }), /missing/);
    const { resourceTemplates } = await client.listResourceTemplates();
    test(`${era}: resource templates`, resourceTemplates.some((t) => t.uriTemplate === "stet://run/{id}"));
    const { resources } = await client.listResources();
    test(`${era}: resources`, resources.length > 0, resources);
    for (const kind of new Set(resources.map((r) => r.uri.split("/")[2]))) {
        const { uri } = resources.find((r) => r.uri.startsWith(`stet://${kind}/`));
        const { contents } = await client.readResource({ uri });
        test(`${era}: reading ${uri}`, contents[0].uri === uri && JSON.parse(contents[0].text), contents);
    }
    const pid = client.transport.pid;
    await client.close();
    let there = true;
    try { process.kill(pid, 0); } catch { there = false; }
    test(`${era}: the server ends with its client`, !there);
}

// A client that speaks both finds out by asking.
const both = new v2.Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
await both.connect(new v2.StdioClientTransport({ command: STET, args: ["mcp", "--all-tools"], ...fresh() }));
test("a client of both eras connects", (await both.callTool({ name: "stet_version", arguments: {} })).structuredContent);
same("and chooses the later", both.getNegotiatedProtocolVersion?.() ?? both.protocolVersion, "2026-07-28");
await both.close();
finish();
