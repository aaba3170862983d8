#!/usr/bin/env python3
"""An adapter is killed after it has published the failure of a job, and before the supervisor's journal says that nobody needs the job any more. Whoever makes the
call later runs the job: failures that are not kept are told once. The same for a job that is tried again, and for one in place. What is kept stays kept."""
import os, pathlib, stat, subprocess
from tap import answer, finish, stet, t

build, here = os.environ["STET_BUILD"], pathlib.Path.cwd()
(here / "bin").mkdir()
wrapper = here / "bin/stet-exec-local"
# Killed when it removes the n-th file, once for each file `kill`.
wrapper.write_text(f"""#!/bin/sh
if [ -e {here}/kill ]; then
    n=$(cat {here}/kill)
    strace -qq -o {here}/trace -e trace=unlink,unlinkat -e inject=unlink,unlinkat:signal=KILL:when=$n {build}/stet-exec-local "$@"
    code=$?
    if grep -q KILL {here}/trace; then
        rm {here}/kill
        kill -KILL $$
    fi
    exit $code
fi
exec {build}/stet-exec-local "$@"
""")
wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR)
os.environ["PATH"] = f"{here}/bin:{build}:{os.environ['PATH']}"
can_trace = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode == 0
t("strace traces a program here", can_trace)
os.mkdir("p")
stet("init", cwd="p")
with open("p/.stet/config.toml", "a") as f:
    f.write('[calls]\nfirst = "0.01s"\nmost = "0.05s"\nattempts = 2\n')
kills = 0
# What the job does at its end, how often it runs for one call, and whether its outcome is kept.
for name, end, times, kept in (("a crash", "kill -SEGV $$", 1, False), ("a signal from outside", "kill -TERM $$", 2, False), ("an exit status", "exit 3", 1, True),
                               ("success", "echo 1", 1, True)):
    for n in range(1, 5):
        log = here / f"log-{end.replace(' ', '-').replace('$', '')}-{n}"
        (here / "p/s.sh").write_text(f"echo run >> {log}\n{end}\n")
        call = ["call", "run", "dml+exec://stet-exec-local/sh?arg=s.sh&stdin=null"]
        (here / "kill").write_text(str(n))
        first = answer(*call, cwd="p")
        kills += not (here / "kill").exists()
        (here / "kill").unlink(missing_ok=True)
        t(f"{name}, {n}: the job ran {times} times", len(log.read_text().split()) == times, (first, log.read_text()))
        second = answer(*call, cwd="p")
        want = times if kept else 2 * times
        t(f"{name}, {n}: made again, it {'is not run' if kept else 'runs'}", len(log.read_text().split()) == want, (second, log.read_text()))
        third = answer(*call, cwd="p")
        t(f"{name}, {n}: and once more", len(log.read_text().split()) == (times if kept else 3 * times), (third, log.read_text()))
t("adapters were killed", kills >= 4, kills)
finish("p")
