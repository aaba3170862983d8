#!/usr/bin/env python3
"""Every operation gives over MCP, with --whole, what it prints with --json, byte for byte; its schemas, hints and examples hold."""
import os, shlex, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

prepare()
table = json.loads(stet("help", "--json").stdout)["operations"]
listed = json.loads(stet("mcp", "--list", "--all-tools", "--whole", "--json").stdout)["tools"]
tools = {t["name"]: t for t in listed}
same("tools are sorted by name", [t["name"] for t in listed], sorted(tools))
names = {"stet_" + op["name"].replace(" ", "_").replace("-", "_") for op in table if "cliOnly" not in op["flags"]}
same("every operation is a tool, and stet_result beside them", set(tools), names | {"stet_result"})
common = {t["name"] for t in json.loads(stet("mcp", "--list", "--json").stdout)["tools"]}
same("by default those that whole jobs need", common, {"stet_" + name for name in (
    "get init pattern_check pattern_write piece_send queue_add queue_work result run runs_logs runs_rerun runs_resume runs_search runs_show set status why").split()})

for op in table:
    if "cliOnly" in op["flags"]:
        continue
    tool = tools["stet_" + op["name"].replace(" ", "_").replace("-", "_")]
    hints, flags = tool["annotations"], op["flags"]
    test(f"{op['name']}: hints", hints["readOnlyHint"] == ("readOnly" in flags and "destructive" not in flags) and
         hints["destructiveHint"] == ("destructive" in flags) and not (hints["readOnlyHint"] and hints["destructiveHint"]), hints)
    test(f"{op['name']}: described", tool["title"] == op["summary"] and tool["description"].startswith(op["summary"]) and
         tool["inputSchema"]["additionalProperties"] is False and tool["outputSchema"]["type"] == "object", tool)
    inputs = {k: v for k, v in tool["inputSchema"].items() if k != "examples"}
    same(f"{op['name']}: input schema", canonical(inputs), canonical(op["argumentsSchema"]))
    own = tool["outputSchema"]["anyOf"][0]
    same(f"{op['name']}: output schema", canonical({**own, **{k: tool["outputSchema"][k] for k in ["$defs"] if k in tool["outputSchema"]}}),
         canonical(op["resultSchema"]))
    examples = tool["inputSchema"]["examples"]
    test(f"{op['name']}: an example that a client can call", examples)

    # Which example of the table is which of the tool: those that a client can't give are left out there.
    given = iter(examples)
    arguments = next(given, None)
    for example in op["examples"]:
        if arguments is None:
            break
        words = example["command"].replace(" --json", "")
        if any(c in words for c in "|<>") or "-" in shlex.split(words):
            continue

        def command():
            done = subprocess.run(["bash", "-c", f"{shlex.quote(STET)} --json {words}"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, **fresh())
            return json.loads(done.stdout.splitlines()[-1])

        printed = command()
        s = Server("--all-tools", "--whole", "--outside", **fresh())
        s.initialize()
        answer = s.call(tool["name"], arguments)
        got = answer.get("structuredContent")
        # What two runs of the command itself do not agree on (times, random ids) is no difference.
        places = []
        for _ in range(20):
            if canonical(masked(got, places)) == canonical(masked(printed, places)):
                break
            places += volatile(printed, command())
        same(f"{words}: the same over MCP", canonical(masked(got, places)), canonical(masked(printed, places)))
        same(f"{words}: and as text", answer["content"][-1]["text"], canonical(got))
        same(f"{words}: ends well", s.close(), (0, ""))
        arguments = next(given, None)
finish()
