"""What a key covers: changes inside one process, what is refused and how to go on. Edited programs of every kind are in edits.py."""
import dataclasses
import functools
import hashlib
import importlib
import json
import pathlib
import threading
import types

import pytest

import stet
from stet import FsPersister, persistent_cache

calls = []
counted = persistent_cache(ignore="calls")
FIRST, SECOND = object(), object()
table = {"k": 1}
things = []


@pytest.fixture(autouse=True)
def fresh():
    calls.clear()
    things.clear()


def key(*values):
    return stet.keys.digest_of(*values)


# ---- changes while the process runs ----

def test_a_variable_that_changes_in_place_is_seen():
    @counted
    def f(x):
        calls.append(x)
        return x + table["k"]

    assert f(1) == f(1) == 2 and calls == [1]
    table["k"] = 5
    try:
        assert f(1) == 6
    finally:
        table["k"] = 1
    assert f(1) == 2 and calls == [1, 1]


def test_functions_classes_and_libraries_may_be_replaced(monkeypatch):
    class A:
        k = 1

        def m(self, x):
            return x + self.k

    def helper(x, n=1):
        return x + n

    def other(x, n=1):
        return x * 10

    @counted
    def f(x):
        calls.append(x)
        return A().m(x), helper(x), json.dumps(x), helper.__name__, A.__name__

    seen = [f(1), f(1)]
    for change in (lambda: monkeypatch.setattr(A, "m", lambda self, x: x + 50), lambda: monkeypatch.setattr(A, "k", 9), lambda: monkeypatch.setattr(helper, "__defaults__", (7,)),
                   lambda: monkeypatch.setattr(helper, "__code__", other.__code__), lambda: monkeypatch.setattr(json, "dumps", lambda x: "patched"),
                   lambda: setattr(A, "late", 1), lambda: setattr(helper, "__name__", "renamed"), lambda: setattr(A, "__name__", "Renamed")):
        change()
        before = len(calls)
        assert f(1) == f.__wrapped__(1) and len(calls) == before + 2
        assert f(1) == f.__wrapped__(1) and len(calls) == before + 3
    assert seen == [(2, 2, "1", "helper", "A")] * 2


def test_which_object_an_argument_is_counts():
    @counted
    def f(x, y=None):
        calls.append(x)
        return x is FIRST, x is y

    shared = [1]
    assert f(FIRST) == f(FIRST) == (True, False) and f(SECOND) == f(SECOND) == (False, False) and f(shared, shared) == (False, True) and f([1], [1]) == (False, False)
    assert len(calls) == 4


def test_a_copy_of_the_attributes_is_not_the_function():
    @persistent_cache
    def inner(x):
        return x

    @functools.wraps(inner)
    def outer(x):
        return inner(x) + 100

    @counted
    def f(x):
        calls.append(x)
        return outer(x)

    @persistent_cache
    def g(x):
        return inner(x)

    assert f(1) == f(1) == 101 and g(1) == 1 and calls == [1] and key(outer) != key(inner)


def test_a_module_that_was_missing_may_come_later(here, monkeypatch):
    monkeypatch.syspath_prepend(str(here))

    @counted
    def f(x):
        calls.append(x)
        try:
            import comes_later
        except ImportError:
            return None
        return comes_later.K

    assert f(1) is None and f(1) is None and calls == [1]
    (here / "comes_later.py").write_text("K = 5\n")
    importlib.invalidate_caches()
    assert f(1) == f(1) == 5 and calls == [1, 1]


# ---- a call that changes what its key covers ----

@pytest.mark.parametrize("change, named", [(lambda a: a.append(1), "rows"), (lambda a: a.sort(), "rows"), (lambda a: things.append(1), "things")])
def test_a_call_that_changes_its_inputs_is_not_kept(change, named):
    @persistent_cache
    def f(rows):
        change(rows)
        return len(rows)

    for n in range(2):
        with pytest.warns(stet.StorageWarning, match=named):
            f([3, 1, 2])
    assert FsPersister().entries() == []


