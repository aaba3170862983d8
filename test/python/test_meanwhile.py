"""Files of `depends_on` that change while the work runs, their modes, classes of libraries in abstract classes, arrays that share memory."""
import os
import warnings

import pytest


@pytest.fixture
def data(here):
    (here / "data").mkdir()
    (here / "data/a.txt").write_text("1")
    return here / "data"


WORK = """
    import asyncio, pathlib, time
    from stet import persistent_cache
    def work():
        file = pathlib.Path("data/a.txt")
        file.write_text("2")
        read = file.read_text()
        file.write_text("1")
        print("COMPUTE", read)
"""


@pytest.mark.parametrize("text", [
    '@persistent_cache(depends_on="data/a.txt")\ndef f(): work()\nf()',
    '@persistent_cache(depends_on="data")\ndef f(): work()\nf()',
    '@persistent_cache(depends_on="data/a.txt")\nasync def f(): work()\nasyncio.run(f())',
    'with persistent_cache("block", depends_on="data/a.txt"):\n    x = work()'], ids=["function", "directory", "async", "block"])
def test_a_file_that_changes_and_changes_back_leaves_no_result(run, data, text):
    import textwrap

    for _ in range(2):
        assert run(textwrap.dedent(WORK) + text) == ["COMPUTE", "2"]
        assert "a file of depends_on" in run.err


def test_the_mode_of_a_file_counts_if_it_makes_it_executable(run, data):
    text = """
        from stet import persistent_cache
        @persistent_cache(depends_on="data/a.txt")
        def f():
            print("COMPUTE")
        f()
    """
    assert run(text) == ["COMPUTE"] and run(text) == []
    os.chmod(data / "a.txt", 0o755)
    assert run(text) == ["COMPUTE"] and run(text) == []
    os.chmod(data / "a.txt", 0o700)
    assert run(text) == []
    os.chmod(data / "a.txt", 0o600)
    assert run(text) == []


def test_classes_of_libraries_that_are_registered_count(run):
    text = """
        from abc import ABC
        from stet import persistent_cache
        class Number(ABC): pass
        REGISTER
        @persistent_cache
        def f():
            print("COMPUTE")
            return [isinstance(1, Number), isinstance("", Number)]
        print(*f())
    """
    assert run(text.replace("REGISTER", "")) == ["COMPUTE", "False", "False"]
    assert run(text.replace("REGISTER", "Number.register(int)")) == ["COMPUTE", "True", "False"]
    assert run(text.replace("REGISTER", "Number.register(str)")) == ["COMPUTE", "False", "True"]
    assert run(text.replace("REGISTER", "Number.register(int)")) == ["True", "False"]


def test_a_class_that_is_registered_later_counts(run):
    text = """
        from abc import ABC
        from stet import persistent_cache
        class Number(ABC): pass
        @persistent_cache
        def f():
            print("COMPUTE")
            return isinstance(1, Number)
        print(f(), f())
        Number.register(int)
        print(f(), f())
    """
    assert run(text) == ["COMPUTE", "False", "False", "COMPUTE", "True", "True"]


def test_arrays_of_a_result_that_share_their_memory_are_not_kept(here):
    from stet import persistent_cache

    numpy = pytest.importorskip("numpy")

    def pair(kind, n):
        a = numpy.arange(n * n).reshape(n, n)
        return {"rows": (a, a[1:]), "turned": (a, a.T), "apart": (a[:1], a[1:]), "twice": (a, a), "copy": (a, a.copy())}[kind]

    cached = persistent_cache(ignore=("numpy",))(pair)
    for n in (3, 200):
        for kind in ("rows", "turned", "apart", "twice", "copy"):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                first = cached(kind, n)
                second = cached(kind, n)
            kept = kind in ("apart", "twice", "copy")
            assert any("share their memory" in str(w.message) for w in caught) == (not kept), (kind, n, [str(w.message) for w in caught])
            assert (second is not first) and numpy.may_share_memory(*first) == numpy.may_share_memory(*second) or kind == "apart", (kind, n)
