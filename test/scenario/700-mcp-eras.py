#!/usr/bin/env python3
"""`stet mcp` speaks both eras of the protocol: sessions begun with initialize, and requests that carry their version."""
import os, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

stet("init")

# ---- sessions ----
for version in LEGACY:
    s = Server("--all-tools")
    result = s.initialize(version)
    same(f"{version}: initialize agrees on it", result["protocolVersion"], version)
    test(f"{version}: who it is and what it can", result["serverInfo"]["name"] == "stet" and set(result["capabilities"]) == {"tools", "prompts", "resources", "completions", "logging"}, result)
    tools = s.request("tools/list")["result"]["tools"]
    late = version >= "2025-06-18"
    test(f"{version}: tools have what the version knows", all(("outputSchema" in t) == late and ("title" in t) == late and
         ("annotations" in t) == (version >= "2025-03-26") for t in tools), tools)
    result = s.call("stet_version")
    same(f"{version}: structured content from 2025-06-18 on", "structuredContent" in result, late)
    test(f"{version}: text in any", json.loads(result["content"][0]["text"])["version"], result)
    same(f"{version}: ping", s.request("ping").get("result"), {})
    test(f"{version}: nothing of the later era", "resultType" not in s.request("tools/list")["result"])
    same(f"{version}: server/discover is not in it", code(s.request("server/discover")), -32601)
    same(f"{version}: a second initialize", code(s.request("initialize", protocolVersion=version, capabilities={}, clientInfo={})), -32600)
    same(f"{version}: ends with its input", s.close(), (0, ""))

s = Server("--all-tools")
same("an unknown version gets the newest", s.initialize("2031-01-01")["protocolVersion"], "2025-11-25")
s.close()
s = Server("--all-tools")
same("so does the stateless one, which has no initialize", s.initialize(MODERN)["protocolVersion"], "2025-11-25")
s.close()
s = Server("--all-tools")
for params in {}, {"protocolVersion": 7}, {"protocolVersion": "2025-11-25"}, {"protocolVersion": "2025-11-25", "capabilities": [], "clientInfo": {}}:
    same(f"initialize with {params}", code(s.request("initialize", **params)), -32602)
same("ping before initialize", s.request("ping").get("result"), {})
for method in "tools/list", "tools/call", "server/discover", "no/such":
    same(f"{method} before initialize and without a version", code(s.request(method)), -32602)
test("and initialize still works", s.initialize())
same("a method that is not there", code(s.request("no/such")), -32601)
same("a level of logging", s.request("logging/setLevel", level="warning").get("result"), {})
same("a level that is none", code(s.request("logging/setLevel", level="loud")), -32602)
same("a run to complete an argument with", s.request("completion/complete", ref={"type": "ref/prompt", "name": "explain-run"}, argument={"name": "run", "value": "no"})
     ["result"]["completion"]["values"], [])
same("nothing to complete", code(s.request("completion/complete", ref={})), -32602)
same("unknown tool", code(s.request("tools/call", name="stet_frobnicate")), -32602)
same("a tool without a name", code(s.request("tools/call")), -32602)
same("a tool whose name is a number", code(s.request("tools/call", name=3)), -32602)
same("arguments that are a list", code(s.request("tools/call", name="stet_version", arguments=[])), -32602)
same("a progress token that is an object", code(s.request("tools/call", name="stet_version", _meta={"progressToken": {}})), -32602)
same("_meta that is a list", code(s.request("tools/list", _meta=[])), -32602)

# ---- stateless, on the same connection ----
answer = s.modern("server/discover")
result = answer["result"]
same("discover", (result["supportedVersions"], result["resultType"], sorted(result["capabilities"])), ([MODERN], "complete", ["completions", "prompts", "resources", "tools"]))
test("discover can be kept", result["ttlMs"] > 0 and result["cacheScope"] == "public")
for method, key in ("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources"), ("resources/templates/list", "resourceTemplates"):
    result = s.modern(method)["result"]
    test(f"stateless {method}", isinstance(result[key], list) and result["resultType"] == "complete" and isinstance(result["ttlMs"], int)
         and result["cacheScope"] in ("public", "private") and result["_meta"][META + "serverInfo"]["name"] == "stet", result)
result = s.modern("tools/call", name="stet_version", arguments={})["result"]
same("stateless call", (result["resultType"], result["isError"], result["structuredContent"]["version"]), ("complete", False, result["structuredContent"]["version"]))
for method in "ping", "initialize", "resources/subscribe", "resources/unsubscribe", "logging/setLevel", "no/such":
    same(f"stateless {method} is not there", code(s.modern(method, uri="stet://run/x")), -32601)
same("stateless unknown tool", code(s.modern("tools/call", name="stet_frobnicate")), -32602)
answer = s.modern("tools/list", {META + "protocolVersion": "1900-01-01"})
same("an unsupported version", answer["error"], {"code": -32022, "message": answer["error"]["message"], "data": {"supported": [MODERN], "requested": "1900-01-01"}})
same("a version of the other era in _meta", code(s.modern("tools/list", {META + "protocolVersion": "2025-11-25"})), -32022)
same("a version that is a number", code(s.modern("tools/list", {META + "protocolVersion": 20260728})), -32602)
same("capabilities missing", code(s.request("tools/list", _meta={META + "protocolVersion": MODERN})), -32602)
same("capabilities that are a list", code(s.modern("tools/list", {META + "clientCapabilities": []})), -32602)
same("a resource that is not there, stateless", code(s.modern("resources/read", uri="stet://run/nothing")), -32602)
same("a resource that is not there, in a session", code(s.request("resources/read", uri="stet://run/nothing")), -32002)
same("no resource's address", code(s.request("resources/read", uri="http://example.org/")), -32002)
same("the end", s.close(), (0, ""))

# ---- one era without the other ----
s = Server("--all-tools")
test("stateless without any handshake", s.modern("tools/call", name="stet_version")["result"]["isError"] is False)
same("is no session", code(s.request("tools/list")), -32602)
s.close()

# ---- batches: 2025-03-26 alone has them ----
s = Server("--all-tools")
s.initialize("2025-03-26")
s.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "stet_version"}}, 7, {"jsonrpc": "2.0", "id": 3, "method": "no/such"}])
batch = s.receive()
same("a batch is answered by a batch, notifications not", sorted((m.get("id") or 0, "result" in m) for m in batch), [(0, False), (1, True), (2, True), (3, False)])
s.send([{"jsonrpc": "2.0", "method": "notifications/x"}])
s.send([])
same("an empty batch is an error; one of notifications is silent", code(s.receive()), -32600)
s.send([{"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": {}}])
same("initialize has no place in a batch", code(s.receive()[0]), -32600)
s.send([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in range(300)])
same("a batch has a limit", code(s.receive()), -32600)
s.close()
for version in "2025-11-25", "2024-11-05":
    s = Server("--all-tools")
    s.initialize(version)
    s.send([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])
    same(f"{version} has no batches", code(s.receive()), -32600)
    s.close()
finish()
