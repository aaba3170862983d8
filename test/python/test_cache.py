"""persistent_cache: computed once, and again exactly when something that counts has changed."""
import asyncio
import copy
import sqlite3
import threading
import warnings
from datetime import datetime, timedelta, timezone

import pytest
from conftest import stet as program

import stet
from stet import FsPersister, persistent_cache

calls = []


@persistent_cache
def double(x, y=1, *rest, z=0, **more):
    calls.append(x)
    return (2 * x + y, rest, z, more)


@pytest.fixture(autouse=True)
def fresh():
    calls.clear()


# `calls` would be a variable that the functions use: they are told to leave it out.
counted = persistent_cache(ignore="calls")


# ---- functions ----

def test_a_function_is_computed_once_for_each_set_of_arguments():
    f = counted(double.__wrapped__)
    assert f(3) == f(3) == f(x=3) == f(3, 1) == f(3, y=1, z=0) == (7, (), 0, {})
    assert f(4, 1, 2, z=5, k=6) == f(4, 1, 2, k=6, z=5) == (9, (2,), 5, {"k": 6})
    assert calls == [3, 4]
    assert f.__name__ == "double" and f.__wrapped__ is double.__wrapped__


def test_a_variable_that_the_function_changes_itself_counts_and_so_never_hits():
    assert double(3) == double(3) and calls == [3, 3]


def test_arguments_are_told_apart_by_type_and_value():
    @counted
    def f(x):
        calls.append(x)
        return repr(x)

    values = [1, 1.0, True, "1", b"1", (1,), [1], {1}, frozenset([1]), {1: 2}, None, -1, 2**70, 0.0, -0.0, "", [[]], [()], {"a": 1, "b": 2}, {"b": 2, "a": 1}, range(3), 1j]
    assert [f(v) for v in values] == [repr(v) for v in values] and len(calls) == len(values)
    assert [f(v) for v in values] == [repr(v) for v in values] and len(calls) == len(values)


def test_an_argument_that_no_key_can_be_made_from_is_an_error_with_the_way_out():
    @persistent_cache
    def f(lock):
        return 1

    with pytest.raises(stet.Unhashable, match="ignore="):
        f(threading.Lock())

    @persistent_cache(ignore="lock")
    def g(lock, x):
        return x

    assert g(threading.Lock(), 1) == g(threading.Lock(), 1) == 1 and stet.default_persister().stats()["hits"] == 1
    lock = threading.Lock()

    @persistent_cache(ignore=["lock", "by_default"])
    def h(x, by_default=lock):
        return x if lock else 0

    assert h(5) == h(5) == 5
    with pytest.raises(ValueError, match="nothing_here"):
        persistent_cache(ignore="nothing_here")(lambda x: x)


def test_an_exception_is_raised_and_not_kept():
    @counted
    def f(x):
        calls.append(x)
        raise KeyError(x)

    for _ in range(2):
        with pytest.raises(KeyError):
            f(1)
    assert calls == [1, 1] and FsPersister().entries() == []


def test_generators_are_refused():
    def f():
        yield 1

    async def g():
        yield 1

    for bad in (f, g):
        with pytest.raises(TypeError, match="generator"):
            persistent_cache(bad)


def test_methods_depend_on_their_object():
    class Model:
        def __init__(self, rate):
            self.rate = rate

        @counted
        def fit(self, n):
            calls.append(n)
            return self.rate * n

    assert Model(2).fit(3) == Model(2).fit(3) == 6 and Model(3).fit(3) == 9 and calls == [3, 3]


def test_asynchronous_functions_are_awaited_once():
    @counted
    async def f(x):
        await asyncio.sleep(0.001)
        calls.append(x)
        return x * 2

    async def both():
        first = await f(2)
        return first, await f(2), await asyncio.gather(*(f(i) for i in range(5)))

    assert asyncio.run(both()) == (4, 4, [0, 2, 4, 6, 8]) and sorted(calls) == [0, 1, 2, 3, 4]
    assert asyncio.run(f(4)) == 8 and len(calls) == 5 and asyncio.iscoroutinefunction(f)


