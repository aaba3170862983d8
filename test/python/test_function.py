"""What people expect of a cached function besides its results; and that a miss happens once."""
import asyncio
import gc
import os
import threading
import time
import weakref
from datetime import timedelta

import pytest

import stet
from stet import persistent_cache

calls = []
counted = persistent_cache(ignore="calls")


@pytest.fixture(autouse=True)
def fresh():
    calls.clear()


def until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("waited a minute")


# ---- single flight ----

def test_threads_that_miss_together_compute_once():
    go = threading.Event()

    @persistent_cache(ignore=["calls", "go"])
    def f(x):
        calls.append(x)
        go.wait(60)
        return x * 2

    got = []
    threads = [threading.Thread(target=lambda: got.append(f(21))) for _ in range(8)]
    [t.start() for t in threads]
    until(lambda: calls)
    go.set()
    [t.join() for t in threads]
    assert got == [42] * 8 and calls == [21]


def test_coroutines_that_miss_together_compute_once():
    @counted
    async def f(x):
        calls.append(x)
        await asyncio.sleep(0.05)
        return x * 2

    async def main():
        return await asyncio.gather(*(f(i % 2) for i in range(100)))

    assert asyncio.run(main()) == [0, 2] * 50 and sorted(calls) == [0, 1]


def test_processes_that_miss_together_compute_once(run):
    text = """
        import os, time
        from stet import persistent_cache
        def note(word):
            with open(word, "a") as file:
                file.write("x")
        @persistent_cache
        def f(x):
            note("ran")
            while not os.path.exists("go"):
                time.sleep(0.01)
            return x
        note("asked")
        print(f(1))
    """
    stet.Project.init(str(run.directory)).close()
    processes = [run.start(text) for _ in range(4)]
    until(lambda: (run.directory / "asked").exists() and len((run.directory / "asked").read_text()) == 4)
    (run.directory / "go").touch()
    assert [p.communicate(timeout=120)[0] for p in processes] == ["1\n"] * 4 and (run.directory / "ran").read_text() == "x"


def test_a_failure_does_not_hold_up_the_others():
    @counted
    def f(x):
        calls.append(x)
        if len(calls) == 1:
            raise ValueError("first")
        return x

    with pytest.raises(ValueError):
        f(1)
    assert f(1) == 1 and calls == [1, 1]


