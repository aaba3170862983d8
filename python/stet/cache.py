"""persistent_cache: a block or a function whose result is computed once, for all processes and machines that share the directory."""
import ast
import asyncio
import atexit
import ctypes
import functools
import inspect
import os
import sys
import threading
import time
import types
import warnings

from . import _stet, formats, keys, where
from .block import SourceChanged, block_of
from .entry import Entry, ExecutionKey, from_millis
from .errors import ExecutionKeyClash, StetError
from .legacy import LegacyPersister
from .persister import FsPersister, StorageWarning

_defaults, _defaults_lock = {}, threading.Lock()


def default_persister(start=None):
    """The persister of the nearest `.stet/` or `__marimo__/` upward: one that reads `__marimo__/cache` where that exists, else an FsPersister."""
    kind, base = where.find_base(start)
    with _defaults_lock:
        found = _defaults.get(base)
        if found is None:
            if kind == "marimo" and (base / "cache").is_dir():
                found = LegacyPersister(base / "cache")
            else:
                found = FsPersister(start=base.parent)
            _defaults[base] = found
        return found


@atexit.register
def _leave(pid=os.getpid()):
    """What the process put reaches a snapshot, as `cleanup_on_exit` says, so that other machines see it."""
    for persister in list(_defaults.values()) if os.getpid() == pid else ():
        if getattr(persister, "_put_something", False):
            try:
                persister.on_exit()
            except StetError as e:
                warnings.warn(f"the log was not merged on exit: {e.message}", StorageWarning)


class _Cached:
    """What blocks and functions have in common: looking up, and storing."""

    def __init__(self, persister, dir_path, content_spec, options):
        self._given, self._dir_path = persister, dir_path
        self.spec, self.options = content_spec, options
        self._own = None

    def persister(self):
        if self._given is not None:
            return self._given
        if self._dir_path is None:
            return default_persister()
        if self._own is None:
            self._own = FsPersister(self._dir_path)
        return self._own

    def get(self, key):
        """The entry, or None. What can't be read is computed again."""
        try:
            return self.persister().get(key, content_spec=self.spec, **self.options)
        except Exception as e:
            warnings.warn(f"a stored result of {key.block_id} can't be read, it is computed again: {type(e).__name__}: {e}", StorageWarning, stacklevel=4)
            return None

    def put(self, key, began, variables, elapsed):
        """The result is there already: that it can't be stored is no reason to lose it."""
        entry = Entry(ExecutionKey(key.block_id, key.module_hash, from_millis(began)), variables, elapsed_ms=int(elapsed * 1000))
        try:
            persister = self.persister()
            stored = persister.put(entry, self.spec, **self.options)
            if stored is None:
                stored = persister.put(entry, self.spec, **self.options)
            if stored is None:
                why = getattr(persister, "last_error", None)
                warnings.warn(f"the result of {key.block_id} was not stored: {why.message if why else 'the storage is unavailable'}", StorageWarning, stacklevel=4)
            elif isinstance(persister, FsPersister):
                persister._put_something = True
            return stored
        except ExecutionKeyClash:
            return None  # another execution of the same millisecond was first
        except Exception as e:
            warnings.warn(f"the result of {key.block_id} was not stored: {type(e).__name__}: {e}", StorageWarning, stacklevel=4)
            return None


