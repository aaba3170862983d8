#!/usr/bin/env python3
"""Habits of the repository: one number for each scenario, one list of packages, one page in the index for each document, and files that formatters agree with."""
import collections, os, pathlib, re, subprocess
from tap import finish, t

SOURCE = pathlib.Path(os.environ["STET_SOURCE"])
scripts = sorted(p for p in (SOURCE / "test/scenario").iterdir() if p.is_file() and p.name not in ("lib.sh", "tap.py", "fixture.sh"))
named = [p.name for p in scripts if not re.fullmatch(r"\d{3,4}-[a-z0-9-]+\.(sh|py|mjs)", p.name)]
t("a scenario is called NNN-name.sh, .py or .mjs", not named, named)
numbers = collections.Counter(p.name.split("-")[0] for p in scripts)
twice = sorted(p.name for p in scripts if numbers[p.name.split("-")[0]] > 1)
t("no two scenarios have the same number", not twice, twice)
asleep = [p.name for p in scripts if not os.access(p, os.X_OK)]
t("each can be run", not asleep, asleep)
silent = [p.name for p in scripts if not re.match(r'#!.*\n("""|# |// |/\*)', p.read_text())]
t("each begins with a sentence that says what it shows", not silent, silent)

index = (SOURCE / "docs/README.md").read_text()
absent = [p.name for p in sorted((SOURCE / "docs").iterdir()) if p.suffix in (".md", ".json") and p.name != "README.md" and f"({p.name})" not in index]
t("every page is in the index of the documentation", not absent, absent)
gone = [name for name in re.findall(r"\]\(([^)#]+)\)", index) if "://" not in name and not (SOURCE / "docs" / name).exists()]
t("and every page of the index exists", not gone, gone)

rows = [line.split() for line in (SOURCE / "tools/packages").read_text().splitlines() if line and not line.startswith("#")]
t("packages stand in one list, each once, with what needs it", all(len(r) == 2 and r[0] in ("build", "test", "dev") for r in rows) and len({r[1] for r in rows}) == len(rows), rows)
texts = [p for p in [SOURCE / "Makefile", SOURCE / ".ci/run", *sorted((SOURCE / "tools").iterdir()), *sorted((SOURCE / "test").rglob("*.sh"))] if p.is_file()]
others = [str(p) for p in texts if re.search(r"\bapt(-get)? install\b", p.read_text(errors="replace")) and p.name != "setup"]
t("and nothing else installs any", not others, others)


def accepted(message):
    pathlib.Path("message").write_text(message)
    return subprocess.run([SOURCE / "tools/hooks/commit-msg", "message"], capture_output=True).returncode == 0


t("the hook takes a good subject", accepted("Record reads of absent link targets\n\nBecause.\n") and accepted("# a comment\n\n" + "A" * 72) and accepted("Merge branch 'x'\n"))
bad = [m for m in ("A" * 73, "record reads", "Record reads.", "\n") if accepted(m)]
t("and refuses others", not bad, bad)
finish(None)
