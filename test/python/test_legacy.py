"""LegacyPersister: files as marimo writes them, read and written without marimo."""
import json
import os
import pickle
import sys
import types
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pytest
from conftest import M, N

from stet import CleanupStrategy, DefaultCleanupStrategy, Entry, ExecutionKey, LegacyPersister, Persister, persistent_cache


@dataclass
class Cache:
    """With the fields of marimo's own, under its name."""
    defs: dict
    hash: str
    cache_type: str
    stateful_refs: set
    hit: bool
    meta: dict


@pytest.fixture
def marimo(monkeypatch):
    for name in ("marimo", "marimo._save", "marimo._save.cache"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    Cache.__module__, Cache.__qualname__ = "marimo._save.cache", "Cache"
    sys.modules["marimo._save.cache"].Cache = Cache


def write(here, name, cache, suffix="pickle", prefix="P_"):
    folder = here / "__marimo__/cache" / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{prefix}{cache.hash}.{suffix}"
    if suffix == "pickle":
        path.write_bytes(pickle.dumps(cache, protocol=pickle.HIGHEST_PROTOCOL))
    else:
        path.write_text(json.dumps({**cache.__dict__, "stateful_refs": []}, indent=4))
    return path


def cache_of(value, hash=M, kind="Pure"):
    return Cache({"x": value, "y": [value]}, hash, kind, set(), False, {"version": 3, "runtime": 1.5})


def test_a_pickle_of_marimo_is_read_without_marimo(here, marimo, monkeypatch):
    write(here, "my_model", cache_of(1))
    for name in ("marimo", "marimo._save", "marimo._save.cache"):
        monkeypatch.delitem(sys.modules, name)
    p = LegacyPersister()
    e = p.get(ExecutionKey("my_model", M))
    assert isinstance(p, Persister) and e.variables == {"x": 1, "y": [1]} and e.extra == {"version": 3, "runtime": 1.5, "cache_type": "Pure"}
    assert p.get(ExecutionKey("my_model", N)) is None and p.get(ExecutionKey("other", M)) is None


def test_json_and_every_cache_type_are_found(here, marimo):
    for kind, prefix in (("ContextExecutionPath", "X_"), ("ContentAddressed", "C_"), ("ExecutionPath", "E_"), ("Deferred", "D_"), ("Unknown", "U_")):
        write(here, kind, cache_of(kind, kind=kind), "json", prefix)
        e = LegacyPersister().get(ExecutionKey(kind, M))
        assert e.variables["x"] == kind and e.extra["cache_type"] == kind


def test_the_time_is_that_of_the_file(here, marimo):
    write(here, "n", cache_of(1))
    e = LegacyPersister().get(ExecutionKey("n", M))
    at = e.execution_key.created_at
    assert abs(at - datetime.now(timezone.utc).replace(tzinfo=None)) < timedelta(minutes=5)
    p = LegacyPersister()
    assert p.get(ExecutionKey("n", M, at), exact_match_created_at=True) and p.get(ExecutionKey("n", M, at + timedelta(days=1)))
    assert p.get(ExecutionKey("n", M, at - timedelta(milliseconds=1))) is None and p.get(ExecutionKey("n", M, at + timedelta(days=1)), exact_match_created_at=True) is None
    with pytest.raises(ValueError):
        p.get(ExecutionKey("n", M), exact_match_created_at=True)


@pytest.mark.parametrize("spec", [None, {"variables": "pickle"}, {"variables": "json"}])
def test_what_is_put_is_what_marimo_reads(here, marimo, spec):
    p = LegacyPersister()
    entry = Entry(ExecutionKey("my model*", M, datetime(2024, 1, 1)), {"a": 1}, {"version": 3, "cache_type": "ContentAddressed"})
    assert p.put(entry, spec).content_size("variables") > 0
    assert p.get(ExecutionKey("my model*", M)) == entry
    suffix = spec["variables"] if spec else "pickle"
    path = here / "__marimo__/cache/my model" / f"C_{M}.{suffix}"
    back = pickle.loads(path.read_bytes()) if suffix == "pickle" else Cache(**json.loads(path.read_text()))
    assert type(back) is Cache and (back.defs, back.hash, back.cache_type, back.meta) == ({"a": 1}, M, "ContentAddressed", {"version": 3})
    assert os.listdir(path.parent) == [path.name]


def test_it_is_not_cleaned_up_and_needs_variables(here):
    p = LegacyPersister()
    with pytest.raises(NotImplementedError):
        p.cleanup(DefaultCleanupStrategy())
    p.on_exit()
    with pytest.raises(ValueError):
        p.put(Entry(ExecutionKey("n", M, datetime(2024, 1, 1))))
    with pytest.raises(ValueError):
        p.put(Entry(ExecutionKey("n", M), {}))
    with pytest.raises(ValueError):
        p.put(Entry(ExecutionKey("n", "../../x", datetime(2024, 1, 1)), {}))
    assert isinstance(DefaultCleanupStrategy(), CleanupStrategy)


def test_persistent_cache_goes_on_with_an_old_directory(here):
    (here / "__marimo__/cache").mkdir(parents=True)
    count = []

    @persistent_cache("old", ignore="count")
    def f(x):
        count.append(x)
        return x + 1

    assert f(1) == f(1) == 2 and count == [1]
    assert len(list((here / "__marimo__/cache").rglob("P_*.pickle"))) == 1 and not (here / "__marimo__/persist").exists()


def test_what_unpickling_a_damaged_file_raises_is_raised(here, marimo):
    path = write(here, "n", cache_of(1))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(Exception):
        LegacyPersister().get(ExecutionKey("n", M))
