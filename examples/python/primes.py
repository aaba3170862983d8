"""Counts primes below some numbers, and keeps what it found. Run it twice; change `is_prime`, `limits`, or a comment, and run it again:

    PYTHONPATH=build/python python3 examples/python/primes.py

Only what the change touches is computed again. The results lie in .stet/persist of the current directory, and `stet persist list` shows them.
"""
import time

from stet import persistent_cache

limits = [1_000, 10_000, 50_000]


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))


@persistent_cache
def count_primes(below):
    print(f"counting below {below}")
    return sum(1 for n in range(below) if is_prime(n))


started = time.perf_counter()
counts = {limit: count_primes(limit) for limit in limits}

with persistent_cache("table") as cache:
    width = max(len(str(limit)) for limit in counts)
    table = [f"{limit:>{width}}  {count}" for limit, count in counts.items()]

print(*table, sep="\n")
print(f"the table was {'found' if cache.hit else 'made'}, all in {time.perf_counter() - started:.2f} s")
