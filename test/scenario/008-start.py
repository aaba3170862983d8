#!/usr/bin/env python3
"""Start-up: `stet --version` costs below 5 ms of CPU, and the program loads no library that it does not need."""
import os, re, resource, subprocess, sys

STET = os.environ["STET"]
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if note:
        print("# " + note)


def cpu_ms(*argv, runs=25):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(runs):
        subprocess.run([STET, *argv], stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) / runs * 1000


with open(STET, "rb") as f:
    sanitized = b"__asan_init" in f.read()
# The best of eight rounds: other work on the machine only ever adds.
subprocess.run([STET, "init", "--quiet"], check=True)
for argv, limit in (["--version"], 5), (["check"], 8), (["help"], 8):
    best = min(cpu_ms(*argv) for _ in range(8))
    test(f"stet {' '.join(argv)}: below {limit} ms of CPU", best < limit or sanitized, f"{best:.2f} ms, best mean of 25 runs")

needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^]]+)\]", subprocess.run(["readelf", "-d", STET], capture_output=True, text=True).stdout))
allowed = re.compile(r"(libc|libm|libdl|libpthread|ld-linux[-a-z0-9]*|libasan|libubsan|libtsan|libgcc_s)\.so\.\d+$")
heavy = sorted(n for n in needed if not allowed.match(n))
test("it is linked with nothing but the C library", needed and not heavy, " ".join(sorted(needed)))
maps = subprocess.run(["strace", "-f", "-e", "trace=openat", STET, "--version"], capture_output=True, text=True).stderr
opened = re.findall(r'openat\([^"]*"([^"]+)"[^)]*\)\s*= \d+', maps)
extra = [n for n in opened if ".so" not in n]
test("--version opens no file but libraries", opened and not extra or sanitized, " ".join(extra))
print(f"1..{count}")
sys.exit(failed != 0)
