#!/usr/bin/env bash
# The example of docs/pipelines.md, as it stands there and in examples/pipeline.
. "$STET_SOURCE/test/scenario/lib.sh"
cp -r "$STET_SOURCE/examples/pipeline/." .
stet init >/dev/null
cat >same.py <<'PYTHON'
import os, re
page = open(os.environ["STET_SOURCE"] + "/docs/pipelines.md").read()
text = re.search(r"```toml\n(.*?)```", page, re.S)[1].strip()
assert text in open("stet.toml").read()
PYTHON
t "the page and the example say the same"       python3 same.py
t "it runs"                                     expect_out "ran 2, up to date 0, failed 0" stet run
t "and gives what it should"                    same 2 "$(cat build/count.txt | tr -d ' ')"
t "then nothing runs"                           expect_out "ran 0, up to date 2" stet run
t "another year"                                expect_out "ran 2" stet run --set year=2024
t "has other rows"                              same 1 "$(cat build/count.txt | tr -d ' ')"
t "the script counts"                           sh -c 'echo "# more" >> clean.py; "$STET" run | grep -q "ran 1, up to date 1"'
finish