def test_a_global_that_a_function_assigns_counts(run):
    text = """
        from stet import persistent_cache
        G = 0
        @persistent_cache
        def f(x):
            global G
            G = x
            return x
        f(5)
        print(G)
    """
    assert run(text) == run(text) == ["5"] and "is not kept" in run.err


def test_a_cached_property_that_a_call_fills_is_no_change():
    class A:
        def __init__(self, k):
            self.k = k

        @functools.cached_property
        def v(self):
            return self.k + 1

    @counted
    def f(a):
        calls.append(a.k)
        return a.v

    assert f(A(1)) == f(A(1)) == 2 and f(A(2)) == 3 and calls == [1, 2]
    a = A(1)
    a.v, a.k = a.v, 10  # a value that is no longer what the function would give
    assert f(a) == 2 and calls == [1, 2, 10]


# ---- refused, with the way out ----

@pytest.mark.parametrize("body", ["eval('K')", "globals()['K']", "object.__subclasses__()", "__import__('json')", "sys.modules['json']", "sys._getframe()", "(lambda: 0).__globals__",
                                  "getattr(object, '__subclasses__')()", "importlib.import_module('json')", "exec('1')", "pickle.loads(b'')", "__builtins__", "ev('1')"])
def test_code_that_can_read_anything_is_refused(run, body):
    text = f"""
        import importlib, pickle, sys
        from stet import persistent_cache
        K = 1
        ev = eval
        def helper(): return {body}
        @persistent_cache({{}})
        def f(x):
            return x if x else helper()
        print(f(1))
    """
    run(text.format(""), status=1)
    assert "stet.keys.DynamicCode" in run.err and "allow_dynamic=True" in run.err and "helper" in run.err
    assert run(text.format("allow_dynamic=True")) == ["1"]


def test_what_has_no_key_is_named_with_its_place_and_may_be_left_out(run):
    run.file("helper.py", "import threading\nlock = threading.Lock()\nK = 1\ndef g(x):\n    with lock: return x + K\n")
    text = """
        import helper
        from stet import persistent_cache
        @persistent_cache({})
        def f(x):
            print("ran")
            return helper.g(x)
        f(1)
    """
    run(text.format(""), status=1)
    assert "lock of helper.g of script.f" in run.err and "ignore=" in run.err
    assert run(text.format("ignore='helper.lock'")) == ["ran"] and run(text.format("ignore='helper.lock'")) == []
    run.file("helper.py", "import threading\nlock = threading.Lock()\nK = 2\ndef g(x):\n    with lock: return x + K\n")
    assert run(text.format("ignore='helper.lock'")) == ["ran"]


def test_members_without_a_key_do_not_count_as_their_type():
    class A:
        cfg = {"lock": threading.Lock(), "k": 1}

    with pytest.raises(stet.Unhashable, match="lock"):
        key(A)
    with pytest.raises(stet.Unhashable):
        key(iter(open(__file__)))
    with pytest.raises(stet.Unhashable):
        key(i for i in [1])


def test_a_type_may_have_a_hasher_of_its_own():
    class Connection:
        def __init__(self, url):
            self.url, self.lock = url, threading.Lock()

    class Derived(Connection):
        pass

    with pytest.raises(stet.Unhashable):
        key(Connection("a"))
    stet.register_hasher(Connection, lambda c: c.url)
    try:
        assert key(Connection("a")) == key(Connection("a")) != key(Connection("b")) and key(Derived("a")) != key(Connection("a"))
    finally:
        del stet.keys._hashers[Connection]
    with pytest.raises(TypeError):
        stet.register_hasher("Connection", len)


# ---- libraries ----

def library(run, text, version=None):
    folder = run.directory / "lib/dist-packages"
    folder.mkdir(parents=True, exist_ok=True)
    run.file("lib/dist-packages/lib.py", text + (f"\n__version__ = '{version}'\n" if version else ""))
    return {"PYTHONPATH": f"{folder}:{stet_path()}"}


def stet_path():
    return str(pathlib.Path(stet.__file__).parent.parent)