def test_a_result_that_can_not_be_kept_holds_up_nobody():
    @counted
    def f(x):
        calls.append(x)
        return lambda: x

    got = []
    with pytest.warns(stet.StorageWarning):
        threads = [threading.Thread(target=lambda: got.append(f(1)())) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    assert got == [1] * 4


def test_a_fork_while_something_is_computed_waits_for_nobody():
    inside, go = threading.Event(), threading.Event()

    @persistent_cache(ignore=["inside", "go", "calls"])
    def f(x):
        calls.append(os.getpid())
        inside.set()
        if len(calls) == 1:
            go.wait(60)
        return x

    thread = threading.Thread(target=f, args=(1,))
    thread.start()
    assert inside.wait(60)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if f(2) == 2 else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    go.set()
    thread.join()


# ---- for the user ----

def test_results_are_counted_cleared_and_computed_again():
    @counted
    def f(x):
        calls.append(x)
        return x * 2

    @persistent_cache
    def other(x):
        return x

    assert not f.check_call_in_cache(1) and f(1) == f(1) == 2 and f(2) == 4 and f.check_call_in_cache(1) and other(1) == 1
    info = f.cache_info()
    assert (info.hits, info.misses, info.currsize) == (1, 2, 2) and info.bytes > 0
    assert f.call(1) == 2 and calls == [1, 2, 1]
    assert f.clear() == 3 and f.cache_info().currsize == 0 and other.cache_info().currsize == 1
    assert f(1) == 2 and calls == [1, 2, 1, 1]


def test_methods_have_them_too():
    class A:
        def __init__(self, k):
            self.k = k

        @counted
        def f(self, x):
            calls.append(x)
            return self.k + x

    a = A(1)
    assert a.f(1) == a.f(1) == 2 and A.f.check_call_in_cache(a, 1) and not A.f.check_call_in_cache(A(2), 1) and A.f.cache_info().currsize == 1 and A.f.clear() == 1


@pytest.mark.parametrize("expires", [0.0, timedelta(0)])
def test_a_result_expires(expires):
    soon, later = [persistent_cache(str(e), ignore="calls", expires=e)(lambda x: (calls.append(x), x)[1]) for e in (expires, timedelta(days=1))]
    for f, wanted in ((soon, 2), (later, 1)):
        calls.clear()
        f(1)
        time.sleep(0.005)
        assert f(1) == 1 and len(calls) == wanted
    with pytest.raises(ValueError, match="expires"):
        persistent_cache(expires=-1)


def test_a_file_that_was_another_one_while_the_function_ran(here):
    data, other = here / "held.txt", here / "held.d/x"
    other.parent.mkdir()
    data.write_text("1")
    other.write_text("1")

    @persistent_cache(depends_on=[data, other.parent], allow_dynamic=True, ignore=["data", "other"])
    def read(meddle):
        """Reads what somebody else has written meanwhile, and takes back afterwards."""
        times = data.stat()
        for path in (data, other) if meddle else ():
            path.write_text("2")
        seen = data.read_text() + other.read_text()
        if meddle:
            data.write_text("1")
            os.utime(data, ns=(times.st_atime_ns, times.st_mtime_ns))
            other.unlink()
            other.write_text("1")
        return seen

    with pytest.warns(stet.StorageWarning, match="depends_on"):
        assert read(True) == "22"
    assert not read.check_call_in_cache(True)
    assert read(False) == "11" and read.check_call_in_cache(False)

    with pytest.warns(stet.StorageWarning, match="depends_on"):
        with persistent_cache("held", depends_on=data, allow_dynamic=True):
            data.write_text("3")
            seen = data.read_text()
            data.write_text("1")
    assert seen == "3"
    with persistent_cache("held", depends_on=data, allow_dynamic=True) as cache:
        seen = data.read_text()
    assert seen == "1" or not cache.hit


def test_files_that_a_result_depends_on(here):
    data, folder = here / "data.txt", here / "folder"
    folder.mkdir()

    @persistent_cache(ignore=["calls"], depends_on=[data, folder], allow_dynamic=False)
    def f(path):
        calls.append(1)
        return open(path).read() if os.path.exists(path) else None

    seen = []
    for change in (lambda: None, lambda: data.write_text("a"), lambda: None, lambda: data.write_text("b"), lambda: (folder / "x").write_text("1"), lambda: (folder / "x").rename(folder / "y"), lambda: data.unlink()):
        change()
        seen.append((f(str(data)), len(calls)))
    assert seen == [(None, 1), ("a", 2), ("a", 2), ("b", 3), ("b", 4), ("b", 5), (None, 6)]


def test_a_block_may_depend_on_files(run):
    text = """
        from stet import persistent_cache
        with persistent_cache("b", depends_on="data.txt") as cache:
            x = open("data.txt").read()
        print(cache.hit, x)
    """
    seen = []
    for content in ("a", "a", "b"):
        run.file("data.txt", content)
        seen.append(run(text))
    assert seen == [["False", "a"], ["True", "a"], ["False", "b"]]


def test_verbose_says_what_is_found_and_what_is_computed(capsys):
    f = persistent_cache("name", verbose=True)(lambda x: x)
    f(1)
    f(1)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and said[0].startswith("[stet] name: computed in") and said[1].startswith("[stet] name: found, computed 20")


def test_one_look_counts_once():
    @persistent_cache
    def f(x):
        return x

    for x in (1, 1, [1], [1]):
        f(x)
    stats = stet.default_persister().stats()
    assert (stats["hits"], stats["misses"]) == (2, 2)


def test_finding_the_directory_is_remembered(monkeypatch):
    f = persistent_cache(lambda x: x)
    f(1)
    monkeypatch.setattr(stet.where, "find_base", None)
    assert f(1) == 1


def test_a_function_that_nobody_has_is_gone():
    def make(k):
        @persistent_cache
        def f(x):
            return x + k

        assert f(1) == f(1) == 1 + k
        return weakref.ref(f)

    gone = [make(k) for k in range(20)]
    gc.collect()
    assert [r() for r in gone] == [None] * 20


def test_many_calls_leave_nothing_behind():
    rows = [1, 2]

    @persistent_cache
    def f(x, y):
        return len(rows) + x

    def calls(n):
        for i in range(n):
            f(1, 2), f(1, [2])
        gc.collect()
        return len(gc.get_objects())

    calls(50)
    assert calls(1000) - calls(2000) > -100
