"""A function whose results are kept: its key, and what happens on a hit and on a miss."""
import functools
import hashlib
import inspect
import os
import time
import types
import warnings

from . import _stet, keys
from .entry import ExecutionKey
from .persister import StorageWarning

_SIMPLE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Call:
    """One call: its arguments by name, its key, and the walks that the key was made from."""

    __slots__ = ("arguments", "walk", "graph", "key")

    def __init__(self, arguments, walk, graph, key):
        self.arguments, self.walk, self.graph, self.key = arguments, walk, graph, key


class Function:
    """What belongs to a decorated function. `wrapper` is what the user calls."""

    def __init__(self, function, cached, name, ignore, allow_dynamic):
        self.function, self.cached, self.ignore = function, cached, ignore
        self._allow_dynamic = allow_dynamic
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
        self._graph = None
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
        graph = keys.Graph(lambda walk: walk.add(self.wrapper, self.label), self._dotted, self._allow_dynamic, large=known.walk.large if known is not None else None, lazy=lazy)
        return graph

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
        module = hashlib.sha256(b"function" + digest + graph.digest + keys.common(walk, graph)).digest()
        # The arguments belong to the block: its versions are those of one call, and limits on the entries of a block count them.
        return Call(arguments, walk, graph, ExecutionKey(f"{self.label}:{keys.text_of(digest)}", keys.text_of(module)))

    def changed(self, call):
        """What the call itself changed of the things that its key covers, or None. A result found later would leave that change out."""
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
        return self.cached.get(call.key)

    def keep(self, call, began, started, result):
        changed = self.changed(call)
        if changed is not None:
            warnings.warn(f"{self.label} changed what its key covers ({changed}): the result is not kept. Leave it out with ignore=, if no result depends on it",
                          StorageWarning, stacklevel=3)
            return
        self.cached.put(call.key, began, {"return": result}, time.perf_counter() - started)

    def run(self, args, kwargs):
        call = self.call(args, kwargs)
        entry = self.find(call)
        if entry is not None:
            return entry.variables["return"]
        began, started = _stet.now(), time.perf_counter()
        result = self.function(*args, **kwargs)
        self.keep(call, began, started, result)
        return result

    async def run_async(self, args, kwargs):
        import asyncio

        call = self.call(args, kwargs)
        entry = await asyncio.to_thread(self.find, call)
        if entry is not None:
            return entry.variables["return"]
        began, started = _stet.now(), time.perf_counter()
        result = await self.function(*args, **kwargs)
        await asyncio.to_thread(self.keep, call, began, started, result)
        return result


def decorate(function, cached, name, ignore, allow_dynamic):
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator: return a list instead")
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"persistent_cache decorates functions, not {type(function).__qualname__}: put it closest to the def")
    own = Function(function, cached, name, ignore, allow_dynamic)
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            return await own.run_async(args, kwargs)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return own.run(args, kwargs)

    own.wrapper = wrapper
    keys.own_function(wrapper, function, ignore, {"execution_key": lambda *args, **kwargs: own.call(args, kwargs).key})
    return wrapper


def _label(function):
    """The same in a script, in its worker processes, and where it is imported."""
    module, file = function.__module__, function.__code__.co_filename
    if module in ("__main__", "__mp_main__") and not file.startswith("<"):
        module = os.path.splitext(os.path.basename(file))[0]
    return f"{module}.{function.__qualname__}"
