"""Workflows: plain Python functions whose finished steps are not run again, whatever ends the process in between.

The result of each step is a document of the project's space `workflows`, committed (and synced to the disk) before the step returns. There is no server: whoever runs the workflow
again, under the same id, is given the results of the steps that were finished, and goes on after them.
"""
import base64
import contextvars
import functools
import hashlib
import inspect
import os
import reprlib
import threading
import types

from . import _stet, flight, formats, where
from .errors import BusyError, ConflictError, StetError
from .project import Project

_running = contextvars.ContextVar("stet workflow", default=None)
_spaces, _taken, _lock = {}, set(), threading.Lock()
_SHOWN, _COMPARED = 200, 1 << 16


class WorkflowMismatch(StetError):
    """A workflow did something else than it did before under the same id: its id is another one's, or its code is not what the finished steps come from."""

    code = "conflict"


def _mismatch(message, hint):
    return WorkflowMismatch(message, hint, None)


def _space():
    _, base = where.find_base()
    at = (os.getpid(), os.fspath(base.parent))
    with _lock:
        if at not in _spaces:
            if not where.exists("stet", base):
                _stet.project_init(os.fspath(base.parent))
            _spaces[at] = Project(base.parent).space("workflows")
        return _spaces[at], at[1]


def _text(value):
    return base64.b64encode(formats.dumps(value)).decode()


def _value(text):
    return formats.loads(base64.b64decode(text))


def _show(name, args, kwargs):
    parts = [reprlib.repr(a) for a in args] + [f"{k}={reprlib.repr(v)}" for k, v in kwargs.items()]
    text = f"{name}({', '.join(parts)})"
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def _arguments(args, kwargs):
    """As they are compared: whole, or if they are large by their hash."""
    text = _text((args, sorted(kwargs.items())))
    return text if len(text) <= _COMPARED else "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _same(stored, now, args, kwargs):
    if stored == now:
        return True
    if stored.startswith("sha256:"):
        return False
    try:  # equal sets may be pickled in another order
        return bool(_value(stored) == (args, sorted(kwargs.items())))
    except Exception:
        return False