class persistent_cache:
    """Keeps what a block or a function computes, and gives it back when neither its code nor anything that it depends on has changed.

        with persistent_cache("model") as cache:        @persistent_cache
            model = train(data, rate)                    def train(data, rate): ...

    The key covers the code of the block or function, the functions that it calls (and those they call) and the variables that they use, for a function its arguments,
    too. It does not cover what lies outside of Python: files, the clock, a database, a random seed.

    `name` names the block; without one a block is called by the hash of its code, and a function by its qualified name. `ignore` lists names of variables or
    arguments that do not count. `content_spec` says how: {"variables": "pickle" or "json"}; `method` is its deprecated form. Other keyword arguments reach the pickler or the
    JSON encoder. Without a `persister` (or `dir_path`) it is that of the nearest `.stet/` or `__marimo__/`.
    """

    def __new__(cls, name=None, *args, **kwargs):
        if callable(name) and not isinstance(name, str):  # @persistent_cache without brackets
            return cls(None, *args, **kwargs)(name)
        return super().__new__(cls)

    def __init__(self, name=None, *, persister=None, dir_path=None, content_spec=None, method=None, ignore=(), **kwargs):
        if name is not None and not isinstance(name, str):
            raise TypeError("the name of a persistent_cache is a str")
        if method is not None:
            if content_spec is not None:
                raise TypeError("method is the deprecated form of content_spec: give one of them")
            warnings.warn('method is deprecated: use content_spec={"variables": ...}', DeprecationWarning, stacklevel=2)
            content_spec = {"variables": method}
        if persister is not None and dir_path is not None:
            raise TypeError("give a persister or a dir_path, not both")
        formats.check_spec(content_spec)
        formats.check_options(kwargs)
        if content_spec is not None and "variables" not in content_spec:
            raise ValueError("content_spec: a persistent_cache keeps variables")
        self._name = name
        self._ignore = frozenset((ignore,) if isinstance(ignore, str) else ignore)
        self._cached = _Cached(persister, dir_path, content_spec, kwargs)
        self._frame = self._key = self._block = None
        self.hit = False
        self.entry = self.metadata = None

    # ---- a function ----

    def __call__(self, function):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"{function.__qualname__} is a generator: return a list instead")
        cached, ignore = self._cached, self._ignore
        signature = inspect.signature(function)
        for name in ignore:
            if name not in signature.parameters and name not in {n for n, _ in keys.references(function.__code__)[0]} | set(function.__code__.co_freevars):
                raise ValueError(f"ignore: {function.__qualname__} has no argument and uses no variable {name!r}")
        label = self._name or _label(function)

        def key_of(args, kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = tuple((n, v) for n, v in bound.arguments.items() if n not in ignore)
            hasher = keys.Hasher()
            try:
                hasher.add(("function", arguments))
                digest = hasher.digest()
                hasher.add(wrapper)
            except keys.Unhashable as e:
                raise keys.Unhashable(f"{label}: {e}; leave it out with ignore=, if the result does not depend on it") from None
            # The arguments belong to the block: its versions are those of one call, and limits on the entries of a block count them.
            return ExecutionKey(f"{label}:{keys.text_of(digest)}", keys.text_of(hasher.digest()))

        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                key = key_of(args, kwargs)
                entry = await asyncio.to_thread(cached.get, key)
                if entry is not None:
                    return entry.variables["return"]
                began, started = _stet.now(), time.perf_counter()
                result = await function(*args, **kwargs)
                await asyncio.to_thread(cached.put, key, began, {"return": result}, time.perf_counter() - started)
                return result
        else:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                key = key_of(args, kwargs)
                entry = cached.get(key)
                if entry is not None:
                    return entry.variables["return"]
                began, started = _stet.now(), time.perf_counter()
                result = function(*args, **kwargs)
                cached.put(key, began, {"return": result}, time.perf_counter() - started)
                return result

        wrapper._stet_cached = (function, ignore)
        wrapper.execution_key = lambda *args, **kwargs: key_of(args, kwargs)
        return wrapper

    # ---- a block ----

    def __enter__(self):
        frame = sys._getframe(1)
        self.hit, self.entry, self.metadata = False, None, None
        self._frame, self._key = frame, None
        try:
            block = self._block = block_of(frame)
        except SourceChanged as e:
            warnings.warn(f"{e} has changed since it was loaded: the block runs, and nothing is kept of it", StorageWarning, stacklevel=2)
            return self
        if block.functions and frame.f_code.co_flags & inspect.CO_NEWLOCALS:
            raise ValueError(f"{frame.f_code.co_filename}:{frame.f_lineno}: define functions and classes outside the block of persistent_cache")
        self._key = self._key_of(frame, block)
        entry = self._cached.get(self._key)
        if entry is not None and set(entry.variables) <= set(block.outputs):
            self.hit, self.entry = True, entry
            self._skip(frame)
        self._began, self._started = _stet.now(), time.perf_counter()
        return self

    def _key_of(self, frame, block):
        hasher = keys.Hasher()
        inputs = [i for i in block.inputs if i[0] not in self._ignore]
        values = bytearray()
        try:
            hasher.add(("block", block.digest))
            hasher.names(values, inputs, frame.f_locals, frame.f_globals)
        except keys.Unhashable as e:
            raise keys.Unhashable(f"{frame.f_code.co_filename}:{frame.f_lineno}: {e}; leave it out with ignore=, if the block does not depend on it") from None
        hasher.add(bytes(values))
        return ExecutionKey(self._name or keys.text_of(block.digest), keys.text_of(hasher.digest()))

    def _skip(self, frame):
        """Nothing in Python lets a block be skipped but an exception in it: one is raised at its first line, and ends in __exit__."""
        self._old = sys.gettrace(), frame.f_trace

        def trace(f, event, arg):
            if f is frame and event == "line":
                raise _Skip
            return trace

        sys.settrace(lambda f, event, arg: None)
        frame.f_trace = trace

    def __exit__(self, kind, value, trace):
        frame, self._frame = self._frame, None
        if self.hit:
            frame.f_trace = self._old[1]
            sys.settrace(self._old[0])
            if kind is not None and kind is not _Skip:
                return False
            names = dict(self.entry.variables)
            names.update(self._define(frame))
            _assign(frame, names)
            return True
        if kind is None and self._key is not None:
            elapsed = time.perf_counter() - self._started
            scope = frame.f_locals
            variables = {n: _value_of(frame, scope, n) for n in self._block.outputs}
            variables = {n: v for n, v in variables.items() if v is not _GONE and not isinstance(v, types.ModuleType) and v is not self}
            self.metadata = self._cached.put(self._key, self._began, variables, elapsed)
        return False

    def _define(self, frame):
        """Imports (and at the top of a module functions and classes) of a block that was skipped: what comes after may use them."""
        statements = [*self._block.imports, *self._block.functions]
        if not statements:
            return {}
        names = {}
        before = dict(frame.f_globals)
        scope = frame.f_globals if not frame.f_code.co_flags & inspect.CO_NEWLOCALS else names
        exec(compile(ast.Module(body=statements, type_ignores=[]), frame.f_code.co_filename, "exec"), frame.f_globals, scope)
        return names if scope is names else {n: v for n, v in frame.f_globals.items() if before.get(n, _GONE) is not v}


class _Skip(BaseException):
    """Ends a block whose variables are there already. Never seen outside."""


_GONE = object()


def _value_of(frame, scope, name):
    if name in scope:
        return scope[name]
    return frame.f_globals.get(name, _GONE)


def _assign(frame, names):
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:  # a module or a class: its names are a dict
        frame.f_locals.update(names)
        return
    local = {*code.co_varnames, *code.co_cellvars, *code.co_freevars}
    scope = frame.f_locals
    for name, value in names.items():
        if name in local:
            scope[name] = value
        else:
            frame.f_globals[name] = value
    if sys.version_info < (3, 13):  # from then on f_locals writes through
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))


def _label(function):
    """The same in a script, in its worker processes, and where it is imported."""
    module, file = function.__module__, function.__code__.co_filename
    if module in ("__main__", "__mp_main__") and not file.startswith("<"):
        module = os.path.splitext(os.path.basename(file))[0]
    return f"{module}.{function.__qualname__}"
