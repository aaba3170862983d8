#!/usr/bin/env python3
"""The tour of the README, typed as it stands there: what it shows is what is printed, but for times and paths."""
import os, pathlib, re, shutil, subprocess, sys

SOURCE, HERE = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path.cwd()
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
    for pattern, word in (r"\d+\.\d+ s\b", "T s"), (r"20\d\d-\d\d-\d\dT[\d:.]+Z", "TIME"), (r"the project /\S+", "the project DIR"), (r"sequence \d+", "sequence N"):
        text = re.sub(pattern, word, text)
    return text.strip()


page = (SOURCE / "README.md").read_text()
real = {}  # sequences: how many commits a run makes depends on how fast the machine is
tours = [b for b in re.findall(r"```\n(\$ .*?)```", page, re.S)]
test("the README has its tours", len(tours) == 3, len(tours))
work = HERE / "site"
shutil.copytree(SOURCE / "examples/site", work)
for tour in tours:
    for part in re.split(r"^\$ ", tour, flags=re.M)[1:]:
        typed, _, shown = part.partition("\n")
        command = re.split(r" {3,}", typed)[0]
        if command.startswith("stet watch"):
            continue  # in another terminal, until it is stopped
        command = re.sub(r"--at (\d+)", lambda m: "--at " + real.get(m[1], m[1]), command)
        done = subprocess.run(["bash", "-c", command], cwd=work, capture_output=True, text=True, timeout=120)
        real.update(zip(re.findall(r"^sequence (\d+)", shown, re.M), re.findall(r"^sequence (\d+)", done.stdout, re.M)))
        test(command, done.returncode == 0 and plain(done.stdout) == plain(shown), done.stdout + done.stderr)
toml = re.search(r"```toml\n(.*?)```", page, re.S)[1]
have = (SOURCE / "examples/site/stet.toml").read_text()
lines = [re.split(r" {3,}#", line)[0].strip() for line in toml.splitlines()]
squeeze = lambda text: re.sub(r"\s+", "", text)
lines = [line for line in lines if not line.startswith("javascript")]  # shortened to one line
test("its pattern is that of the example", all(squeeze(line) in squeeze(have) for line in lines), [line for line in lines if squeeze(line) not in squeeze(have)])
for link in re.findall(r"\]\(([^)#:]+)\)", page):
    test(f"{link} is there", (SOURCE / link).exists())
test("stet check finds nothing", subprocess.run(["stet", "check"], cwd=work).returncode == 0)
print(f"1..{count}")
sys.exit(failed != 0)
