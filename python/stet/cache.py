"""persistent_cache: a block or a function whose result is computed once, for all processes and machines that share the directory."""
import ast
import atexit
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
import time
import types
import warnings
from datetime import timedelta

from . import _stet, formats, keys, validity, where
from .block import FUTURE, SourceChanged, block_of
from .entry import Entry, ExecutionKey, from_millis
from .errors import ExecutionKeyClash, StetError
from .function import ABSENT, decorate
from .legacy import LegacyPersister
from .persister import FsPersister, StorageWarning

_defaults, _defaults_lock = {}, threading.Lock()  # by base directory, and for quick finding by the directory that was current


def default_persister(start=None):
    """The persister of the nearest `.stet/` or `__marimo__/` upward: one that reads `__marimo__/cache` where that exists, else an FsPersister.

    What was found from a current directory is remembered for the life of the process."""
    if start is None and "marimo" not in sys.modules:
        here = ("from", os.getcwd())
        found = _defaults.get(here)
        if found is None:
            found = _defaults[here] = _find_persister(None)
        return found
    return _find_persister(start)


def _find_persister(start):
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
    for persister in set(_defaults.values()) if os.getpid() == pid else ():
        if getattr(persister, "_put_something", False):
            try:
                persister.on_exit()
            except StetError as e:
                warnings.warn(f"the log was not merged on exit: {e.message}", StorageWarning)


