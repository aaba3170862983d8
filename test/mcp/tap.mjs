// tap.mjs - TAP, and the official clients of the protocol, for the scenarios in JavaScript.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

export const STET = process.env.STET;
const source = process.env.STET_SOURCE;
const packages = execFileSync(join(source, "test/mcp/npm.sh"), { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
export const require = createRequire(join(packages, "index.js"));
process.env.STET_CHECK_RESULTS = "1";

let count = 0, failed = 0;
export function test(name, good, note = "") {
    count++;
    if (!good) failed++;
    console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
    if (!good && note !== "") console.log("# " + String(typeof note === "string" ? note : JSON.stringify(note)).slice(0, 3000).replaceAll("\n", "\n# "));
}
export const same = (name, got, want) =>
    test(name, canonical(got) === canonical(want), `expected: ${canonical(want)}\n  got:      ${canonical(got)}`);
export async function fails(name, promise, pattern) {
    try {
        test(name, false, await promise);
    } catch (error) {
        test(name, pattern.test(String(error.code) + " " + error.message), String(error));
    }
}
export function finish() {
    console.log(`1..${count}`);
    process.exit(failed ? 1 : 0);
}

/** JSON with sorted keys, as stet prints it. */
export function canonical(value) {
    if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
    if (value && typeof value === "object")
        return "{" + Object.keys(value).sort().map((key) => JSON.stringify(key) + ":" + canonical(value[key])).join(",") + "}";
    return JSON.stringify(value) ?? "undefined";
}

export const stet = (words, options = {}) => spawnSync(STET, words, { encoding: "utf8", ...options });

/** The project of the table's examples, made once, and copies of it at always the same path. */
export function prepare() {
    mkdirSync("prepared");
    const options = { cwd: "prepared", env: { ...process.env, STET_HOME: join(process.cwd(), "prepared-home") }, encoding: "utf8" };
    stet(["init"], options);
    const made = spawnSync("bash", [join(source, "test/scenario/fixture.sh")], options);
    test("the fixture can be prepared", made.status === 0, made.stdout + made.stderr);
}
export function fresh() {
    const cwd = join(process.cwd(), "work"), home = join(process.cwd(), "work-home");
    for (const [from, to] of [["prepared", cwd], ["prepared-home", home]]) {
        rmSync(to, { recursive: true, force: true });
        if (existsSync(from)) cpSync(from, to, { recursive: true, verbatimSymlinks: true });
    }
    const registry = join(home, "registry");
    for (const name of existsSync(registry) ? readdirSync(registry) : [])
        if (name.endsWith(".json"))
            writeFileSync(join(registry, name), readFileSync(join(registry, name), "utf8").replaceAll(join(process.cwd(), "prepared"), cwd));
    return { cwd, env: { ...process.env, STET_HOME: home } };
}
export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
