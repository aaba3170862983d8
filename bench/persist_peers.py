"""Prints how long a get of 1 KiB takes with joblib.Memory and with diskcache, in microseconds: one "NAME MICROSECONDS" line each."""
import os, sys, time

payload = os.urandom(1024)
rounds = int(sys.argv[1])

try:
    import joblib

    memory = joblib.Memory("joblib", verbose=0)

    @memory.cache
    def compute(n):
        return payload

    for n in range(100):
        compute(n)
    best = None
    for _ in range(40):
        started = time.perf_counter()
        for n in range(rounds // 10):
            compute(n % 100)
        took = (time.perf_counter() - started) / (rounds // 10)
        best = took if best is None else min(best, took)
    print("joblib", best * 1e6)
except ImportError:
    print("joblib 0")

try:
    import diskcache

    cache = diskcache.Cache("diskcache")
    for n in range(100):
        cache[n] = payload
    best = None
    for _ in range(40):
        started = time.perf_counter()
        for n in range(rounds):
            cache[n % 100]
        took = (time.perf_counter() - started) / rounds
        best = took if best is None else min(best, took)
    print("diskcache", best * 1e6)
except ImportError:
    print("diskcache 0")