class _Cached:
    """What blocks and functions have in common: looking up, and storing."""

    def __init__(self, persister, dir_path, content_spec, options, mapped=False):
        self._given, self._dir_path, self.mapped = persister, dir_path, mapped
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

    def directory(self):
        """Where the entries lie, or None if that is no directory of this machine."""
        return getattr(self.persister(), "directory", None)

    def has(self, key):
        """Is there an entry? Counts as no use of it."""
        persister = self.persister()
        return persister._has(key) if isinstance(persister, FsPersister) else True

    def get(self, key, inputs):
        """The entry, or None. What can't be read is computed again."""
        try:
            persister = self.persister()
            if isinstance(persister, FsPersister):
                return persister._get(key, False, self.spec, self.options, inputs, self.mapped)
            return persister.get(key, content_spec=self.spec, **self.options)
        except Exception as e:
            warnings.warn(f"a stored result of {key.block_id} can't be read, it is computed again: {type(e).__name__}: {e}", StorageWarning, stacklevel=4)
            return None

    def quick(self, block, module):
        """The result of a function as `get` would find it; ABSENT if there is none; keys.MISSING where only `get` can tell."""
        if self.spec is None and not self.options and not self.mapped:
            persister = self._given if self._given is not None else self.persister()
            if type(persister) is FsPersister:
                try:
                    variables = persister._variables(block, module)
                except Exception:
                    return keys.MISSING  # `get` says what is wrong
                return ABSENT if variables is None else variables["return"]
        return keys.MISSING

    def put(self, key, began, variables, elapsed, extra, inputs):
        """The result is there already: that it can't be stored is no reason to lose it."""
        entry = Entry(ExecutionKey(key.block_id, key.module_hash, from_millis(began)), variables, extra or None, elapsed_ms=int(elapsed * 1000))
        try:
            persister = self.persister()
            format = self.spec["variables"] if self.spec else "auto"
            json = (getattr(persister, "_auto", "pickle") if format == "auto" else format) == "json"
            if json:
                formats.check_json(variables, self.options)
            if json or not isinstance(persister, FsPersister):
                formats.check_shared(variables, inputs)
            for _ in range(2):
                stored = persister._put(entry, self.spec, self.options, inputs) if isinstance(persister, FsPersister) else persister.put(entry, self.spec, **self.options)
                if stored is not None:
                    break
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
    arguments that do not count, MODULE.NAME for a variable of another function. `allow_dynamic` permits code that reads by name what the key can't know (eval, globals()).
    `depends_on` lists files and directories whose contents count. A result older than `expires` (seconds or a timedelta) is computed again. `verbose` says on
    standard error what is found and what is computed. With `mmap` the arrays of a result are mapped from its file, read-only, and not read. `content_spec` says how: {"variables": "pickle" or "json"}; `method` is its deprecated form. Other keyword arguments reach the pickler or the
    JSON encoder. Without a `persister` (or `dir_path`) it is that of the nearest `.stet/` or `__marimo__/`.
    """

    def __new__(cls, name=None, *args, **kwargs):
        if callable(name) and not isinstance(name, str):  # @persistent_cache without brackets
            return cls(None, *args, **kwargs)(name)
        return super().__new__(cls)

    def __init__(self, name=None, *, persister=None, dir_path=None, content_spec=None, method=None, ignore=(), allow_dynamic=False, depends_on=(), expires=None, verbose=False,
                 mmap=False, **kwargs):
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
        self._allow_dynamic, self._verbose = bool(allow_dynamic), bool(verbose)
        self._depends_on = tuple(os.fspath(p) for p in ((depends_on,) if isinstance(depends_on, (str, bytes, os.PathLike)) else depends_on))
        self._expires = expires.total_seconds() if isinstance(expires, timedelta) else expires
        if self._expires is not None and not self._expires >= 0:
            raise ValueError("expires is a timedelta, or a number of seconds")
        self._cached = _Cached(persister, dir_path, content_spec, kwargs, bool(mmap))
        self._frame = self._key = self._block = None
        self.hit = False
        self.entry = self.metadata = None

    # ---- a function ----

    def __call__(self, function):
        return decorate(function, self._cached, self._name, self._ignore, self._allow_dynamic, self._depends_on, self._expires, self._verbose)

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
        scope = frame.f_locals
        self._before = {n: _value_of(frame, scope, n) for n in block.outputs}
        gone = sorted(n for n in block.deleted if self._before[n] is not _GONE)
        if gone:
            warnings.warn(f"{frame.f_code.co_filename}:{frame.f_lineno}: the block deletes {gone[0]!r}, which was there before: it runs, and nothing is kept of it", StorageWarning, stacklevel=2)
            return self
        # What the names stand for now: the block may give them other values, and is asked afterwards whether it changed these ones.
        self._scope = dict(scope) if scope is not frame.f_globals else {}
        self._graph = self._graph_of(frame, block)
        self._files = validity.digests_of_files({*self._depends_on, *self._graph.walk.files})
        expires = self._until = validity.earlier(self._expires, self._graph.walk.expires)
        module = hashlib.sha256(b"block" + self._graph.digest + validity.bytes_of_files(self._files)).digest()
        self._key = ExecutionKey(self._name or keys.text_of(block.digest), keys.text_of(module))
        entry = self._cached.get(self._key, keys.Inputs(self._graph.walk))
        if entry is not None and self._fits(block, entry) and validity.still_holds(entry, self._files, expires):
            self.hit, self.entry = True, entry
            self._skip(frame, block)
        if self._verbose:
            print(f"[stet] {self._key.block_id}: {'found' if self.hit else 'computing'}", file=sys.stderr)
        self._began, self._started = _stet.now(), time.perf_counter()
        if not self.hit:
            self._noted = validity.begin(self._files)
        return self

    def _graph_of(self, frame, block, after=False):
        plain = {n for n in self._ignore if "." not in n}
        inputs = [i for i in block.inputs if i[0] not in plain]
        scopes = (self._scope, frame.f_globals, frame.f_builtins) if self._scope else (frame.f_globals, frame.f_builtins)

        def roots(walk):
            walk.add(("block", block.digest))
            if self._cached.options:
                walk.add(self._cached.options, "options")
            walk.statements(block.references, inputs, frame.f_globals, scopes)

        before = (frame.f_globals, {n: keys.MISSING if v is _GONE else v for n, v in self._before.items()}) if after else None
        try:
            return keys.Graph(roots, frozenset(self._ignore - plain), self._allow_dynamic, before, lazy=self._graph.walk.lazy if after else None)
        except keys.Unhashable as e:
            way = "" if isinstance(e, keys.DynamicCode) else "; leave it out with ignore=, if the block does not depend on it"
            raise type(e)(f"{frame.f_code.co_filename}:{frame.f_lineno}: {e}{way}") from None

    def _fits(self, block, entry):
        """Variables that the block left as they were must be the same now: that they were assigned the same value can't be told from that they were not."""
        if not set(entry.variables) <= set(block.outputs):
            return False
        for name, digest in (entry.extra or {}).get("left", {}).items():
            try:
                if name not in self._before or keys.text_of(keys.digest_of(self._before[name])) != digest:
                    return False
            except keys.Unhashable:
                return False
        return True

    def _skip(self, frame, block):
        """Nothing in Python lets a block be skipped but an exception in it: one is raised at its first line, and ends in __exit__. (`as` may stand on a line before.)"""
        self._old = sys.gettrace(), frame.f_trace

        def trace(f, event, arg):
            if f is frame and event == "line" and block.first_line <= f.f_lineno <= block.last_line:
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
            _assign(frame, {**self.entry.variables, **self._import(frame)})
            self._define(frame)
            return True
        if self._key is not None:
            noted = self._noted[0]
            validity.end(*self._noted)
            if kind is None:
                self._keep(frame, time.perf_counter() - self._started, noted)
            validity.hand_on({**self._files, **noted.files}, validity.earlier(noted.until, validity.until_of(self._began, self._until)))
        self._graph = self._before = self._scope = None
        return False

    def _keep(self, frame, elapsed, noted):
        block = self._block
        try:
            after = self._graph_of(frame, block, after=True)
            changed = self._graph.walk.difference(after.walk) if after.digest != self._graph.digest else None
            if changed is None and not noted.hold():
                changed = "a file of depends_on"
        except keys.Unhashable as e:
            changed = str(e)
        if changed is not None:
            warnings.warn(f"{frame.f_code.co_filename}:{frame.f_lineno}: the block changed {changed}, which it did not make: nothing is kept of it. "
                          "Make a new object, or leave it out with ignore=, if nothing depends on it", StorageWarning, stacklevel=3)
            return
        scope, variables, left, imported = frame.f_locals, {}, {}, {}
        for name in block.outputs:
            value = _value_of(frame, scope, name)
            if value is _GONE or value is self:
                continue
            if name in block.unsure and value is self._before[name]:
                try:
                    left[name] = keys.text_of(keys.digest_of(value))
                except keys.Unhashable as e:
                    warnings.warn(f"nothing is kept of {self._key.block_id}: it may or may not assign {name!r}, and {e}", StorageWarning, stacklevel=3)
                    return
            elif origin := next((w for w in block.imported.get(name, ()) if _imported(frame, w, loaded=True) is value), None):
                imported[name] = list(origin)
            elif isinstance(value, types.ModuleType):
                imported[name] = [0, value.__name__, None]
            else:
                variables[name] = value
        extra = {k: v for k, v in (("left", left), ("imported", imported)) if v}
        self.metadata = self._cached.put(self._key, self._began, variables, elapsed, {**extra, **noted.extra(self._files)}, keys.Inputs(self._graph.walk))

    def _import(self, frame):
        """What a block that was skipped had imported."""
        return {name: _imported(frame, tuple(what)) for name, what in (self.entry.extra or {}).get("imported", {}).items()}

    def _define(self, frame):
        """Functions and classes of a block that was skipped, at the top of a module: what comes after may use them."""
        if self._block.functions:
            exec(compile(ast.Module(body=self._block.functions, type_ignores=[]), frame.f_code.co_filename, "exec", frame.f_code.co_flags & FUTURE), frame.f_globals)


def _imported(frame, what, loaded=False):
    """What an import gives. `loaded`: or nothing, if its module is not loaded."""
    level, module, name = what
    if level:
        package = frame.f_globals.get("__package__") or (frame.f_globals.get("__name__") or "").rpartition(".")[0]
        module = importlib.util.resolve_name("." * level + module, package)
    if loaded and module not in sys.modules:
        return _GONE
    found = importlib.import_module(module)
    if name is None:
        return found
    try:
        return getattr(found, name)
    except AttributeError:
        return importlib.import_module(f"{module}.{name}") if not loaded else sys.modules.get(f"{module}.{name}", _GONE)


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
        import ctypes

        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
