#!/usr/bin/env python3
"""Frames that are wrong in every way: the right error, no crash, no hang, and the next frame is served."""
import os, random, sys
sys.path.insert(0, os.environ["STET_SOURCE"] + "/test/mcp")
from wire import *

stet("init")
ping = b'{"jsonrpc":"2.0","id":"p","method":"ping"}'

s = Server("--max-frame", "4096")
s.initialize()


def alive():
    s.send_bytes(ping + b"\n")
    return s.answer("p") == {"jsonrpc": "2.0", "id": "p", "result": {}}


for name, frame, want in [
    ("no JSON", b"hello", -32700),
    ("half a message", b'{"jsonrpc":"2.0","id":1,"meth', -32700),
    ("invalid UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', -32700),
    ("a lone surrogate", b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700),
    ("a NUL", b'{"jsonrpc":"2.0","id":1,"method":"ping"}\x00', -32700),
    ("a key twice", b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
    ("two messages on a line", ping + ping, -32700),
    ("too deep", b"[" * 1000 + b"]" * 1000, -32700),
    ("a number too large for an id", b'{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}', -32700),
    ("a string", b'"ping"', -32600),
    ("a number", b"7", -32600),
    ("null", b"null", -32600),
    ("a batch", b"[" + ping + b"]", -32600),
    ("no version of JSON-RPC", b'{"id":1,"method":"ping"}', -32600),
    ("JSON-RPC 1.0", b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
    ("JSON-RPC 2 as a number", b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
    ("a null id", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600),
    ("a boolean id", b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
    ("an array as id", b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600),
    ("an object as id", b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
    ("a broken number as id", b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
    ("an id too long", b'{"jsonrpc":"2.0","id":"' + b"x" * 1100 + b'","method":"ping"}', -32600),
    ("no method", b'{"jsonrpc":"2.0","id":1}', -32600),
    ("a method that is a number", b'{"jsonrpc":"2.0","id":1,"method":1}', -32600),
    ("a notification with an id", b'{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}', -32600),
    ("params that are a list", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
    ("params that are null", b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32602),
    ("an unknown method", b'{"jsonrpc":"2.0","id":1,"method":"\\u0000"}', -32601),
    ("too long", b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 5000 + b'"}', -32600),
    ("much too long", b"x" * 1000000, -32600),
]:
    s.send_bytes(frame + b"\n")
    message = s.receive()
    test(f"{name}: {want}", code(message) == want and message.get("id", 1) == 1 and "result" not in message, message)
    test(f"{name}: the next is served", alive())

for name, frame in [
    ("an empty line", b""), ("blanks", b" \t\r"), ("a notification nobody knows", b'{"jsonrpc":"2.0","method":"notifications/x"}'),
    ("a response", b'{"jsonrpc":"2.0","id":1,"result":{}}'), ("an error", b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}'),
    ("a notification with bad params", b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}'),
    ("a cancellation of nothing", b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}'),
    ("a cancellation of null", b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}'),
    ("a request without an id", b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"stet_init","arguments":{"dir":"made"}}}'),
]:
    before = len(s.raw)
    s.send_bytes(frame + b"\n")
    test(f"{name}: no answer, and the next is served", alive() and len(s.raw) == before + 1, s.raw[before:])
test("a call without an id is not made", not os.path.exists("made"))
s.send_bytes(ping + b"\r\n")
test("a carriage return before the newline", s.answer("p"))
for byte in ping + b"\n":
    s.send_bytes(bytes([byte]))
test("byte by byte", s.answer("p"))
s.send_bytes(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % i for i in range(500)))
test("five hundred in one write", all(s.answer(i) for i in range(500)))
same("and it ends well", s.close(), (0, ""))

s = Server()
s.send_bytes(ping)
s.process.stdin.close()
test("a last message without a newline is served", s.answer("p"))
same("and it ends", s.ended(), (0, ""))
s = Server()
s.send_bytes(ping[:-5])
s.process.stdin.close()
same("a truncated last message is an error", code(s.receive()), -32700)
same("and it ends too", s.ended(), (0, ""))
s = Server()
same("no message at all", s.close(), (0, ""))

# Random damage to good frames: whatever comes back is JSON, and the server lives.
seed = int(os.environ.get("STET_TEST_SEED", "7"))
rng = random.Random(seed)
meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
good = [json.dumps(m).encode() for m in [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": meta, "cursor": "after:stet_a"}},
    {"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {"name": "stet_version", "arguments": {}, "_meta": {"progressToken": 3}}},
    {"jsonrpc": "2.0", "id": 4, "method": "resources/read", "params": {"uri": "stet://run/%41", "_meta": meta}},
    {"jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": {"notifications": {"resourceSubscriptions": ["stet://run/a"]}, "_meta": meta}},
    {"jsonrpc": "2.0", "id": 6, "method": "prompts/get", "params": {"name": "check-project", "_meta": meta}},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
    [{"jsonrpc": "2.0", "id": 7, "method": "ping"}, {"jsonrpc": "2.0", "id": 8, "method": "tools/list"}],
]]
s = Server("--all-tools", "--read-only", "--max-frame", "2000", "--log", "off")
sent = 0
for _ in range(4000 if os.environ.get("STET_TEST_LONG") else 1500):
    frame = bytearray(rng.choice(good))
    for _ in range(rng.choice([0, 0, 1, 1, 2, 8])):
        where, how = rng.randrange(len(frame)), rng.randrange(5)
        if how == 0:
            frame[where] = rng.randrange(256)
        elif how == 1:
            del frame[where:where + rng.randrange(1, 9)]
        elif how == 2:
            frame[where:where] = frame[where // 2:where]
        elif how == 3:
            frame[where:where] = bytes(rng.randrange(256) for _ in range(rng.randrange(9)))
        else:
            frame = frame + rng.choice(good)[:rng.randrange(99)]
        frame = frame or bytearray(b"x")
    s.send_bytes(bytes(frame) + b"\n")
    sent += 1
s.send_bytes(b'{"jsonrpc":"2.0","id":"last","method":"ping"}\n')
end = s.answer("last", 60)
test(f"{sent} damaged frames (seed {seed}): still serving", end is not None)
status, error = s.close()
test("and ends well", status == 0, f"{status} {error}")
bad = [line for line in s.raw if not (line.endswith(b"\n") and json.loads(line))]
same("every line it wrote is one whole message", bad, [])
finish()
