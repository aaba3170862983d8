"""A function whose results are kept: its key, and what happens on a hit and on a miss."""
import collections
import functools
import hashlib
import inspect
import sys
import threading
import time
import types
import warnings

from . import _stet, flight, keys, validity
from .entry import ExecutionKey
from .persister import StorageWarning

ABSENT = object()  # looked for, and not there
_EXACT = frozenset((int, str, bytes, bool, type(None)))
_SIMPLE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Call:
    """One call: its arguments by name, its key, and the walks that the key was made from."""

    __slots__ = ("arguments", "walk", "graph", "files", "expires", "key")

    def __init__(self, arguments, walk, graph, files, expires, key):
        self.arguments, self.walk, self.graph, self.files, self.expires, self.key = arguments, walk, graph, files, expires, key

    def inputs(self):
        return keys.Inputs(self.walk, self.graph.walk)


class Function:
    """What belongs to a decorated function. `wrapper` is what the user calls."""

    def __init__(self, function, cached, name, ignore, allow_dynamic, depends_on, expires, verbose):
        self.function, self.cached, self.ignore = function, cached, ignore
        self._allow_dynamic, self._verbose = allow_dynamic, verbose
        self.hits = self.misses = 0
        self._dotted = frozenset(n for n in ignore if "." in n)
        self.label = name or _label(function)
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters
        inner = getattr(function, "__code__", None)
        used = set(parameters)
        if inner is not None:
            found = keys.references(inner)
            used |= {n for n, _ in found.names} | set(found.stored) | set(inner.co_freevars)
        for one in ignore - self._dotted:
            if one not in used:
                raise ValueError(f"ignore: {self.label} has no argument and uses no variable {one!r}; a variable of another function is written MODULE.NAME")
        # Arguments of a call without keywords, and with one for each parameter, need no binding.
        self._plain = tuple(parameters) if all(p.kind in _SIMPLE for p in parameters.values()) else None
        if self._plain is not None and (ignore & set(self._plain) or depends_on or expires is not None or verbose):
            self._plain = None
        self._names = [keys.leaves((n,)) for n in self._plain or ()]
        self._graph = None
        self._keys, self._keys_of = {}, None  # by arguments, of one graph
        self.wrapper = None

    # ---- keys ----

    def _bind(self, args, kwargs):
        if not kwargs and self._plain is not None and len(args) == len(self._plain):
            pairs = zip(self._plain, args)
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            pairs = bound.arguments.items()
        return [(n, v) for n, v in pairs if n not in self.ignore] if self.ignore else list(pairs)

    def _walk_arguments(self, arguments, lazy=None):
        walk = keys.Walk(self._dotted, self._allow_dynamic, lazy=lazy)
        for name, value in arguments:
            walk.add(name)
            walk.add(value, name)
        return walk

    def _walk_graph(self, lazy=None):
        known = self._graph
        return keys.Graph(self._roots, self._dotted, self._allow_dynamic, large=known.walk.large if known is not None else None, lazy=lazy)

    def _roots(self, walk):
        walk.add(self.wrapper, self.label)
        if self.cached.options:  # a hook decides what is found
            walk.add(self.cached.options, "options")

    def call(self, args, kwargs):
        arguments = self._bind(args, kwargs)
        try:
            graph = self._graph
            if graph is None or not graph.stable or not graph.stands():
                graph = self._graph = self._walk_graph()
            walk = self._walk_arguments(arguments)
        except keys.DynamicCode as e:
            raise keys.DynamicCode(f"{self.label}: {e}") from None
        except keys.Unhashable as e:
            raise keys.Unhashable(f"{self.label}: {e}; leave it out with ignore=, if the result does not depend on it") from None
        digest = walk.digest()
        # The function itself is met by the walk: its own files and time are among these.
        files = validity.digests_of_files(graph.walk.files | walk.files)
        module = hashlib.sha256(b"function" + digest + graph.digest + keys.common(walk, graph) + validity.bytes_of_files(files)).digest()
        # The arguments belong to the block: its versions are those of one call, and limits on the entries of a block count them.
        return Call(arguments, walk, graph, files, validity.earlier(graph.walk.expires, walk.expires), ExecutionKey(f"{self.label}:{keys.text_of(digest)}", keys.text_of(module)))

    def _quick(self, args):
        """The result of a call with nothing but constants as arguments, if the function is as it was and its result is there: the same key, without the detours. Else MISSING."""
        graph = self._graph
        if graph is None or not graph.plain or len(args) != len(self._names) or not graph.stands():
            return keys.MISSING
        for a in args:
            if type(a) not in _EXACT:
                known = None
                break
        else:  # equal ones are the same, but for 1 and True
            at = (args, *map(type, args))
            known = self._keys.get(at) if self._keys_of is graph else None
        if known is None:
            out = keys.leaves(args, self._names)
            if out is None:
                return keys.MISSING
            digest = hashlib.sha256(keys.VERSION + out).digest()
            module = hashlib.sha256(b"function" + digest + graph.digest).digest()
            known = (f"{self.label}:{keys.text_of(digest)}", keys.text_of(module))
            if all(type(a) in _EXACT for a in args):
                if self._keys_of is not graph or len(self._keys) > 1000:
                    self._keys, self._keys_of = {}, graph
                self._keys[(args, *map(type, args))] = known
        return self.cached.quick(*known)

    def changed(self, call, noted):
        """What the call itself changed of the things that its key covers, or None. A result found later would leave that change out."""
        if not noted.hold():
            return "a file of depends_on"
        try:
            walk = self._walk_arguments(call.arguments, lazy=call.walk.lazy)
            if walk.out != call.walk.out:
                return call.walk.difference(walk)
            if call.graph.stable and call.graph.stands():
                return None
            graph = self._walk_graph(lazy=call.graph.walk.lazy)
            return call.graph.walk.difference(graph.walk) if graph.digest != call.graph.digest else None
        except keys.Unhashable as e:
            return str(e)

    # ---- calls ----

    def find(self, call):
        entry = self.cached.get(call.key, call.inputs())
        if entry is not None and not validity.still_holds(entry, call.files, call.expires):
            return None
        if entry is not None:
            self.hits += 1
            if self._verbose:
                self._say(f"found, computed {entry.execution_key.created_at:%Y-%m-%d %H:%M:%S} UTC" + (f" in {entry.elapsed_ms / 1000:.3f} s" if entry.elapsed_ms is not None else ""))
        return entry

    def _say(self, what):
        print(f"[stet] {self.label}: {what}", file=sys.stderr)

    def may_keep(self, call, seconds, noted):
        """Asked in the thread that computed: a variable may have another value in others."""
        self.misses += 1
        if self._verbose:
            self._say(f"computed in {seconds:.3f} s")
        changed = self.changed(call, noted)
        if changed is not None:
            warnings.warn(f"{self.label} changed what its key covers ({changed}): the result is not kept. Leave it out with ignore=, if no result depends on it",
                          StorageWarning, stacklevel=5)
        return changed is None

    def _file_lock(self, call):
        directory = self.cached.directory()
        return None if directory is None else flight.FileLock(directory, call.key)

    def _found_since(self, call):
        """Did another process finish between the first look and the lock?"""
        return self.find(call) if self.cached.has(call.key) else None

    def run(self, args, kwargs):
        result = self._quick(args) if not kwargs and self._plain is not None else keys.MISSING
        if result is not keys.MISSING and result is not ABSENT:
            self.hits += 1
            return result
        call = self.call(args, kwargs)
        entry = self.find(call) if result is keys.MISSING else None
        if entry is not None:
            return entry.variables["return"]
        first, mine = flight.join(call.key)
        if not first:
            if mine.thread != threading.get_ident():
                mine.wait()
                entry = self.find(call)
                if entry is not None:
                    return entry.variables["return"]
            return self._compute(call, args, kwargs)  # it failed, or its result can't be kept
        lock = None
        try:
            lock = self._file_lock(call)
            if lock is not None:
                lock.wait()
                entry = self._found_since(call)
                if entry is not None:
                    return entry.variables["return"]
            return self._compute(call, args, kwargs)
        finally:
            if lock is not None:
                lock.release()
            mine.end()

    def _compute(self, call, args, kwargs):
        began, started = _stet.now(), time.perf_counter()
        noted, token = validity.begin(call.files)
        try:
            result = self.function(*args, **kwargs)
        finally:
            validity.end(noted, token)
        seconds = time.perf_counter() - started
        if self.may_keep(call, seconds, noted):
            result = self._as_found(call, result, self.cached.put(call.key, began, {"return": result}, seconds, noted.extra(call.files), call.inputs()))
        self._hand_on(call, noted, began)
        return result

    def _as_found(self, call, result, stored):
        """With mmap=True the first caller gets what later ones get."""
        entry = self.cached.get(call.key, call.inputs()) if self.cached.mapped and stored is not None else None
        return result if entry is None else entry.variables["return"]

    @staticmethod
    def _hand_on(call, noted, began):
        validity.hand_on({**call.files, **noted.files}, validity.earlier(noted.until, validity.until_of(began, call.expires)))

    async def run_async(self, args, kwargs):
        import asyncio

        call = self.call(args, kwargs)
        entry = await asyncio.to_thread(self.find, call)
        if entry is not None:
            return entry.variables["return"]
        first, mine = flight.join(call.key)
        if not first:
            await mine.wait_async()
            entry = await asyncio.to_thread(self.find, call)
            return entry.variables["return"] if entry is not None else await self._compute_async(call, args, kwargs)
        lock = None
        try:
            lock = self._file_lock(call)
            if lock is not None:
                await lock.wait_async()
                entry = await asyncio.to_thread(self._found_since, call)
                if entry is not None:
                    return entry.variables["return"]
            return await self._compute_async(call, args, kwargs)
        finally:
            if lock is not None:
                lock.release()
            mine.end()

    async def _compute_async(self, call, args, kwargs):
        import asyncio

        began, started = _stet.now(), time.perf_counter()
        noted, token = validity.begin(call.files)
        try:
            result = await self.function(*args, **kwargs)
        finally:
            validity.end(noted, token)
        seconds = time.perf_counter() - started
        if self.may_keep(call, seconds, noted):
            stored = await asyncio.to_thread(self.cached.put, call.key, began, {"return": result}, seconds, noted.extra(call.files), call.inputs())
            result = self._as_found(call, result, stored)
        self._hand_on(call, noted, began)
        return result

    # ---- for the user ----

    def again(self, *args, **kwargs):
        """Computes, whatever is stored, and keeps the result in its place."""
        call = self.call(args, kwargs)
        return self._compute_async(call, args, kwargs) if inspect.iscoroutinefunction(self.function) else self._compute(call, args, kwargs)

    def is_there(self, *args, **kwargs):
        """Would a call find its result?"""
        call = self.call(args, kwargs)
        entry = self.cached.get(call.key, call.inputs())
        return entry is not None and validity.still_holds(entry, call.files, call.expires)

    def _mine(self, entries):
        return [e for e in entries if e.execution_key.block_id.startswith(self.label + ":") and len(e.execution_key.block_id) == len(self.label) + 44]

    def clear(self):
        """Deletes all results of the function, of whatever version of its code, and frees their space. How many they were."""
        persister = self.cached.persister()
        return persister.cleanup(lambda entries, **more: [e.execution_key for e in self._mine(entries)], include_content=True, force=True)["entries_removed"]

    def info(self):
        """Hits and misses of this process, and how many results are stored, with their bytes."""
        mine = self._mine(self.cached.persister().entries())
        return CacheInfo(self.hits, self.misses, len(mine), sum(e.total_size for e in mine))


CacheInfo = collections.namedtuple("CacheInfo", "hits misses currsize bytes")


def decorate(function, cached, name, ignore, allow_dynamic, depends_on, expires, verbose):
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator: return a list instead")
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"persistent_cache decorates functions, not {type(function).__qualname__}: put it closest to the def")
    own = Function(function, cached, name, ignore, allow_dynamic, depends_on, expires, verbose)
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            return await own.run_async(args, kwargs)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return own.run(args, kwargs)

    own.wrapper = wrapper
    # Functions, not methods: the key of a function that uses this one leaves them out by identity.
    keys.own_function(wrapper, function, ignore, {
        "execution_key": lambda *args, **kwargs: own.call(args, kwargs).key, "call": lambda *args, **kwargs: own.again(*args, **kwargs),
        "check_call_in_cache": lambda *args, **kwargs: own.is_there(*args, **kwargs), "clear": lambda: own.clear(), "cache_info": lambda: own.info()}, depends_on, expires)
    return wrapper


def _label(function):
    """The same in a script, in its worker processes, and where it is imported."""
    return f"{keys.script_name(function.__module__)}.{function.__qualname__}"
