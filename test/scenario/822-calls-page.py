#!/usr/bin/env python3
"""The first examples of docs/calls.md, typed as they stand there, print what is shown, but for ids, times and whether a call has ended by then."""
import importlib.util, pathlib, re, sys

spec = importlib.util.spec_from_file_location("guide", pathlib.Path(__file__).with_name("671-guide.py"))
guide = importlib.util.module_from_spec(spec)
spec.loader.exec_module(guide)
UUID = r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"


def plain(text):
    return re.sub("poll_adapter|completed_ok", "STATE", re.sub(UUID, "UUID", guide.plain(text)))


page = (guide.SOURCE / "docs/calls.md").read_text().partition("\n## ")[0]
shell, ids, typed_any = guide.Shell(), {}, 0
shell.type("stet init")
for language, file, text, _ in guide.blocks(page):
    if file:
        pathlib.Path(file).write_text(text)
    if language:
        continue
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        typed, _, shown = part.partition("\n")
        line = typed
        for there, here in ids.items():
            line = line.replace(there, here)
        said, status, _ = shell.type(line)
        guide.test(typed, status == 0 and plain(said) == plain(shown), said)
        for there, here in zip(re.finditer(UUID, shown), re.finditer(UUID, said)):
            ids[there[0][:8]] = here[0][:8]
        typed_any += 1
guide.test("there are examples", typed_any >= 4)
guide.test("every function on the page that the shell would take apart is quoted", not re.search(r"^\$ [^'\n]*dml\+exec:[^' \n]*[&?;|]", (guide.SOURCE / "docs/calls.md").read_text(), re.M))
said, status, _ = shell.type("stet check")
guide.test("stet check finds nothing", status == 0, said)
print(f"1..{guide.count}")
sys.exit(guide.failed != 0)