def test_the_event_loop_goes_on_while_the_storage_waits():
    p = FsPersister(lock_timeout_ms=300)
    p.put(stet.Entry(stet.ExecutionKey("b", "A" * 43, datetime.now(timezone.utc)), {}))
    other = sqlite3.connect(p.directory / "locks" / "modification.lock", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")

    @persistent_cache(persister=p)
    async def f(x):
        return x

    async def main():
        ticks, done = 0, asyncio.ensure_future(f(1))
        while not done.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks, done.result()

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ticks, result = asyncio.run(main())
    other.close()
    assert result == 1 and ticks > 5 and any("not stored" in str(w.message) for w in said)


def test_the_entry_of_a_function_is_readable_with_the_program(here):
    @persistent_cache("square", content_spec={"variables": "json"})
    def f(x):
        return x * x

    assert f(7) == 49
    listed = program("persist", "list").stdout
    assert "square:" in listed
    key = f.execution_key(7)
    assert program("persist", "get", "--block", key.block_id, f"--module={key.module_hash}").stdout == '{"return": 49}'


def test_method_is_deprecated_and_means_content_spec():
    with pytest.warns(DeprecationWarning, match="content_spec"):
        f = persistent_cache(method="json")(lambda x: [x])
    assert f(1) == f(1) == [1]
    assert FsPersister().entries()[0].content_format("variables") == "json"
    with pytest.raises(TypeError):
        persistent_cache(method="json", content_spec={"variables": "json"})


def test_keyword_arguments_reach_the_pickler():
    f = persistent_cache(protocol=5)(lambda x: x)
    f(1)
    m = FsPersister().entries()[0]
    assert (FsPersister().directory / "objects" / m.content_object_id("variables")).read_bytes()[:2] == b"\x80\x05" and f(1) == 1
    with pytest.raises(TypeError, match="protcol"):
        persistent_cache(protcol=5)
    with pytest.raises(ValueError):
        persistent_cache(content_spec={"variables": "yaml"})


def test_a_result_that_can_not_be_stored_is_given_all_the_same():
    @persistent_cache
    def f(x):
        return lambda: x

    with pytest.warns(stet.StorageWarning, match="not stored"):
        assert f(3)() == 3


def test_a_result_that_can_not_be_read_is_computed_again(here):
    @counted
    def f(x):
        calls.append(x)
        return x

    f(1)
    p = FsPersister()
    key = f.execution_key(1)

    class Gone:
        pass

    Gone.__qualname__ = "Gone"
    globals()["Gone"] = Gone
    Gone.__module__ = __name__
    p.put(stet.Entry(stet.ExecutionKey(key.block_id, key.module_hash, datetime.now(timezone.utc) + timedelta(seconds=1)), {"return": Gone()}))
    del globals()["Gone"]
    with pytest.warns(stet.StorageWarning, match="computed again"):
        assert f(1) == 1
    assert calls == [1, 1]


def test_the_default_cleanup_keeps_a_result_for_each_set_of_arguments():
    @counted
    def f(x):
        calls.append(x)
        return x

    for i in range(10):
        f(i)
    stet.default_persister().on_exit()
    assert len(FsPersister().entries()) == 10 and [f(i) for i in range(10)] == list(range(10)) and len(calls) == 10


def test_a_function_that_calls_itself_is_found_at_every_step():
    @persistent_cache
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    assert fib(12) == 144 and len(FsPersister().entries()) == 13


# ---- what the key covers ----

PROGRAM = """
    from stet import persistent_cache
    {before}

    @persistent_cache
    def f(x):
        print("ran")
        {body}

    f({argument})
"""


def ran(run, before="", body="return x", argument="1", **more):
    return run(PROGRAM.format(before=before.replace("\n", "\n    "), body=body.replace("\n", "\n        "), argument=argument), **more) == ["ran"]


def test_changed_code_is_run_again_and_comments_are_no_change(run):
    assert ran(run) and not ran(run) and not ran(run, body="# a comment\n\nreturn x") and ran(run, body="return x + 0") and not ran(run)


def test_functions_that_it_calls_count_however_deep(run):
    chain = "def h(x): return x + {}\ndef g(x): return h(x)"
    assert ran(run, chain.format(1), "return g(x)") and not ran(run, chain.format(1), "return g(x)") and ran(run, chain.format(2), "return g(x)")
    nested = "def h(x): return x + {}"
    body = "def inner(): return [h(i) for i in range(x)]\nreturn inner()"
    assert ran(run, nested.format(1), body) and not ran(run, nested.format(1), body) and ran(run, nested.format(2), body)


def test_functions_that_call_each_other_count(run):
    text = "def a(n): return n if n < 1 else b(n - 1)\ndef b(n): return a(n - {})"
    assert ran(run, text.format(1), "return a(x)") and not ran(run, text.format(1), "return a(x)") and ran(run, text.format(2), "return a(x)")


def test_variables_defaults_and_closures_count(run):
    assert ran(run, "K = 1", "return x + K") and not ran(run, "K = 1", "return x + K") and ran(run, "K = 2", "return x + K")
    assert not ran(run, "K = 2\nUNUSED = 3", "return x + K")
    closure = "def make(n):\n    return lambda x: x + n\ng = make({})"
    assert ran(run, closure.format(1), "return g(x)") and not ran(run, closure.format(1), "return g(x)") and ran(run, closure.format(2), "return g(x)")
    default = "def g(x, n={}): return x + n"
    assert ran(run, default.format(1), "return g(x)") and ran(run, default.format(2), "return g(x)") and not ran(run, default.format(1), "return g(x)")


def test_classes_and_their_methods_count(run):
    text = "class A:\n    n = 1\n    def m(self, x): return x + {}\n    @staticmethod\n    def s(x): return x\n    @property\n    def p(self): return {}"
    assert ran(run, text.format(1, 1), "return A().m(x)") and not ran(run, text.format(1, 1), "return A().m(x)")
    assert ran(run, text.format(2, 1), "return A().m(x)") and ran(run, text.format(2, 2), "return A().m(x)")


def test_functions_of_the_users_modules_count_and_those_of_packages_by_version(run):
    run.file("helper.py", "def g(x): return x + 1\ndef other(x): return 1\n")
    before, body = "import helper, json", "return json.dumps(helper.g(x))"
    assert ran(run, before, body) and not ran(run, before, body)
    run.file("helper.py", "def g(x): return x + 1\ndef other(x): return 2\n")
    assert not ran(run, before, body)  # what it does not call does not count
    run.file("helper.py", "def g(x): return x + 2\ndef other(x): return 2\n")
    assert ran(run, before, body)
    inside = "import helper\nfrom helper import g as h\nreturn h(x)"
    assert ran(run, "", inside) and not ran(run, "", inside)
    run.file("helper.py", "def g(x): return x + 3\n")
    assert ran(run, "", inside)


def test_decorated_and_wrapped_functions_count(run):
    text = "import functools\n@functools.lru_cache\ndef g(x): return x + {}\nh = functools.partial(g, {})"
    assert ran(run, text.format(1, 1), "return h() + g(x)") and not ran(run, text.format(1, 1), "return h() + g(x)")
    assert ran(run, text.format(2, 1), "return h() + g(x)") and ran(run, text.format(2, 3), "return h() + g(x)")
    other = "@persistent_cache\ndef g(x): return x + {}"
    assert ran(run, other.format(1), "return g(x)") and not ran(run, other.format(1), "return g(x)") and ran(run, other.format(2), "return g(x)")


def test_keys_are_the_same_in_every_process(run):
    values = "S = {{'a', 'b', 'cd', (1, 'x')}}; D = {{'k': S}}; L = [D, D]; L.append(L)".replace("{{", "{").replace("}}", "}")
    before = values + "\nimport dataclasses, datetime, decimal, enum, pathlib, collections\nclass E(enum.Enum):\n    A = 1\n@dataclasses.dataclass\nclass P:\n    x: int = 1\n    y: object = None\n" \
        "W = [E.A, P(2, S), datetime.datetime(2024, 1, 1), decimal.Decimal('1.5'), pathlib.Path('a'), collections.OrderedDict(a=1), bytearray(b'x')]"
    body = "return len(L) + len(W) + (x in {'a', 'b', 'cd'})"
    assert ran(run, before, body, env={"PYTHONHASHSEED": "1"})
    for seed in "2", "3", "random":
        assert not ran(run, before, body, env={"PYTHONHASHSEED": seed})
    assert ran(run, before.replace("P(2, S)", "P(3, S)"), body) and ran(run, before.replace("1.5", "1.6"), body)


def test_equal_values_make_equal_keys_whichever_objects_are_one(run):
    before = "a = 'x' * 3; b = ''.join(['x', 'x', 'x']); V = [{}, {}]"
    assert ran(run, before.format("a", "a"), "return V and x") and not ran(run, before.format("a", "b"), "return V and x")


def test_arrays_count_by_their_memory(run):
    before = "import array\nA = array.array('d', [1.0, {}])\nB = memoryview(b'abcd')[::2]"
    assert ran(run, before.format("2.0"), "return A[0] + B[0]") and not ran(run, before.format("2.0"), "return A[0] + B[0]") and ran(run, before.format("3.0"), "return A[0] + B[0]")


def test_arrays_of_numpy_count_by_what_they_are_and_not_by_how_they_lie():
    import numpy

    def key(value):
        return stet.keys.digest_of(value)

    a = numpy.arange(12.0).reshape(3, 4)
    assert key(a) == key(a.copy()) == key(numpy.asfortranarray(a)) and key(a[::2]) == key(a[::2].copy())
    changed = a.copy()
    changed[1, 1] += 1
    masked = [numpy.ma.array([1, 2], mask=mask) for mask in ([0, 1], [1, 0])]
    dates = [numpy.array([day], dtype="M8[D]") for day in ("2024-01-01", "2024-01-02")]
    things = [numpy.array([1, x, None], dtype=object) for x in ("a", "b")]
    records = [numpy.array([(1, 2.0)], dtype=[(name, "i4"), ("y", "f8")]) for name in ("x", "z")]
    all = [a, changed, a.T, a.astype("f4"), a.reshape(4, 3), a.ravel(), *masked, *dates, *things, *records, numpy.float64(1), numpy.float32(1), numpy.zeros(0), numpy.zeros((0, 2)),
           numpy.random.default_rng(1), numpy.random.default_rng(2), numpy.sum, numpy.dtype("f8")]
    keys = [key(v) for v in all]
    assert len(set(keys)) == len(all) and keys == [key(v) for v in all]


def test_shared_structure_is_looked_at_once():
    value = [1]
    for _ in range(60):
        value = [value, value]

    @persistent_cache
    def f(v):
        return len(v)

    assert f(value) == 2


# ---- blocks ----

def test_a_block_is_skipped_and_its_variables_are_there(run):
    text = """
        from stet import persistent_cache
        k = {k}
        with persistent_cache("model") as cache:
            print("ran")
            a = k * 2
            b, *c = [a, 1, 2]
            for i in range(2):
                d = i
            e: int = 5
            e += 1
        print(cache.hit, a, b, c, d, e, i, sep=",")
    """
    assert run(text.format(k=3)) == ["ran", "False,6,6,[1,", "2],1,6,1"]
    assert run(text.format(k=3)) == ["True,6,6,[1,", "2],1,6,1"]
    assert run(text.format(k=4))[0] == "ran"
    assert [e.execution_key.block_id for e in FsPersister().entries()] == ["model", "model"]


def test_a_block_without_a_name_is_named_by_its_code(run):
    text = """
        from stet import persistent_cache
        k = {k}
        with persistent_cache() as cache:
            a = k
        print(cache.hit)
    """
    assert run(text.format(k=1)) == run(text.format(k=2)) == ["False"] and run(text.format(k=1)) == ["True"]
    blocks = {e.execution_key.block_id for e in FsPersister().entries()}
    assert len(blocks) == 1 and len(blocks.pop()) == 43


def test_blocks_in_functions_loops_and_coroutines(run):
    text = """
        import asyncio
        from stet import persistent_cache

        def outer(n):
            shown = []
            for i in range(n):
                with persistent_cache("loop") as cache:
                    import math
                    square = math.pow(i, 2)
                    cell = [square]
                shown.append((cache.hit, square))
                f = lambda: cell[0] + square
                assert f() == 2 * square
            return shown, math.pi

        async def main():
            with persistent_cache("await") as cache:
                await asyncio.sleep(0)
                x = 1
            return cache.hit, x

        print([hit for hit, _ in outer(3)[0]], asyncio.run(main())[0], sep="")
    """
    assert run(text) == ["[False,", "False,", "False]False"] and run(text) == ["[True,", "True,", "True]True"]


def test_what_a_block_assigns_first_is_no_input(run):
    text = """
        from stet import persistent_cache
        def once():
            global y
            with persistent_cache("b") as cache:
                y = 1
                z = y + 1
            return cache.hit
        print(once(), once())
        for _ in range(2):
            with persistent_cache("c") as cache:
                total = 0
                for i in range(3):
                    total += i
            print(cache.hit)
    """
    assert run(text) == ["False", "True", "False", "True"]


def test_functions_that_a_block_calls_count(run):
    text = """
        from stet import persistent_cache
        import helper
        def g(x): return helper.h(x) + {n}
        with persistent_cache("b") as cache:
            y = g(1)
        print(cache.hit)
    """
    run.file("helper.py", "def h(x): return x\n")
    assert [run(text.format(n=n)) for n in (1, 1, 2, 1)] == [["False"], ["True"], ["False"], ["True"]]
    run.file("helper.py", "def h(x): return x + 1\n")
    assert run(text.format(n=1)) == ["False"]


def test_imports_functions_and_classes_of_a_skipped_block_are_there(run):
    text = """
        from stet import persistent_cache
        with persistent_cache("b") as cache:
            import json as j
            from math import pi
            def f(x): return x + 1
            class C: pass
            y = f(1)
        print(cache.hit, j.dumps(y), f(2), C.__name__, pi > 3)
    """
    assert run(text) == ["False", "2", "3", "C", "True"] and run(text) == ["True", "2", "3", "C", "True"]
    assert set(FsPersister().get(FsPersister().entries()[0].execution_key).variables) == {"y"}


@pytest.mark.parametrize("change, named", [
    ('d["b"] = 2', "d"), ('d.update(b=2)', "d"), ('d["l"].append(1)', "['l'] of d"), ('o.y = 2', "o"), ('del d["a"]', "d"), ('o.__dict__.clear()', "o"), ('touch()', "d of touch"),
    ('e = d; e["z"] = 1', "d"), ('[d.pop("a") for _ in range(1)]', "d")])
def test_a_block_that_changes_an_object_of_others_is_not_kept(run, change, named):
    text = f"""
        from stet import persistent_cache
        class C: pass
        o = C()
        o.x = 1
        d = {{"a": 1, "l": []}}
        def touch(): d["t"] = 1
        with persistent_cache("b") as cache:
            {change}
            z = 1
        print(cache.hit)
    """
    for _ in range(2):
        assert run(text) == ["False"] and f"changed {named}, which" in run.err


def test_a_variable_that_a_block_only_gives_another_value_is_no_change(run):
    text = """
        from stet import persistent_cache
        total, rows, K = 1, [1, 2], 5
        def read(): return K
        with persistent_cache("b") as cache:
            rows = rows + [3]
            total += len(rows)
            K = 6
            got = read()
        print(cache.hit, rows[-1], total, K, got)
    """
    assert run(text) == ["False", "3", "4", "6", "6"] and run(text) == ["True", "3", "4", "6", "6"]


def test_a_variable_that_a_block_may_leave_as_it_was_counts(run):
    text = """
        from stet import persistent_cache
        y = {y}
        flag = {flag}
        with persistent_cache("b") as cache:
            if flag:
                y = 7
            z = 1
        print(cache.hit, y)
    """
    assert [run(text.format(y=y, flag=False)) for y in (1, 1, 2)] == [["False", "1"], ["True", "1"], ["False", "2"]]
    assert [run(text.format(y=y, flag=True)) for y in (1, 1, 2)] == [["False", "7"], ["True", "7"], ["True", "7"]]


@pytest.mark.parametrize("statement, k, wanted", [
    ("z = [i for i in i]", "i = [1, {}]", "[1, {}]"), ("z = [k for k in [1]] + [k]", "k = {}", "[1, {}]"), ("z = (lambda k=k: k)()", "k = {}", "{}"),
    ("z = sum(k for _ in [1])", "k = {}", "{}"), ("z = [(k := i) for i in [1]][0] + j", "j = {}", None), ("z = {n: k for n in [1]}[1]", "k = {}", "{}")])
def test_scopes_inside_a_block_are_those_of_python(run, statement, k, wanted):
    text = f"from stet import persistent_cache\n{k}\nwith persistent_cache('b') as cache:\n    {statement}\nprint(cache.hit, str(z).replace(' ', ''))\n"
    seen = [run(text.replace("{}", n)) for n in "448"]
    assert [hit for hit, _ in seen] == ["False", "True", "False"] and seen[0] == ["False", seen[1][1]] and seen[2][1] != seen[1][1]


@pytest.mark.parametrize("text, word", [
    ("def f():\n    with persistent_cache('a'):\n        x = 1\n        return x\nf()", "return"), ("for i in [1]:\n    with persistent_cache('a'):\n        x = 1\n        break", "break"),
    ("for i in [1]:\n    with persistent_cache('a'):\n        x = 1\n        continue", "continue"), ("def f():\n    with persistent_cache('a'):\n        x = 1\n        yield x\nlist(f())", "yield"),
    ("for i in [1]:\n    with persistent_cache('a'):\n        for j in []: pass\n        else: break", "break"), ("x = 1\nwith persistent_cache('a'):\n    del x", "deletes 'x'"),
    ("with persistent_cache('a'):\n    from math import *", "import *"), ("with persistent_cache('a'):\n    x = locals()", "locals()"),
    ("with persistent_cache('a'):\n    if 1:\n        def f(): pass", "outside the block"), ("with persistent_cache('a'):\n    k = 1\n    def f(x=k): pass", "'k'")])
def test_what_a_skipped_block_could_not_do_is_refused(run, text, word):
    run("from stet import persistent_cache\n" + text, status=1)
    assert word in run.err and "ValueError" in run.err and "script.py:" in run.err


def test_loops_and_functions_of_the_blocks_own_may_be_left(run):
    text = """
        from stet import persistent_cache
        with persistent_cache("b") as cache:
            for i in range(5):
                if i == 3:
                    break
            squares = list(map(lambda v: v * v, [i]))
            def f():
                return 1
        print(cache.hit, squares, f())
    """
    assert run(text) == ["False", "[9]", "1"] and run(text) == ["True", "[9]", "1"]


@pytest.mark.parametrize("value", ["(1, 2)", "{1: 2}", "[{'a': (1,)}]", "{'a': {'b': 2.5, 3: 4}}"])
def test_what_json_would_change_is_not_kept(value):
    f = persistent_cache(content_spec={"variables": "json"})(lambda x: copy.deepcopy(x))
    with pytest.warns(stet.StorageWarning, match="JSON"):
        assert f(eval(value)) == eval(value)
    assert FsPersister().entries() == []
    assert f([1, {"a": [None, True, 1.5, "x"]}]) == f([1, {"a": [None, True, 1.5, "x"]}]) and len(FsPersister().entries()) == 1


def test_an_exception_in_a_block_is_raised_and_nothing_is_kept(run):
    text = """
        from stet import persistent_cache
        with persistent_cache("b"):
            x = 1
            raise SystemExit(7)
    """
    for _ in range(2):
        run(text, status=7)
    assert FsPersister().entries() == []


@pytest.mark.parametrize("text, wanted", [
    ("with persistent_cache('a') as a, persistent_cache('b') as b:\n    x = 1", "alone"),
    ("with persistent_cache('a'): x = 1", "new line"),
    ("def f():\n    with persistent_cache('a'):\n        def g(): pass\nf()", "outside the block"),
])
def test_blocks_that_can_not_be_skipped_are_refused(run, text, wanted):
    run("from stet import persistent_cache\n" + text, status=1)
    assert wanted in run.err


def test_a_block_without_source_is_an_error_with_the_way_out():
    with pytest.raises(OSError, match="decorator"):
        exec("with persistent_cache('a'):\n    x = 1", {"persistent_cache": persistent_cache})


def test_a_file_that_changed_since_it_was_loaded_is_not_trusted(run):
    run.file("late.py", "from stet import persistent_cache\ndef f():\n    with persistent_cache('b') as cache:\n        x = 1\n    return x\n")
    text = """
        import late, pathlib
        pathlib.Path("late.py").write_text(pathlib.Path("late.py").read_text().replace("x = 1", "x = 2"))
        print(late.f())
    """
    assert run(text) == ["1"] and "has changed since it was loaded" in run.err and FsPersister().entries() == []


def test_a_trace_function_of_a_debugger_stays(run):
    text = """
        import sys
        from stet import persistent_cache
        lines = []
        def trace(frame, event, arg):
            if frame.f_code.co_filename == __file__:
                lines.append(frame.f_lineno)
                return trace
        def f():
            with persistent_cache("b") as cache:
                x = 1
            return cache.hit
        sys.settrace(trace)
        hit = f()
        after = sys.gettrace() is trace
        sys.settrace(None)
        print(hit, after, f.__code__.co_firstlineno + 3 in lines)
    """
    assert run(text) == ["False", "True", "True"] and run(text) == ["True", "True", "True"]


def test_blocks_in_threads(run):
    text = """
        import threading
        from stet import persistent_cache
        hits = []
        def f(n):
            for _ in range(20):
                with persistent_cache("b") as cache:
                    x = n + 1
                assert x == n + 1
                hits.append(cache.hit)
        threads = [threading.Thread(target=f, args=(n,)) for n in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        print(len(hits), hits.count(False))
    """
    assert run(text) == ["80", "4"]
