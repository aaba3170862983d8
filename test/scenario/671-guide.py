#!/usr/bin/env python3
"""The guide, typed as it stands there: files that it shows are written, and what it shows below a command is what is printed, but for times and the like."""
import os, pathlib, re, subprocess, sys

SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
os.environ["PATH"] = str(pathlib.Path(os.environ["STET"]).parent) + ":" + os.environ["PATH"]
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    for line in str(note).splitlines()[-20:] if note and not good else []:
        print("# " + line)


def plain(text):
    for pattern, word in (r"\d+\.\d\d s\b", "T s"), (r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME"), (r"the project /\S+", "the project DIR"), (r"sequence \d+", "sequence N"), (r"20\d{6}T\d{6}Z-\w+-[0-9a-f]+", "RUN"), (r" {2,}", "  "):  # the width of a column goes by what is in it
        text = re.sub(pattern, word, text)
    return text.strip()


class Shell:
    """One shell for the whole guide, as a reader has it: directories and variables stay."""

    def __init__(self):
        self.process = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def type(self, command):
        self.process.stdin.write(command + "\necho \"@@@ $? $PWD\"\n")
        self.process.stdin.flush()
        said = ""
        for line in self.process.stdout:
            end = re.search(r"@@@ (\d+) (.*)\n", line)
            if end:
                return said + line[: end.start()], int(end[1]), pathlib.Path(end[2])
            said += line
        return said, -1, pathlib.Path()


def blocks(page):
    """(language, file or None, text, position) of each block."""
    for m in re.finditer(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", page, re.S | re.M):
        yield m[1], m[2], m[3], m.start(3)


if __name__ == "__main__":
    page = (SOURCE / "docs/guide.md").read_text()
    shell, where = Shell(), pathlib.Path.cwd()
    for language, file, text, _ in blocks(page):
        if file:
            (where / file).write_text(text)
        if language:
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            typed, _, shown = part.partition("\n")
            said, status, where = shell.type(re.split(r" {3,}", typed)[0])
            test(typed, status == 0 and plain(said) == plain(shown), said)
    for link in set(re.findall(r"\]\(([^)#:]+)[)#]", page)):
        test(f"{link} is there", (SOURCE / "docs" / link).exists())
    pages = {p.name for p in (SOURCE / "docs").glob("*.md")} - {"guide.md", "README.md"}
    test("the guide leads to every page", pages <= set(re.findall(r"\]\(([\w-]+\.md)", page)), pages - set(re.findall(r"\]\(([\w-]+\.md)", page)))
    said, status, _ = shell.type("stet check")
    test("stet check finds nothing", status == 0, said)
    print(f"1..{count}")
    sys.exit(failed != 0)
