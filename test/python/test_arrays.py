"""Results that hold arrays: read into their own memory, or mapped."""
import numpy
import pytest

import stet
from stet import FsPersister, persistent_cache

SIZE = 300_000  # above what comes along with an entry


@pytest.mark.parametrize("make", [
    lambda: numpy.arange(SIZE, dtype="f8"), lambda: numpy.asfortranarray(numpy.arange(SIZE, dtype="i4").reshape(600, 500)), lambda: numpy.arange(SIZE)[::3],
    lambda: {"a": [numpy.arange(SIZE), numpy.arange(10)], "b": "x" * SIZE}, lambda: numpy.arange(20_000), lambda: numpy.zeros((0, 3)), lambda: numpy.array(["a", None], dtype=object),
    lambda: numpy.ma.array(numpy.arange(SIZE), mask=numpy.arange(SIZE) % 2)])
@pytest.mark.parametrize("mapped", [False, True])
def test_arrays_come_back_as_they_were(make, mapped):
    calls = []

    @persistent_cache(mmap=mapped, ignore="calls")
    def f():
        calls.append(1)
        return make()

    def same(a, b):
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return type(a) is type(b) and (a == b if isinstance(a, str) else a.dtype == b.dtype and a.shape == b.shape and bool(numpy.all(a == b)) and a.flags.f_contiguous == b.flags.f_contiguous)

    first, second = f(), f()
    right = make()
    if not (isinstance(right, numpy.ndarray) and not right.flags.c_contiguous and not right.flags.f_contiguous):
        assert same(first, right)
    assert bool(numpy.all(first == second)) if isinstance(first, numpy.ndarray) else same(first, second)
    assert calls == [1] and FsPersister().check() == []


def test_what_was_writable_is_writable_and_what_is_mapped_is_not():
    f = persistent_cache(lambda n: numpy.arange(n))
    f(SIZE)
    found = f(SIZE)
    found[0] = 5
    assert f(SIZE)[0] == 0
    mapped = persistent_cache("mapped", mmap=True)(lambda n: numpy.arange(n))
    for _ in range(2):
        with pytest.raises(ValueError):
            mapped(SIZE)[0] = 5

    def frozen(n):
        made = numpy.arange(n)
        made.flags.writeable = False
        return made

    frozen = persistent_cache(frozen)
    frozen(SIZE)
    assert not frozen(SIZE).flags.writeable


@pytest.mark.parametrize("mapped", [False, True])
def test_a_damaged_array_is_computed_again(mapped):
    f = persistent_cache(mmap=mapped)(lambda n: numpy.arange(n))
    f(SIZE), f(SIZE)
    entry, = FsPersister().entries()
    path = FsPersister().directory / "objects" / entry.content_object_id("variables")
    assert entry.content_format("variables") == "pickle5"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    path.chmod(0o444)
    assert f(SIZE).tolist() == list(range(SIZE))
    path.chmod(0o644)
    path.write_bytes(data[:-9])
    assert f(SIZE).tolist() == list(range(SIZE))
    path.unlink()
    assert f(SIZE).tolist() == list(range(SIZE))


def test_an_array_that_went_in_is_that_array():
    a = numpy.arange(SIZE)
    f = persistent_cache(lambda a: (a, a * 2))
    assert f(a)[0] is a and f(a)[0] is a
    with pytest.warns(stet.StorageWarning, match="shares its memory"):
        persistent_cache("view")(lambda a: a[5:])(a)
