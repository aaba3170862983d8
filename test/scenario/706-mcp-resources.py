#!/usr/bin/env python3
"""Documents, runs, pieces and graphs as resources: listed, read as the command prints them, and watched for changes."""
import os, sys, urllib.parse
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

prepare()
where = fresh()
os.chdir(where["cwd"])
os.environ["STET_HOME"] = where["env"]["STET_HOME"]
odd = "a/b ~ä%?#"
stet("set", "--space", "other", odd.replace("~", "~0").replace("/", "~1"), '{"x":1}')
stet("doc", "set", "note", '"scoped"', "--scope", "user/1")


def encode(text):
    return urllib.parse.quote(text, safe="-._~:")


# ---- list and read ----
s = Server()
s.initialize()
templates = [t["uriTemplate"] for t in s.request("resources/templates/list")["result"]["resourceTemplates"]]
same("templates", templates, ["stet://doc/{space}/{id}", "stet://graph/{space}/{piece}", "stet://piece/{space}/{piece}", "stet://run/{id}"])
listed = [r["uri"] for r in s.request("resources/list")["result"]["resources"]]
same("sorted by address", listed, sorted(listed))
runs = ["20261115T174500Z-report-0a1b2c3d", "20261115T180000Z-report-4e5f6a7b"]
for uri, words in [
    ("stet://doc/main/config", ["doc", "get", "config"]),
    ("stet://doc/other/" + encode(odd), ["doc", "get", "--space", "other", odd.replace("~", "~0").replace("/", "~1")]),
    ("stet://doc/main/note?scope=" + encode("user/1"), ["doc", "get", "note", "--scope", "user/1"]),
    ("stet://run/" + runs[0], ["runs", "show", runs[0]]),
    ("stet://piece/main/totals", ["piece", "show", "totals"]),
    ("stet://graph/main/totals", ["piece", "graph", "totals"]),
]:
    test(f"{uri} is listed", uri in listed, listed)
    printed = json.loads(stet(*words, "--json").stdout)
    contents = s.request("resources/read", uri=uri)["result"]["contents"]
    same(f"{uri} is what the command prints", (contents[0]["uri"], contents[0]["mimeType"], contents[0]["text"]), (uri, "application/json", canonical(printed)))
for uri in ["stet://doc/main/nothing", "stet://doc/nowhere/config", "stet://doc/main", "stet://doc/main/", "stet://doc/main/a/b/c", "stet://doc//x", "stet://doc/main/%", "stet://doc/main/%zz",
            "stet://doc/main/%ff", "stet://doc/main/%00", "stet://doc/main/config#x", "stet://doc/main/config?branch=x", "stet://doc/../config", "stet://run/" + runs[0] + "?scope=x", "stet://",
            "stet:", "", "file:///etc/passwd", "stet://frob/x", "stet://run/" + "x" * 5000, "STET://run/x"]:
    answer = s.request("resources/read", uri=uri)
    test(f"no resource: {uri[:50]}", code(answer) in (-32002, -32602) and answer["error"]["message"], answer)
same("in pages too", s.close()[0], 0)
s = Server("--page-size", "4")
paged, cursor = [], {}
while True:
    result = s.modern("resources/list", **cursor)["result"]
    paged += [r["uri"] for r in result["resources"]]
    if "nextCursor" not in result or len(result["resources"]) != 4:
        break
    cursor = {"cursor": result["nextCursor"]}
same("the same list in pages", paged, listed)
s.close()
stet("set", "big", json.dumps(["x" * 50] * 100))
s = Server("--max-result", "2000")
s.initialize()
content = s.request("resources/read", uri="stet://doc/main/big")["result"]["contents"][0]
page = content["_meta"]["stet/page"]
text = content["text"]
while page["next"] is not None:
    page = s.call("stet_result", {"result": page["result"], "offset": page["next"]})["structuredContent"]["page"]
    text += page["text"]
same("a large one comes in pages", json.loads(text)["value"], ["x" * 50] * 100)
s.close()

# ---- changes: a session ----
config, run = "stet://doc/main/config", "stet://run/" + runs[0]
state = f".stet/runs/{runs[0]}/state.json"


def touch_run(stage):
    text = json.load(open(state))
    text["loopStage"] = stage
    with open(state + ".new", "w") as f:
        json.dump(text, f)
    os.rename(state + ".new", state)


def updated(s, uri, timeout=10):
    return s.wait_for(lambda m: m.get("method") == "notifications/resources/updated" and m["params"]["uri"] == uri, timeout)


s = Server()
s.initialize()
for uri in config, run, "stet://doc/main/later":
    same(f"subscribe to {uri}", s.request("resources/subscribe", uri=uri).get("result"), {})
same("subscribe to nothing that could be", code(s.request("resources/subscribe", uri="http://x/")), -32002)
stet("set", "config/theme", '"blue"')
test("a document changed by another process is told", updated(s, config))
stet("set", "unrelated", "1")
touch_run("settling")
test("so is a run", updated(s, run))
stet("set", "later", "1")
test("and a document that was not there before", updated(s, "stet://doc/main/later"))
stet("doc", "delete", "later")
test("and one that goes", updated(s, "stet://doc/main/later"))
same("nothing else was told", [m for m in s.kept if "method" in m], [])
s.request("resources/unsubscribe", uri=config)
stet("set", "config/theme", '"red"')
touch_run("running")
test("after unsubscribing only the other is told", updated(s, run) and not updated(s, config, 0.6))
same("no word of the list before it was asked for", [m for m in s.kept if "list_changed" in m.get("method", "")], [])
s.request("resources/list")
stet("set", "brandnew", "1")
test("afterwards a change of the list is told", s.wait_for(lambda m: m.get("method") == "notifications/resources/list_changed"))
same("ends", s.close(), (0, ""))

# ---- changes: stateless ----
s = Server()
first = s.begin_modern("subscriptions/listen", notifications={"resourceSubscriptions": [config, "http://x/"], "toolsListChanged": True})
ack = s.receive()
same("acknowledged is what can be honoured", (ack["method"], ack["params"]["notifications"], ack["params"]["_meta"]),
     ("notifications/subscriptions/acknowledged", {"resourceSubscriptions": [config]}, {META + "subscriptionId": first}))
second = s.begin_modern("subscriptions/listen", id="two", notifications={"resourcesListChanged": True, "resourceSubscriptions": [config]})
s.receive()
stet("set", "config/theme", '"green"')
got = [updated(s, config), updated(s, config)]
same("each subscription is told, with its id", {m["params"]["_meta"][META + "subscriptionId"] for m in got if m}, {first, "two"})
s.notify("notifications/cancelled", requestId=first)
stet("set", "another", "1")
changed = s.wait_for(lambda m: m.get("method") == "notifications/resources/list_changed")
same("a change of the list is told to who asked for it", changed["params"]["_meta"][META + "subscriptionId"], "two")
stet("set", "config/theme", '"grey"')
test("a cancelled subscription is told nothing more", updated(s, config)["params"]["_meta"][META + "subscriptionId"] == "two" and not updated(s, config, 0.6))
for bad in {}, {"notifications": []}, {"notifications": {"resourcesListChanged": 1}}, {"notifications": {"resourceSubscriptions": "x"}}, {"notifications": {"resourceSubscriptions": [1]}}:
    same(f"subscriptions/listen with {bad}", code(s.modern("subscriptions/listen", **bad)), -32602)
s.process.stdin.close()
end = s.answer("two")
same("when the server ends, the subscription is answered", end["result"]["_meta"][META + "subscriptionId"], "two")
same("ends", s.ended(), (0, ""))
finish()
