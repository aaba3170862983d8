#!/usr/bin/env python3
"""Start-up: the program loads no library that a command does not need, and `--version` touches nothing. (Its time: bench/start.c.)"""
import os, re, subprocess, sys

STET = os.environ["STET"]
count = failed = 0


def test(name, good, note=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {name}")
    if note:
        print("# " + note)


def output(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


with open(STET, "rb") as f:
    program = f.read()
sanitized = b"__asan_init" in program
needed = set(re.findall(r"\(NEEDED\)\s+Shared library: \[([^]]+)\]", output("readelf", "-d", STET)))
allowed = re.compile(r"(libc|libm|libdl|libpthread|ld-linux[-a-z0-9]*|libasan|libubsan|libtsan|libgcc_s)\.so\.\d+$")
test("the program is linked with nothing but the C library", needed and all(map(allowed.match, needed)), " ".join(sorted(needed)))

# Calling the wrong function of libcrypto links all of it: 5 MB, and half a millisecond of relocations at each start.
test("of libcrypto it holds what SHA-256 needs", b"EVP_MD_fetch" not in program, f"{len(program)} bytes")

calls = [line for line in output("strace", "-f", STET, "--version").splitlines() if re.match(r"(\[pid +\d+\] )?\w+\(", line)]
opened = [m[1] for m in (re.search(r'open(?:at)?\([^"]*"([^"]+)"[^)]*\)\s*= \d', line) for line in calls) if m]
extra = [name for name in opened if not re.search(r"\.so|/proc/", name)]
test("--version opens no file but libraries", opened and not extra, " ".join(extra))
test("--version makes few system calls", len(calls) < 100 or sanitized, f"{len(calls)} of them")
test("--version starts no thread and no process", not any(re.search(r"\b(clone3?|v?fork)\(", line) for line in calls))

# A command loads no plug-in and no further library than --version does.
subprocess.run([STET, "init", "--quiet"], check=True)
for argv in ["check"], ["help"], ["doctor"], ["project", "list"]:
    traced = output("strace", "-f", "-e", "trace=openat", STET, *argv)
    loaded = set(re.findall(r'"([^"]+\.so[.\d]*)"[^)]*\)\s*= \d', traced)) - set(opened) - {"/etc/ld.so.cache"}
    test(f"{' '.join(argv)} loads no further library", not loaded, " ".join(sorted(loaded)))
print(f"1..{count}")
sys.exit(failed != 0)
