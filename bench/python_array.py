"""A stored array of 100 MiB from Python, beside joblib.Memory: the best of several hits that take turns."""
import os, time

import numpy
import stet

persister = stet.FsPersister(os.path.abspath("persist-array"))
COUNT = 100 << 17


def make(seed):
    return numpy.random.default_rng(seed).random(COUNT)


contenders = {"ours": stet.persistent_cache("array", persister=persister)(make), "ours, mapped": stet.persistent_cache("mapped", persister=persister, mmap=True)(make)}
try:
    import joblib

    contenders["joblib.Memory"] = joblib.Memory("joblib-array", verbose=0).cache(make)
except ImportError:
    pass
best = {}
for call in contenders.values():
    call(1)
for _ in range(6):
    for name, call in contenders.items():
        began = time.perf_counter()
        found = call(1)
        took = time.perf_counter() - began
        assert found.shape == (COUNT,)
        del found
        best[name] = min(best.get(name, took), took)
peer = best.get("joblib.Memory")
print(f"python array of 100 MiB: ours {best['ours'] * 1e3:.1f} ms" + (f", joblib.Memory {peer * 1e3:.1f} ms, ratio {peer / best['ours']:.2f} (goal at least 1)" if peer else ", joblib.Memory is not installed"))
print(f"python array of 100 MiB, mapped: {best['ours, mapped'] * 1e3:.2f} ms (goal below 1)")
