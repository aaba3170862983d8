#!/usr/bin/env python3
"""What a client may do is what the server was started for: filters, read-only, paths, sizes, and strict inputs."""
import os, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

os.makedirs("outside")
os.makedirs("project/sub")
os.chdir("project")
stet("init")
os.symlink("../outside", "link")
os.symlink("/nonexistent/x", "dangling")


def offered(*words):
    return [t["name"] for t in json.loads(stet("mcp", "--list", "--json", *words).stdout)["tools"]]


# ---- which tools ----
table = {"stet_" + op["name"].replace(" ", "_").replace("-", "_"): op for op in json.loads(stet("help", "--json").stdout)["operations"]}
test("the default set is small", 5 <= len(offered()) <= 40, offered())
changing = [n for n in offered("--all-tools", "--read-only") if n != "stet_result" and ("readOnly" not in table[n]["flags"] or "destructive" in table[n]["flags"])]
same("read-only leaves nothing that changes anything", changing, [])
test("but what only looks is there: check, status, why", {"stet_check", "stet_status", "stet_why", "stet_action_list", "stet_action_show"} <= set(offered("--all-tools", "--read-only")))
same("allow", offered("--allow", "project list", "--allow", "stet_version"), ["stet_project_list", "stet_result", "stet_version"])
same("allow with a star, and deny", offered("--allow", "project *", "--deny", "project_remove", "--deny", "result"), ["stet_project_add", "stet_project_list"])
same("deny is stronger", offered("--allow", "version", "--deny", "*"), [])
test("command-line words are never tools", not {"stet_mcp", "stet_help"} & set(offered("--all-tools")))
for flag in "--allow", "--deny":
    done = stet("mcp", "--list", flag, "docc get")
    test(f"{flag} with a pattern that fits nothing is refused", done.returncode == 2 and "no tool fits" in done.stderr, done)
s = Server("--read-only", "--all-tools")
s.initialize()
answer = s.request("tools/call", name="stet_project_add", arguments={})
test("a tool that is not offered is unknown, and it is said why", code(answer) == -32602 and "read-only" in answer["error"]["message"], answer)
answer = s.request("tools/call", name="stet_versoin")
test("a misspelt one gets the near one named", code(answer) == -32602 and "stet_version" in answer["error"]["message"], answer)
s.close()
s = Server("--deny", "runs *")
s.initialize()
same("what is denied is no resource either", (s.request("resources/templates/list")["result"]["resourceTemplates"][-1:] or [{}])[0].get("name") == "run", False)
same("nor readable", code(s.request("resources/read", uri="stet://run/abcdefgh")), -32002)
same("no prompt speaks of it", [p["name"] for p in s.request("prompts/list")["result"]["prompts"] if "run" in p["name"]], [])
s.close()

# ---- inputs mean what they say ----
s = Server("--all-tools")
s.initialize()
for tool, arguments, word in [
    ("stet_version", {"x": 1}, "no parameter"), ("stet_gc", {"dry_run": "false"}, "boolean"), ("stet_gc", {"dry_run": 1}, "boolean"), ("stet_gc", {"dry_run": None}, "boolean"),
    ("stet_gc", {"dry_run": "yes"}, "boolean"), ("stet_gc", {"dry-run": True, "dry_run": True}, "twice"), ("stet_check", {"only": 7}, "array"), ("stet_check", {"only": ["memoryy"]}, "no store"),
    ("stet_runs_list", {"limit": "1"}, "integer"), ("stet_runs_list", {"limit": 1.5}, "integer"), ("stet_runs_list", {"limit": True}, "integer"), ("stet_runs_list", {"limit": 100000000}, "100000000"),
    ("stet_runs_list", {"limit": -1}, "-1"), ("stet_runs_list", {"since": "soonish"}, "since"), ("stet_runs_list", {"order": "up"}, "none of"), ("stet_runs_show", {}, "missing"),
    ("stet_runs_show", {"run_id": 7}, "string"), ("stet_init", {"dir": ""}, "empty"), ("stet_init", {"dir": "a\0b"}, "NUL"),
]:
    result = s.call(tool, arguments)
    error = json.loads(result["content"][0]["text"])["error"] if result["isError"] else {}
    test(f"{tool} {json.dumps(arguments)} is refused", error.get("code") == "invalid" and word in error["message"] and "structuredContent" not in result, result)