class workflow:
    """One workflow, known by its id.

        with stet.workflow("order 17"):         stet.workflow("order 17").run(order, customer, total)
            receipt = charge(customer, total)
            send(receipt)

    Functions with `@stet.step` that are called inside are its steps. A step is known by its name and by how many of that name came before it. `run` keeps the result of the function, too: a
    finished workflow gives it back without running anything. The same id may be under way once at a time.
    """

    def __init__(self, id):
        if not isinstance(id, str) or not id:
            raise TypeError("the id of a workflow is a str")
        self.id = id
        self._document = "workflow." + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()
        self._token = self._file_lock = None

    def __repr__(self):
        return f"workflow({self.id!r})"

    # ---- records ----

    def _open(self):
        self._space, root = _space()
        self._key = (root, self._document)
        with _lock:
            if self._key in _taken:
                raise BusyError(f"the workflow {self.id!r} is under way in this process", "", None)
            _taken.add(self._key)
        self._file_lock = flight.FileLock(root, types.SimpleNamespace(block_id="workflow", module_hash=self._document))
        if not self._file_lock.try_once():
            self._close()
            raise BusyError(f"the workflow {self.id!r} is under way in another process", "", None)
        self._records, self._counts, self._failed, self._next, self._broken = {}, {}, [], 0, None
        while (record := self._space.get(f"{self._document}.{self._next}", None)) is not None:
            self._records[record["step"], record["count"]] = record
            self._next += 1

    def _close(self):
        if self._file_lock is not None:
            self._file_lock.release()
            self._file_lock = None
        with _lock:
            _taken.discard(self._key)

    def _write(self, record):
        try:
            with self._space.begin() as tx:
                tx.require_absent(f"{self._document}.{self._next}")
                tx.set(f"{self._document}.{self._next}", {"workflow": self.id, **record})
        except ConflictError:
            raise BusyError(f"the workflow {self.id!r} is under way elsewhere: another process has finished {record['step']}", "", None) from None
        self._records[record["step"], record["count"]] = record
        self._next += 1

    def _found(self, step, count, shown, arguments, args, kwargs):
        """The record of a finished step, or None."""
        record = self._records.get((step, count))
        if record is not None and not _same(record["arguments"], arguments, args, kwargs):
            self._broken = _mismatch(f"the workflow {self.id!r} called {record['shown']} before, and now calls {shown} in its place",
                                     "a workflow decides by its arguments and the results of its steps alone: read the clock, random numbers and files in steps")
            raise self._broken
        return record

    # ---- steps ----

    def _begin(self, step, args, kwargs):
        """What is known of the next step of this name: (its record or None, what is needed to write one)."""
        if self._broken is not None:
            raise self._broken
        self._write_failed()
        count = self._counts.get(step, 0)
        self._counts[step] = count + 1
        shown, arguments = _show(step, args, kwargs), _arguments(args, kwargs)
        return self._found(step, count, shown, arguments, args, kwargs), {"step": step, "count": count, "shown": shown, "arguments": arguments}

    def _write_failed(self):
        """Steps that failed, and after which the workflow went on: that stands. One that ends the workflow runs again with it."""
        while self._failed:
            self._write(self._failed.pop(0))

    def _finish(self, record, result):
        """The copy that whoever runs the workflow again will get."""
        record["result"] = _text(result)
        self._write(record)
        return _value(record["result"])

    def _fail(self, record, error):
        try:
            self._failed.append({**record, "error": _text(error)})
        except Exception:
            pass  # an exception that can't be pickled: the step runs again

    @staticmethod
    def _outcome(record):
        if "error" in record:
            raise _value(record["error"])
        return _value(record["result"])

    # ---- the whole ----

    def __enter__(self):
        if _running.get() is not None:
            raise RuntimeError(f"{_running.get()!r} is under way: a workflow inside another one is a step of it")
        self._open()
        self._token = _running.set(self)
        return self

    def __exit__(self, kind, value, trace):
        _running.reset(self._token)
        try:
            if kind is None and self._broken is not None:  # the workflow caught it
                raise self._broken
            if kind is None:
                self._write_failed()
        finally:
            self._close()
        return False

    async def __aenter__(self):
        return self.__enter__()

    async def __aexit__(self, *exc):
        return self.__exit__(*exc)

    def run(self, function, *args, **kwargs):
        """Runs the workflow, or what is left of it, and returns its result; awaits it if the function is asynchronous."""
        if inspect.iscoroutinefunction(function):
            return self._run_async(function, args, kwargs)
        with self:
            record, mine = self._begin("", args, kwargs)
            if record is not None:
                return self._outcome(record)
            result = function(*args, **kwargs)
            if self._broken is not None:
                raise self._broken
            self._write_failed()
            return self._finish(mine, result)

    async def _run_async(self, function, args, kwargs):
        with self:
            record, mine = self._begin("", args, kwargs)
            if record is not None:
                return self._outcome(record)
            result = await function(*args, **kwargs)
            if self._broken is not None:
                raise self._broken
            self._write_failed()
            return self._finish(mine, result)

    def steps(self):
        """What was finished so far, in order, as it was called."""
        with self:
            return [r["shown"] for r in self._records.values() if r["step"]]

    def forget(self):
        """Deletes all that is known of it: the next run begins anew."""
        with self:
            for n in reversed(range(self._next)):  # the first one last, so that a part of it is a shorter workflow
                self._space.delete(f"{self._document}.{n}")


def step(function=None, *, name=None):
    """Makes a function a step: inside a workflow its result is kept before it returns, and it is not run again. Outside, and inside another step, it is just the function."""
    if function is None:
        return functools.partial(step, name=name)
    called = name or function.__qualname__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{called} is a generator: return a list instead")
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            running = _running.get()
            if running is None:
                return await function(*args, **kwargs)
            record, mine = running._begin(called, args, kwargs)
            if record is not None:
                return running._outcome(record)
            token = _running.set(None)
            try:
                result = await function(*args, **kwargs)
            except Exception as e:
                running._fail(mine, e)
                raise
            finally:
                _running.reset(token)
            return running._finish(mine, result)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            running = _running.get()
            if running is None:
                return function(*args, **kwargs)
            record, mine = running._begin(called, args, kwargs)
            if record is not None:
                return running._outcome(record)
            token = _running.set(None)
            try:
                result = function(*args, **kwargs)
            except Exception as e:
                running._fail(mine, e)
                raise
            finally:
                _running.reset(token)
            return running._finish(mine, result)

    return wrapper


def _forked():
    global _lock
    _lock = threading.Lock()
    _taken.clear()
    _spaces.clear()
    _running.set(None)  # the parent's workflow goes on in the parent


os.register_at_fork(after_in_child=_forked)
