"""A get of 1 KiB from Python, beside joblib.Memory and diskcache: processor time, the best of many short rounds that take turns."""
import os, time

import stet

payload = os.urandom(1024)
contenders = {}

persister = stet.FsPersister(os.path.abspath("persist"))
keys = [stet.ExecutionKey("bench", "A" * 41 + "%02d" % n) for n in range(100)]
for k in keys:
    persister.put(stet.Entry(stet.ExecutionKey(k.block_id, k.module_hash, stet.entry.from_millis(stet._stet.now())), {"v": payload}))
contenders["ours"] = lambda n: persister.get(keys[n])


@stet.persistent_cache(persister=persister)
def ours(n):
    return payload


contenders["our function"] = ours
try:
    import joblib

    theirs = joblib.Memory("joblib", verbose=0).cache(lambda n: payload)
    contenders["joblib.Memory"] = theirs
except ImportError:
    pass
try:
    import diskcache

    cache = diskcache.Cache("diskcache")
    for n in range(100):
        cache[n] = payload
    contenders["diskcache"] = lambda n: cache[n]
except ImportError:
    pass

best = {}
for name, call in contenders.items():
    for n in range(100):
        call(n)
for _ in range(15):
    for name, call in contenders.items():
        began = time.process_time()
        for n in range(100):
            call(n)
        took = (time.process_time() - began) / 100 * 1e6
        best[name] = min(best.get(name, took), took)


def line(what, mine, peer, goal):
    if peer in best:
        print(f"python {what}: ours {best[mine]:.1f} us, {peer} {best[peer]:.1f} us, ratio {best[peer] / best[mine]:.2f} ({goal})")
    else:
        print(f"python {what}: ours {best[mine]:.1f} us, {peer} is not installed")


line("get 1 KiB", "ours", "joblib.Memory", "goal at least 10")
line("get 1 KiB", "ours", "diskcache", "goal at least 1")
line("function with a stored result", "our function", "joblib.Memory", "goal at least 5")
line("function with a stored result", "our function", "diskcache", "goal at least 0.8")
