"""The store for marimo's own caches, with a stand-in for marimo that has the documented interface of a store. It was not tried with the real one."""
import subprocess
import sys
import types
from abc import ABC, abstractmethod

import pytest
from conftest import stet as program


@pytest.fixture
def store(here, monkeypatch):
    class Store(ABC):
        @abstractmethod
        def get(self, key):
            ...

        @abstractmethod
        def put(self, key, value):
            ...

        @abstractmethod
        def hit(self, key):
            ...

        def clear(self, key):
            return False

    for name in ("marimo", "marimo._save", "marimo._save.stores", "marimo._save.stores.store"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules["marimo._save.stores.store"].Store = Store
    monkeypatch.delitem(sys.modules, "stet.marimo", raising=False)
    import stet.marimo

    made = stet.marimo.StetStore()
    assert isinstance(made, Store)
    yield made
    sys.modules.pop("stet.marimo", None)


def test_blobs_come_back_by_their_key(store, here):
    key = "my_model/P_abc.pickle"
    assert not store.hit(key) and store.get(key) is None
    assert store.put(key, b"\x80\x04blob") is True and store.hit(key) and store.get(key) == b"\x80\x04blob"
    assert store.put(key, b"newer") and store.get(key) == b"newer" and store.get("my_model/P_abd.pickle") is None
    big = b"z" * 2_000_000
    assert store.put("big", big) and store.get("big") == big
    assert dict(store.get_batch([key, "none"])) == {key: b"newer", "none": None}
    assert store.local_dirs() == [here / ".stet/persist"] and store.export_keys() == []
    assert "marimo:my_model" in program("persist", "list", cwd=here).stdout


def test_a_key_is_cleared_and_others_stay(store):
    store.put("a/1", b"1")
    store.put("a/2", b"2")
    assert store.clear("a/1") is True and not store.hit("a/1") and store.get("a/2") == b"2" and store.clear("a/1") is False


def test_a_cleanup_keeps_every_key_and_nothing_is_opened_before_it_is_used(store, here):
    assert not (here / ".stet").exists() and store._opened is None
    for n in range(8):
        store.put(f"folder/P_{n}.pickle", b"%d" % n)
    store.persister.cleanup()
    assert [store.get(f"folder/P_{n}.pickle") for n in range(8)] == [b"%d" % n for n in range(8)]


def test_its_absence_costs_nothing():
    done = subprocess.run([sys.executable, "-c", "import sys, stet; print([m for m in sys.modules if 'marimo' in m]); import stet.marimo; print(stet.marimo.StetStore.__mro__[1])"],
                          capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == ["[]", "<class 'object'>"], done.stderr
