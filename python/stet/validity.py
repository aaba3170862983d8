"""How long a result holds: while files are as they were, and until a time; its own and those of what it was computed from.

A cached function or block that is used inside another one hands on what it depends on to the one around it. Where the inner one is a decorated function, its files are known beforehand and are
a part of the outer key. All else (a block inside, the time until which an inner result holds) is noted while the outer one computes, and lies with its entry.
"""
import contextlib
import contextvars
import hashlib
import os
import threading

from . import _stet
from .files import digest_of_path, times_of_path

_around = contextvars.ContextVar("stet computation", default=None)
_under_way, _lock = set(), threading.Lock()


def digests_of_files(paths):
    return {os.fsdecode(p): digest_of_path(p).hex() for p in paths}


def bytes_of_files(files):
    """What a key holds of them."""
    return hashlib.sha256(repr(sorted(files.items())).encode("utf-8", "surrogatepass")).digest() if files else b""


def earlier(a, b):
    return a if b is None else b if a is None else min(a, b)


class Computation:
    """What was noted while one result is computed."""

    __slots__ = ("files", "until", "_held", "_times")

    def __init__(self, held):
        self.files, self.until = {}, None
        self._held, self._times = held, {p: times_of_path(p, settle=True) for p in held}

    def hold(self):
        """Are the files of the key what they were, and were they that all the time?"""
        return not self._held or (digests_of_files(self._held) == self._held and all(times_of_path(p) == t for p, t in self._times.items()))

    def note(self, files, until):
        for path, digest in files.items():
            # Two inner results saw two states of a file: no state is the one that this result holds for.
            self.files[path] = digest if self.files.get(path, digest) == digest else ""
        self.until = earlier(self.until, until)

    def extra(self, covered):
        """For the entry: what its key does not cover."""
        files = {p: d for p, d in self.files.items() if covered.get(p) != d}
        return {k: v for k, v in (("files", files), ("until", self.until)) if v}


def begin(files):
    """Of a computation: (what is noted, what `end` needs). `files`: those of its key, with their digests."""
    noted = Computation(files)
    with _lock:
        _under_way.add(noted)
    return noted, _around.set(noted)


def end(noted, token):
    with _lock:
        _under_way.discard(noted)
    with contextlib.suppress(ValueError):  # a generator that was closed elsewhere
        _around.reset(token)


def hand_on(files, until):
    """To the computation around the caller. A thread that knows of none may belong to any that is under way."""
    if not files and until is None:
        return
    around = _around.get()
    if around is not None:
        around.note(files, until)
    elif _under_way:
        with _lock:
            for one in _under_way:
                one.note(files, until)


def until_of(began, expires):
    return None if expires is None else began + int(expires * 1000)


def still_holds(entry, covered, expires):
    """Does a stored result hold? If so, what it depends on is handed on. `covered`: the files of its key."""
    extra = entry.extra or {}
    until = earlier(extra.get("until"), until_of(entry.execution_key.millis, expires))
    if until is not None and _stet.now() > until:
        return False
    files = extra.get("files") or {}
    if files and digests_of_files(files) != files:
        return False
    hand_on({**covered, **files}, until)
    return True


def _forked():
    global _lock
    _lock = threading.Lock()
    _under_way.clear()


os.register_at_fork(after_in_child=_forked)
