#!/usr/bin/env python3
"""An agent that has the default tools and nothing else: from an empty directory to a pipeline that fails, is explained, mended, run, found and
repeated. It may take 25 calls and 120,000 bytes, there and back, the list of tools among them."""
import json, os, pathlib, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

LIST_MAX, CALLS_MAX, BYTES_MAX = 24000, 25, 120000
pathlib.Path("empty").mkdir()
os.chdir("empty")
s = Server()
calls = sent = 0


def said(tool):
    """`stet_runs_resume {"run_id": ...}`: a next step, as a call."""
    name, _, arguments = tool.partition(" ")
    return name, json.loads(arguments or "{}")


def call(tool, arguments={}):
    global calls, sent
    calls += 1
    sent += len(json.dumps({"name": tool, "arguments": arguments}))
    answer = s.call(tool, arguments)
    return json.loads(answer["content"][-1]["text"])


s.initialize()
sent += 200
tools = s.request("tools/list")["result"]["tools"]
listed = len(json.dumps({"tools": tools}, separators=(",", ":")))
test(f"the list of tools has {listed} bytes, at most {LIST_MAX}", listed <= LIST_MAX)
offered = {tool["name"] for tool in tools}
test("no tool in it is for housekeeping", not offered & {"stet_gc", "stet_doctor", "stet_check"}, offered)

# Nothing is there: the error names the tool that helps.
answer = call("stet_status")
name, arguments = said(answer["error"]["hint"].split("`")[1])
test("an empty directory: the hint is a tool", name == "stet_init" and name in offered, answer)
test("which makes a project", call(name, arguments).get("created"))

# A pipeline with a mistake in its text, then with one in its command.
good = """name = "report"
[argument]
least = 3
[nodes.rows]
command = "seq 5 > rows.txt"
produces = "rows.txt"
[nodes.pick]
command = "awk '$1 >= {least}' {in} > picked.txt; echo picking from {least}; test -e ok.txt || { echo no ok.txt here; exit 3; }"
files = "$rows.out"
inputs = { least = "$argument/least" }
produces = "picked.txt"
[nodes.count]
command = "wc -l < {in}"
files = "$pick.out"
stdout = "json"
[result]
count = "$count/stdout"
"""
answer = call("stet_pattern_write", {"text": good.replace("files = \"$rows.out\"", "file = \"$rows.out\"")})
test("a mistake is named with its line and a fix", not answer["written"] and answer["problems"][0]["line"] == 9 and "files" in answer["problems"][0]["fix"], answer)
test("checked without being written", call("stet_pattern_check", {"text": good})["ok"])
test("and written", call("stet_pattern_write", {"text": good}).get("written"))
failed = call("stet_run")
problem = failed["problems"][0]
test("the run fails, and what the command printed is told", failed["failed"] == 1 and problem["node"] == "pick" and "no ok.txt here" in json.dumps(problem), failed)
again = call("stet_run")
test("the second call tells it again", "no ok.txt here" in json.dumps(again["problems"]), again)
answer = call("stet_why", {"piece": "report"})
test("why explains", "pick" in json.dumps(answer), answer)
answer = call("stet_runs_logs", {"run_id": failed["runId"]})
test("the log of the run is there", "no ok.txt here" in json.dumps(answer), answer)
answer = call("stet_runs_search", {"status": "failed"})  # a text where a list is expected
test("the failed run is found, newest first", answer["total"] == 2 and answer["records"][0]["runId"] == again["runId"], answer)
test("with the reason", "no ok.txt here" in answer["records"][0]["failure"]["message"], answer)
test("in few bytes", len(json.dumps(answer)) < 1000, len(json.dumps(answer)))
shown = call("stet_runs_show", {"run_id": failed["runId"]})
name, arguments = said(shown["nextAction"])
test("what to do next is a tool", name == "stet_runs_resume" and arguments == {"run_id": failed["runId"], "drive": True}, shown)

# Mended: by the pattern.
test("the pattern is mended", call("stet_pattern_write", {"text": good.replace("; test -e ok.txt || { echo no ok.txt here; exit 3; }", "")}).get("written"))
answer = call(name, arguments)
test("the next step works", answer["drive"]["status"] == "completed", answer)
done = call("stet_run")
test("the pipeline has a result", done["failed"] == 0 and done["result"]["count"] == 3, done)
test("an argument is set", call("stet_run", {"set": {"least": 5}})["result"]["count"] == 1)
test("status says that all is well", call("stet_status")["pieces"][0]["failed"] == 0)
entry = call("stet_queue_add", {"app": "report", "input": {"least": 2}})
test("work is queued, and done", call("stet_queue_work").get("done") == 1, entry)
found = call("stet_runs_search", {"text": "least=2"})
test("its run is found by its input", found["total"] == 1 and found["records"][0]["lifecycle"] == "completed", found)
repeated = call("stet_runs_rerun", {"run_id": found["records"][0]["runId"], "drive": True})
test("and repeated", repeated["drive"]["status"] == "completed" and repeated["nextActions"], repeated)
shown = call(*said(repeated["nextActions"][0]["command"]))
test("with the same argument and result", shown["argument"] == {"least": 2} and shown["result"]["count"] == 4, shown)

received = sum(map(len, s.raw))
test(f"{calls} calls, at most {CALLS_MAX}", calls <= CALLS_MAX)
test(f"{sent} bytes there and {received} back, at most {BYTES_MAX}", sent + received <= BYTES_MAX)
same("ends well", s.close(), (0, ""))

# What is left out for a model can be had.
s = Server()
s.initialize()
whole = json.loads(s.call("stet_runs_show", {"run_id": failed["runId"], "fields": "*"})["content"][-1]["text"])
printed = json.loads(stet("runs", "show", failed["runId"], "--json").stdout)
test("fields gives all of it", whole["record"] == printed["record"], whole)
some = json.loads(s.call("stet_runs_search", {"fields": ["statePath"], "limit": 1})["content"][-1]["text"])
test("or one member more", "statePath" in some["records"][0] and "runDir" not in some["records"][0], some)
values = s.request("completion/complete", ref={"type": "ref/resource", "uri": "stet://run/{id}"}, argument={"name": "id", "value": failed["runId"][:8]})["result"]["completion"]
test("ids of runs are completed", failed["runId"] in values["values"], values)
s.close()
r = stet("check")
test("stet check finds nothing", r.returncode == 0, r.stdout)
finish()