dry = s.call("stet_gc", {"dry_run": True})["structuredContent"]
same("a boolean that is true is true", dry["dryRun"] if "dryRun" in dry else dry.get("dry_run"), True)
test("hyphens are taken too", not s.call("stet_gc", {"dry-run": True})["isError"])

# ---- paths stay inside ----
for path in "..", "../outside", "/", "/etc", "sub/../../outside", "link", "link/new", "dangling", "/proc/self/cwd/../outside", "./sub/../..":
    result = s.call("stet_init", {"dir": path})
    error = json.loads(result["content"][0]["text"]).get("error", {})
    test(f"a path that leaves the project: {path}", result["isError"] and error["code"] == "denied" and "--outside" in error["hint"], result)
same("and nothing was made there", os.listdir("../outside"), [])
for path in ".", "sub", "sub/new", os.getcwd() + "/sub/other", "sub/../sub":
    test(f"a path inside: {path}", not s.call("stet_init", {"dir": path})["isError"])
s.close()
s = Server("--outside")
s.initialize()
test("unless it was started so", not s.call("stet_init", {"dir": "../outside"})["isError"] and os.path.isdir("../outside/.stet"))
s.close()
os.makedirs("../bare/deep")
s = Server(cwd="../bare/deep")
s.initialize()
test("without a project the current directory is the bound", s.call("stet_init", {"dir": ".."})["isError"] and not s.call("stet_init", {"dir": "x"})["isError"])
s.close()
s = Server("--project", os.getcwd() + "/sub", cwd="/")
s.initialize()
same("--project: paths begin there", s.call("stet_init", {"dir": "made"})["structuredContent"]["root"], os.path.realpath("sub/made"))
s.close()

# ---- sizes ----
for i in range(60):
    os.makedirs(f"p{i}")
    stet("init", f"p{i}")
    stet("project", "add", f"p{i}")
whole = stet("project", "list", "--json").stdout.rstrip("\n")
test("a result larger than the limit", len(whole) > 3000)
s = Server("--all-tools", "--max-result", "1024", "--page-size", "3")
s.initialize()
result = s.call("stet_project_list")
page = result["structuredContent"]["page"]
same("comes as its first page, not as a failure", (result["isError"], page["offset"], page["bytes"], result["content"][0]["text"]), (False, 0, len(whole), page["text"]))
text, seen = page["text"], 1
while page["next"] is not None:
    page = s.call("stet_result", {"result": page["result"], "offset": page["next"]})["structuredContent"]["page"]
    text += page["text"]
    seen += 1
same("and the pages together are what the command prints", text, whole)
test("in several pages", seen > 3)
for arguments in {"result": "r0"}, {"result": page["result"], "offset": 10**9}, {"result": page["result"], "offset": -1}, {"result": page["result"], "offset": "0"}, {"offset": 0}, {"result": page["result"], "x": 1}:
    test(f"stet_result {json.dumps(arguments)[:60]} is an error", s.call("stet_result", arguments)["isError"])
names, cursor = [], {}
for _ in range(100):
    answer = s.request("tools/list", **cursor)["result"]
    names += [t["name"] for t in answer["tools"]]
    if len(answer["tools"]) > 3 or "nextCursor" not in answer:
        break
    cursor = {"cursor": answer["nextCursor"]}
same("lists come in pages, in a fixed order", names, offered("--all-tools"))
for cursor in "", "x", "after:", 7, None, {}:
    same(f"a cursor that was never given: {cursor!r}", code(s.request("tools/list", cursor=cursor)), -32602)
s.close()
s = Server("--all-tools", "--log", "info")
s.initialize()
s.call("stet_doctor")
status, error = s.close()
test("the log goes to standard error", status == 0 and "doctor: ok" in error and all(line.startswith(b"{") for line in s.raw), error)
same("wrong words", stet("mcp", "--threads", "1").returncode, 2)
finish()
