#!/usr/bin/env python3
"""Other projects: a server without --outside changes none of them, a project that is named is looked at even if it is not listed, and hostile texts
and numbers in runs of others do no harm."""
import json, pathlib, subprocess
from tap import STET, answer, finish, stet, t

HERE = pathlib.Path.cwd()
for name in ("mine", "other"):
    (HERE / name).mkdir()
    stet("init", cwd=HERE / name)
    (HERE / name / "stet.toml").write_text('name = "w"\n[argument]\nn = 1\n[nodes.a]\ncommand = "echo {n} > a.txt"\ninputs = { n = "$argument/n" }\nproduces = "a.txt"\n')
mine, other = HERE / "mine", HERE / "other"


def mcp(*calls, flags=()):
    """The results of tool calls, one after the other."""
    lines = [{"method": "initialize", "id": 0, "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
             {"method": "notifications/initialized"}]
    lines += [{"method": "tools/call", "id": i + 1, "params": {"name": name, "arguments": args}} for i, (name, args) in enumerate(calls)]
    text = "".join(json.dumps(dict(line, jsonrpc="2.0")) + "\n" for line in lines)
    out = subprocess.run([STET, "mcp", "--all-tools", *flags], cwd=mine, input=text, capture_output=True, text=True, timeout=120).stdout
    got = {m["id"]: m for m in map(json.loads, out.splitlines()) if "id" in m}
    return [json.loads(got[i + 1]["result"]["content"][-1]["text"]) for i in range(len(calls))]


def code(result):
    return result.get("error", {}).get("code")


stet("run", cwd=mine)
run = answer("run", cwd=other)["runId"]
t("a project that is named is looked at, though it is not listed", answer("runs", "search", "--repo", other, cwd=mine)["total"] == 1)
t("also by its run", answer("runs", "show", run, "--repo", other, cwd=mine).get("found"))
r = stet("runs", "search", "--repo", HERE / "nothing", cwd=mine)
t("one that is none is an error", r.returncode == 3 and "no runs" not in r.stdout, r.stdout + r.stderr)
stet("registry", "refresh", cwd=other)

before = sorted(p.name for p in (other / ".stet/runs").iterdir())
got = mcp(("stet_queue_add", {"app": "w", "repo": str(other)}), ("stet_queue_add", {"run_id": run}), ("stet_runs_rerun", {"run_id": run}),
          ("stet_runs_archive", {"run_id": [run]}), ("stet_runs_label", {"run_id": run, "add": ["x"]}), ("stet_runs_cancel", {"run_id": run}))
t("a server changes no other project", [code(g) for g in got] == ["denied"] * 6, got)
t("nothing is queued for it", answer("queue", "list", cwd=mine)["total"] == 0)
t("its runs are as they were", before == sorted(p.name for p in (other / ".stet/runs").iterdir()))
t("reading is allowed", mcp(("stet_runs_show", {"run_id": run}))[0].get("found"))
stet("queue", "add", "--app", "w", cwd=other)
t("its queue is not worked off from here", mcp(("stet_queue_work", {}))[0].get("done") == 0)
t("with --outside all of it is", mcp(("stet_queue_add", {"app": "w", "repo": str(other)}), ("stet_queue_work", {}), flags=["--outside"])[1].get("done") == 2)

# Hostile runs.
bad = mine / ".stet/runs/hostile"
bad.mkdir()
state = {"schemaVersion": 2, "id": "hostile", "createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z", "loopStage": "done", "piece": "w",
         "title": "safe \u202egnp.exe\u202c \u2066x\u2069 \u200e\u061c\ufeff\U000e0041 f\u0131n\u200dish", "tasks": [{"id": "a", "status": "failed", "error": "x"}],
         "provenance": {"rerunOf": "hostile", "originRunId": "hostile", "generation": 9223372036854775807}}
(bad / "state.json").write_text(json.dumps(state))
shown = stet("runs", "list", "--scope", "repo", cwd=mine).stdout + stet("runs", "show", "hostile", cwd=mine).stdout
t("marks of direction and other format characters do not reach the terminal", not set(shown) & set("\u202e\u202c\u2066\u2069\u200e\u061c\ufeff\U000e0041"), ascii(shown))
t("what is part of a word does", "f\u0131n\u200dish" in shown, ascii(shown))
again = answer("runs", "rerun", "hostile", cwd=mine)
t("a generation is always a number that can be counted on", 0 < again["provenance"]["generation"] <= 2**53, again)
again = answer("runs", "rerun", again["newRunId"], cwd=mine)
t("and another one", 0 < again["provenance"]["generation"] <= 2**53 + 1, again)
finish(mine)