def test_library_code_is_told_by_its_file_and_counts_by_its_version(run):
    text = """
        import lib
        from stet import persistent_cache
        @persistent_cache
        def f(x):
            print("ran")
            return lib.g(x)
        f(1)
    """
    first = "def g(x): return h(x)\ndef h(x): return x + 1"
    second = first.replace("+ 1", "+ 2")
    ran = lambda *a: run(text, env=library(run, *a)) == ["ran"]
    assert ran(first, "1.0") and not ran(first, "1.0")
    assert not ran(second, "1.0")  # the same version is the same code
    assert ran(second, "1.1")
    assert ran(first) and not ran(first) and ran(second)  # without a version its files count


def test_a_function_of_the_users_in_a_library_wrapper_counts(run):
    text = """
        import lib
        from stet import persistent_cache
        @lib.twice
        def h(x): return x + {}
        @persistent_cache
        def f(x):
            print("ran")
            return h(x)
        f(1)
    """
    env = library(run, "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def inner(*a): return 2 * f(*a)\n    return inner", "1")
    assert [run(text.format(n), env=env) for n in (1, 1, 2)] == [["ran"], [], ["ran"]]


def test_numpy_functions_made_from_functions():
    import numpy

    make = lambda n: numpy.frompyfunc(lambda x: x + n, 1, 1)
    assert key(make(1)) == key(make(1)) != key(make(2)) and key(numpy.add) != key(numpy.subtract)
    vector = lambda n: numpy.vectorize(lambda x: x + n)
    assert key(vector(1)) == key(vector(1)) != key(vector(2))


# ---- size and depth ----

def test_ten_thousand_helpers_in_a_chain(run):
    text = "from stet import persistent_cache\n" + "".join(f"def h{i}(x): return h{i + 1}(x) if x else 0\n" for i in range(10_000)) \
        + "def h10000(x): return {}\n@persistent_cache\ndef f(x):\n    print('ran')\n    return h0(x)\nf(0)\n"
    assert [run(text.format(n)) for n in (1, 1, 2)] == [["ran"], [], ["ran"]]


def test_values_of_any_depth():
    def deep(kind, end):
        value = end
        for _ in range(5_000):
            value = kind(value)
        return value

    @dataclasses.dataclass(eq=False)
    class Node:
        next: object

    for kind in (lambda v: [v], lambda v: {"k": v}, lambda v: (v,), lambda v: ([v], 1), Node, lambda v: [v, v]):
        assert key(deep(kind, 1)) == key(deep(kind, 1)) != key(deep(kind, 2))


def test_large_constants_are_hashed_once(monkeypatch):
    text, rows = "x" * 5_000_000, tuple(range(5000))
    large = []

    def sha256(data=b""):
        large.extend([len(data)] if len(data) > 1_000_000 else [])
        return hashlib.sha256(data)

    monkeypatch.setattr(stet.keys, "hashlib", types.SimpleNamespace(sha256=sha256))

    @counted
    def f(x):
        calls.append(x)
        return len(text) + rows[x] + len(things)

    assert f(1) == f(1) == f(1) and calls == [1] and large == [5_000_000]
    things.append(1)
    assert f(1) == f(1) and calls == [1, 1] and large == [5_000_000]


def test_keys_do_not_depend_on_what_happened_before(run):
    text = """
        import sys
        from stet import persistent_cache
        import functools, abc, dataclasses, enum
        class A(abc.ABC):
            x: int = 1
            @functools.cached_property
            def v(self): return 1
        @functools.singledispatch
        def s(x): return 0
        @s.register
        def _(x: int): return 1
        @functools.lru_cache
        def c(x): return x
        @dataclasses.dataclass
        class D:
            k: int = 1
        if sys.argv[1] == "used":
            A().v, s(1), s(""), c(1), isinstance(1, A), D(), A.__annotations__, D.__annotations__, s.__annotations__, c.__doc__
            import copyreg
            copyreg._slotnames(D), repr(D), hash(D)
        @persistent_cache
        def f(x):
            print("ran")
            return A.x, s(x), c(x), D().k
        f(1)
    """
    assert run(text, "fresh") == ["ran"] and run(text, "used") == [] and run(text, "fresh") == []
