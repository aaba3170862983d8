#!/usr/bin/env bash
# A chain of links that is too long fails its reader by name, and mending any of its links that were read runs the reader again.
. "$STET_SOURCE/test/scenario/lib.sh"

stet init >/dev/null
link() { printf '{"/": {"link@1": {"id": "%s", "path": []}}}' "$1"; }
python3 - <<'END'
import json, os, subprocess
link = lambda i: {"/": {"link@1": {"id": i, "path": []}}}
docs = [f"c{i:02d}" for i in range(70)]
for a, b in zip(docs, docs[1:]):
    subprocess.run([os.environ["STET"], "set", a, json.dumps(link(b))], stdout=subprocess.DEVNULL, check=True)
subprocess.run([os.environ["STET"], "set", docs[-1], "5"], stdout=subprocess.DEVNULL, check=True)
value = {"type": "ref", "ref": "value"}
json.dump({"pattern": 1, "name": "r", "argument": {"default": {"a": link("c00")}},
           "nodes": [{"id": "x", "inputs": {"value": {"$": "argument/a"}}, "module": value},
                     {"id": "all", "inputs": {"value": {"$": "argument"}}, "module": value}],
           "result": {"x": {"$": "x"}, "all": {"$": "all"}}}, open("r.json", "w"))
END
failing() { stet status r --json | json pieces.0.failed; }
t "both readers fail"                            expect_status 1 stet run r.json --keep-going
t "why names the chain"                          expect_out "more than 64 links one behind the other: c00 -> c01 -> c02 -> ... -> c62 -> c63 -> c64" stet why r x
for n in 00 31 63; do
    stet set "c$n" 7 >/dev/null
    t "link $n is mended: the readers are outdated" same 2 "$(stet status r --json | json pieces.0.dirty)"
    stet run r.json --no-retry-failed >/dev/null
    t "and run"                                  same "0 7" "$(failing) $(stet get piece:r/x)"
    stet set "c$n" "$(link "c$(printf %02d $((10#$n + 1)))")" >/dev/null
    stet run r.json >/dev/null 2>&1
    t "broken again, they fail"                  same 2 "$(failing)"
done
stet set c10 "$(link c60)" >/dev/null
t "a shorter chain is fine"                      same 5 "$(stet get piece:r/x --fresh)"
stet set c60 "$(link c07)" >/dev/null
stet run r.json >out 2>&1
t "a circle is named from its smallest member on" grep -q "links lead in a circle: c07 -> c08 -> c09 -> c10 -> c60 -> c07" out
stet set c60 1 >/dev/null
t "mended"                                       stet run r.json
finish
