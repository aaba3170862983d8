#!/usr/bin/env python3
"""The README, typed as it stands there: what it shows is what is printed, but for times and paths. The three ways in are run as a reader would run them."""
import os, pathlib, re, shlex, subprocess, sys

SOURCE, BUILD, HERE = pathlib.Path(os.environ["STET_SOURCE"]), pathlib.Path(os.environ["STET_BUILD"]), pathlib.Path.cwd()
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


def sh(command, where):
    return subprocess.run(["bash", "-c", command], cwd=where, capture_output=True, text=True, timeout=120)


page = (SOURCE / "README.md").read_text()
real = {}  # sequences: how many commits a run makes depends on how fast the machine is
work = HERE / "words"
work.mkdir()
(work / "stet.toml").write_text(re.search(r"```toml pipeline\n(.*?)```", page, re.S)[1])
tours = re.findall(r"```(?:pipeline)?\n(\$ .*?)```", page, re.S)
test("the README has its tours", len(tours) == 3, len(tours))
for tour in tours:
    for part in re.split(r"^\$ ", tour, flags=re.M)[1:]:
        typed, _, shown = part.partition("\n")
        command = re.split(r" {3,}", typed)[0]
        if command.startswith("stet watch"):
            continue  # in another terminal, until it is stopped
        command = re.sub(r"--at (\d+)", lambda m: "--at " + real.get(m[1], m[1]), command)
        done = sh(command, work)
        real.update(zip(re.findall(r"^sequence (\d+)", shown, re.M), re.findall(r"^sequence (\d+)", done.stdout, re.M)))
        test(command, done.returncode == 0 and plain(done.stdout) == plain(shown), done.stdout + done.stderr)
test("stet check finds nothing", sh("stet check", work).returncode == 0)

program = re.search(r"```python\n(.*?)```", page, re.S)[1]
shown = "\n".join(line[3:] for line in program.splitlines() if line.startswith("#> "))
(HERE / "score.py").write_text(program)
os.environ["PYTHONPATH"] = str(BUILD / "python")
done = sh("/usr/bin/python3 score.py", HERE)
test("the Python function", done.returncode == 0 and done.stdout.strip() == shown, done.stdout + done.stderr)
done = sh("/usr/bin/python3 score.py", HERE)
test("is not computed by the next process", done.returncode == 0 and done.stdout.strip() == shown.splitlines()[-1], done.stdout + done.stderr)

(HERE / "notes.c").write_text(re.search(r"```c\n(.*?)```", page, re.S)[1])
(HERE / "libstet.so.0").symlink_to(BUILD / "libstet.so")  # as it is named once it is installed
done = sh(f"cc -Wall -Werror -I{shlex.quote(str(SOURCE / 'include'))} -o notes.out notes.c libstet.so.0 -Wl,-rpath,. && ./notes.out && cd notes && stet get config && stet check", HERE)
test("the C program", done.returncode == 0 and '"theme": "dark"' in done.stdout, done.stdout + done.stderr)
for link in re.findall(r"\]\(([^)#:]+)\)", page):
    test(f"{link} is there", (SOURCE / link).exists())
print(f"1..{count}")
sys.exit(failed != 0)
