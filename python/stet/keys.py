"""What a computation depends on, as a hash: values, code, the functions it calls and the variables they use.

Rules that every part of this file keeps:

1. A key that stays the same while a dependency changed would return a wrong result. So whatever cannot be followed is counted in whole (a module, a
   class), and what cannot be counted is an error that says how to go on. Nothing is ever counted by the name of its type alone.
2. A key is the same in another process. So addresses, the order of sets and the sharing of equal constants never count.
3. Code is library code if its *file* lies in the standard library or in an installed package; `__module__` can be copied (functools.wraps) or made up. Library code counts
   by its own bytecode, its name and the version of its package. What it holds of the user's (closures, attributes, a registry, patches) counts like everything else.
4. Code counts as bytecode, not as text: that is what runs, even if the file was edited since it was loaded. Hence the version of Python is in each key.
5. Two objects that are one and the same are told from two equal ones, because a change of one shows in the other.
6. Nothing recurses: a chain of helpers or a linked list may have any length.

`Walk` writes everything that is reachable into one stream of bytes, each object before its parts; an object that was written already is a number. While it walks it
notes what it looked at (`guards`), so that an unchanged function is known again without another walk.
"""
import _abc
import builtins
import collections
import contextvars
import copyreg
import dis
import functools
import gc
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import struct
import sys
import threading
import types
import typing
import weakref
from base64 import urlsafe_b64encode
from operator import is_

from .library import HEAP, file_digest, is_library, is_library_file, lives_in_library, package_version, patches

VERSION = b"stet key 3 %s " % sys.version.encode()


def text_of(digest):
    """43 characters of base64url."""
    return urlsafe_b64encode(digest)[:-1].decode()


class Unhashable(TypeError):
    """A value that no key can be made from."""


class DynamicCode(Unhashable):
    """Code that can read anything by name, so that nothing can be said about what it depends on."""


def script_name(name):
    """The name of the main module is that by which it could be imported: the same in a script, in its worker processes, and where it is imported."""
    if name in ("__main__", "__mp_main__"):
        main = sys.modules.get(name)
        spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
        if spec is not None and name == "__main__":  # python -m
            return spec.name
        if file:
            return os.path.splitext(os.path.basename(file))[0]
    return name


# ---- code that can read anything by name ----

_DYNAMIC = {
    "builtins": "eval exec compile globals __import__", "importlib": "import_module reload", "importlib._bootstrap": "__import__ _gcd_import", "sys": "_getframe _current_frames",
    "inspect": "currentframe stack getmodule", "gc": "get_objects get_referrers get_referents", "_pickle": "load loads Unpickler", "pickle": "_load _loads _Unpickler",
    "typing": "get_type_hints", "runpy": "run_module run_path", "pkgutil": "resolve_name", "pydoc": "locate resolve"}
_DYNAMIC = frozenset((module, name) for module, names in _DYNAMIC.items() for name in names.split())
_DYNAMIC_VALUES = {id(sys.modules): "sys.modules", id(builtins): "the module builtins", id(vars(builtins)): "__builtins__"}
_DYNAMIC_NAMES = frozenset(("__globals__", "__subclasses__", "__builtins__", "f_globals", "f_locals", "f_back", "tb_frame", "gi_frame", "cr_frame", "func_globals"))
_STREAMS = ("stdout", "stderr", "stdin", "__stdout__", "__stderr__", "__stdin__")


# ---- what code refers to ----

class References:
    """What code reads and writes by name outside of itself. `names`: {(name, attributes that follow)}; `free`: the same for variables of enclosing functions;
    `stored`: globals that it assigns; `imports`: {(level, module, name or None, whole leaf?, attributes that follow, or None for the whole)}; `dynamic`: names that reach anything."""

    __slots__ = ("names", "free", "stored", "imports", "dynamic", "assigned")

    def __init__(self):
        self.names, self.free, self.stored, self.imports, self.dynamic, self.assigned = set(), set(), set(), set(), set(), set()

    def freeze(self):
        for name in self.__slots__:
            setattr(self, name, tuple(sorted(getattr(self, name), key=repr)))
        return self


_IMPORT_NAME = dis.opmap["IMPORT_NAME"]
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_SILENT = ("CACHE", "RESUME", "PUSH_NULL", "NOP")
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
_CELLS = ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")
_references = {}  # id of code to (what it refers to, the code itself)


def references(code):
    known = _references.get(id(code))
    if known is None:
        if len(_references) > 20_000:  # of a process that makes functions all the time
            _references.clear()
        known = _references[id(code)] = (read_references(code), code)
    return known[0]


def read_references(code, block=False):
    """`block`: this is the body of a block, compiled as a module: the names that it imports are its own."""
    found = References()
    todo = [(code, {})]  # and the local names that stand for what was imported
    outer = set(code.co_freevars)
    module_aliases = {}
    if block:
        _imports_of(code, found, module_aliases, ("STORE_NAME", "STORE_GLOBAL"))
    while todo:
        one, given = todo.pop()
        aliases = {n: list(v) for n, v in given.items() if n in one.co_freevars}
        # A name that an import gives is followed wherever it is used, else the import counts in whole.
        _imports_of(one, found, aliases, ("STORE_FAST", "STORE_DEREF") + (("STORE_NAME", "STORE_GLOBAL") if block and one is code else ()))
        chain = None
        for i in (*dis.get_instructions(one), None):
            opname = i.opname if i is not None else "END"
            if opname in _SILENT:
                continue
            if chain is not None and opname in _ATTRIBUTES:
                chain[2].append(i.argval)
                if i.argval in _DYNAMIC_NAMES:
                    found.dynamic.add(i.argval)
                continue
            if chain is not None:
                _use(found, *chain)
                chain = None
            if i is None:
                break
            if opname in _GLOBALS:
                chain = (found.names, [*aliases.get(i.argval, ()), *module_aliases.get(i.argval, ())], [i.argval])
            elif opname in _CELLS or opname.startswith("LOAD_FAST"):
                for name in i.argval if isinstance(i.argval, tuple) else (i.argval,):
                    if chain is not None:
                        _use(found, *chain)
                    chain = (found.free if name in outer and name in one.co_freevars else None, aliases.get(name, ()), [name])
            elif opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                found.stored.add(i.argval)
            elif opname in ("STORE_NAME", "DELETE_NAME") and one is code:
                found.assigned.add(i.argval)
            elif opname == "STORE_DEREF" and i.argval in outer and i.argval in one.co_freevars:
                found.free.add((i.argval, ()))
            elif opname == "IMPORT_STAR":
                found.dynamic.add("import *")
            elif isinstance(i.argval, tuple) and opname != "LOAD_CONST":  # instructions of newer versions that do two things at once
                for name in i.argval:
                    if aliases.get(name):
                        _use(found, None, aliases[name], [name])
            if opname in _ATTRIBUTES and i.argval in _DYNAMIC_NAMES:
                found.dynamic.add(i.argval)
            elif opname == "LOAD_CONST" and isinstance(i.argval, str) and i.argval in _DYNAMIC_NAMES:
                found.dynamic.add(i.argval)
        todo.extend((c, aliases) for c in one.co_consts if isinstance(c, types.CodeType))
    return found.freeze()


def _use(found, names, imported, chain):
    if names is not None:
        names.add((chain[0], tuple(chain[1:])))
    for level, module, name, leaf in imported:
        found.imports.add((level, module, name, leaf, tuple(chain[1:])))


def _imports_of(code, found, aliases, stores):
    """Notes the imports of one code object: under the local name that each is bound to, or as used in whole."""
    if _IMPORT_NAME not in code.co_code[::2]:
        return
    instructions = [i for i in dis.get_instructions(code) if i.opname not in _SILENT and i.opname != "EXTENDED_ARG"]
    for at, i in enumerate(instructions):
        if i.opname != "IMPORT_NAME":
            continue
        level, names = instructions[at - 2].argval, instructions[at - 1].argval
        after = instructions[at + 1:at + 2 + 4 * (len(names) if names else i.argval.count(".") + 1)]
        bound = []
        if names:
            for k, one in enumerate(after):
                if one.opname == "IMPORT_FROM":
                    bound.append(((level, i.argval, one.argval, False), after[k + 1] if k + 1 < len(after) else None))
                elif one.opname == "POP_TOP" or one.opname == "IMPORT_NAME":
                    break
        elif after and after[0].opname == "IMPORT_FROM":  # import a.b as c
            store = next((one for one in after if one.opname.startswith("STORE_")), None)
            bound.append(((level, i.argval, None, True), store))
        else:
            bound.append(((level, i.argval, None, False), after[0] if after else None))
        found.imports.add((level, i.argval, "", False, ()))  # that it is there at all
        for what, store in bound:
            if store is not None and store.opname in stores:
                aliases.setdefault(store.argval, []).append(what)
            else:
                found.imports.add((*what, None))


# ---- values ----

MISSING = object()
_COMPILED = tuple(importlib.machinery.EXTENSION_SUFFIXES)
_LARGE = 4096
_UNCOUNTED = frozenset(("__dict__", "__weakref__", "__module__", "__slotnames__", "__firstlineno__", "__static_attributes__", "_abc_impl", "__annotations__", "__annotate__",
                        "__annotations_cache__", "__annotate_func__"))
_OF_MODULES = frozenset(("__builtins__", "__cached__", "__loader__", "__spec__", "__file__", "__path__", "__package__", "__name__"))
# Library types whose values never change, so that one that is known need not be looked at again.
_FIXED = frozenset((("builtins", "range"), ("builtins", "slice"), ("datetime", "date"), ("datetime", "datetime"), ("datetime", "time"), ("datetime", "timedelta"),
                    ("datetime", "timezone"), ("decimal", "Decimal"), ("fractions", "Fraction"), ("pathlib", "PosixPath"), ("pathlib", "PurePosixPath"), ("re", "Pattern")))
# Library types that say nothing about themselves, and whose whole content is the objects that the garbage collector sees in them.
_HOLDERS = frozenset((("functools", "KeyWrapper"),))
_DESCRIPTORS = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType)

_hashers = {}  # type to function


def register_hasher(kind, function):
    """Values of this type (and of types derived from it) count as what `function(value)` returns, which must hold all that results can depend on."""
    if not isinstance(kind, type) or not callable(function):
        raise TypeError("register_hasher(type, function)")
    _hashers[kind] = function


class Mark:
    """An attribute of a wrapper of persistent_cache: the function inside, names to ignore, and what stet gave the wrapper. functools.wraps copies it to functions
    that do more, so it says whose it is. It lies with the wrapper, to be gone with it."""

    __slots__ = ("wrapper", "function", "ignore", "own", "depends_on", "expires")

    def __init__(self, wrapper, function, ignore, own, depends_on, expires):
        self.wrapper, self.function, self.ignore, self.own, self.depends_on, self.expires = weakref.ref(wrapper), function, ignore, own, depends_on, expires


_attributes_of_stet = weakref.WeakSet()


def own_function(wrapper, function, ignore, attributes, depends_on=(), expires=None):
    """`wrapper` returns what `function` returns; `attributes` are further functions, for its users, that it gets."""
    vars(wrapper).update(attributes)
    _attributes_of_stet.update(attributes.values())
    mark = vars(wrapper)["_stet_cached"] = Mark(wrapper, function, ignore, {}, depends_on, expires)
    mark.own.update({k: v for k, v in vars(wrapper).items() if vars(function).get(k) is not v})


def _mark_of(f):
    mark = vars(f).get("_stet_cached")
    return mark if type(mark) is Mark and mark.wrapper() is f else None


def _members(cls):
    return [m for m in vars(cls).values() if type(m) is types.MemberDescriptorType]


def _is_opaque(cls):
    """Do objects of this class have memory of their own that Python does not show?"""
    names = vars(cls)
    shown = len(_members(cls)) + ("__dict__" in names) + ("__weakref__" in names)
    return cls is not object and cls.__basicsize__ - cls.__base__.__basicsize__ > 8 * shown


def is_user_class(cls):
    """A class that a class statement (or the like) made, and that is not found by its name in a library."""
    return bool(cls.__flags__ & HEAP) and not _is_opaque(cls) and not lives_in_library(cls, cls.__module__, cls.__qualname__)


def _leaf(out, o, kind):
    """Writes values that are nothing but themselves. False: it is not one of those."""
    if kind is str:
        data = o.encode("utf-8", "surrogatepass")
        if len(data) >= _LARGE:
            return False
        out += b"s%d:" % len(data)
        out += data
    elif kind is int:
        out += b"i%d:" % o if -(2**63) <= o < 2**63 else b"I" + hex(o).encode() + b":"
    elif kind is bool:
        out += b"T" if o else b"F"
    elif o is None:
        out += b"N"
    elif kind is float:
        out += b"f" + struct.pack("<d", o)
    elif kind is bytes:
        if len(o) >= _LARGE:
            return False
        out += b"b%d:" % len(o)
        out += o
    elif kind is complex:
        out += b"j"
        _leaf(out, o.real, float)
        _leaf(out, o.imag, float)
    elif o is ...:
        out += b"E"
    elif o is NotImplemented:
        out += b"J"
    else:
        return False
    return True


def leaves(values, names=None):
    """The bytes that a walk writes for these constants, each after its name; None if one of them is something else."""
    out = bytearray()
    for i, o in enumerate(values):
        if names is not None:
            out += names[i]
        if not _leaf(out, o, type(o)):
            return None
    return out


_LEAVES = frozenset((str, int, bool, float, bytes, complex, type(None), type(...), type(NotImplemented)))
_code_digests = {}


def _code_digest(code):
    known = _code_digests.get(id(code))
    if known is None:
        out = bytearray()
        w = Walk()
        fields = (code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_name, code.co_argcount,
                  code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        for field in fields:
            w.add(field)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                out += b"c" + _code_digest(constant)  # as deep as the compiler allows functions to nest
            else:
                w.add(constant)
                out += b"v"
        if len(_code_digests) > 20_000:
            _code_digests.clear()
        known = _code_digests[id(code)] = (hashlib.sha256(bytes(out) + w.digest()).digest(), code)
    return known[0]


class Walk:
    """One key in the making: `add` any number of times, then `digest()`.

    `ignore`: names of the variables of the first function that do not count, and "MODULE.NAME" for a variable wherever it is used. `before`: (dict, {name: value}) that are looked up in
    place of what the dict holds now. `large`: digests of large constants from an earlier walk. `lazy`: values of cached properties that an earlier walk saw; others do not count."""

    def __init__(self, ignore=frozenset(), allow_dynamic=False, before=None, large=None, lazy=None, ordering=False):
        self.out = bytearray()
        self._ordering = ordering
        self.memo = {}  # id to number, of objects that are told apart by identity
        self.names_guard, self.guards = [], []
        self.volatile = False  # holds something whose change no guard would see
        self.imported = False  # a module was loaded on the way, and may have changed what was looked at before
        self.large, self.lazy = {}, set()
        self._known_large, self._known_lazy = large or {}, lazy
        self._keep = []
        self._offsets, self._parents, self._labels = [], [], []
        self._pure = {}
        self._shapes = {}
        self._stack = []
        self._at = -1
        self._ignore, self._dynamic, self._before = ignore, allow_dynamic, before
        self.patched = None
        self.files, self.expires = set(), None  # of the cached functions that were met

    def digest(self):
        h = hashlib.sha256(VERSION)
        h.update(self.out)
        return h.digest()

    def add(self, value, label=None):
        self._push(value, label)
        self._run()

    def path(self, number):
        """How the walk came to an object: "f, h, T"."""
        parts = []
        while number >= 0:
            if self._labels[number] is not None:
                parts.append(self._labels[number])
            number = self._parents[number]
        return " of ".join(parts[:6]) or "value"

    def difference(self, other):
        """The path of what differs from another walk over the same things."""
        at = next((i for i, (a, b) in enumerate(zip(self.out, other.out)) if a != b), min(len(self.out), len(other.out)))
        low, high = 0, len(self._offsets)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._offsets[middle] <= at else (low, middle)
        return self.path(low - 1)

    def _fail(self, message, kind=Unhashable):
        where = self.path(self._at)
        raise kind(f"{where}: {message}")

    def _push(self, value, label=None):
        self._stack.append((value, self._at, label))

    def _push_all(self, pairs):
        """Parts of the object at hand, in order: (value, label)."""
        at = self._at
        self._stack.extend([(v, at, l) for v, l in reversed(pairs)])

    def _run(self):
        out, stack, memo = self.out, self._stack, self.memo
        while stack:
            o, parent, label = stack.pop()
            kind = type(o)
            if kind in _LEAVES and _leaf(out, o, kind):
                continue
            if kind is str or kind is bytes:
                out += b"l" + kind.__name__[:1].encode() + self._large_digest(o)
                continue
            if kind is types.CodeType:
                out += b"c" + _code_digest(o)
                continue
            if kind is tuple or kind is frozenset:
                digest = self._pure_digest(o)
                if digest is not None:
                    out += b"P" + digest
                    continue
            number = memo.get(id(o))
            if number is not None:
                out += b"@%d:" % number
                continue
            memo[id(o)] = len(self._keep)
            self._keep.append(o)
            self._offsets.append(len(out))
            self._parents.append(parent)
            self._labels.append(label)
            self._at = len(self._offsets) - 1
            self._compound(o, kind)
        self._at = -1

    # memo numbers and the lists of offsets run in step: one of each for every object

    def _large_digest(self, o):
        known = self._known_large.get(id(o))
        if known is None or known[1] is not o:
            known = (hashlib.sha256(o.encode("utf-8", "surrogatepass") if type(o) is str else o).digest(), o)
        self.large[id(o)] = known
        return known[0]

    def _pure_digest(self, root):
        """Of a tuple or frozenset with nothing but constants in it, however deep: equal ones are the same, whether they are one object or not. Else None."""
        known = self._pure
        if id(root) in known:
            return known[id(root)][0]
        stack = [root]
        while stack:
            o = stack[-1]
            if id(o) in known:
                stack.pop()
                continue
            large = self._known_large.get(id(o))
            if large is not None and large[1] is o:
                known[id(o)] = self.large[id(o)] = large
                stack.pop()
                continue
            parts, waiting = [], False
            for item in o:
                kind = type(item)
                one = bytearray()
                if kind in _LEAVES:
                    if not _leaf(one, item, kind):
                        one += b"l" + kind.__name__[:1].encode() + self._large_digest(item)
                elif kind is tuple or kind is frozenset:
                    inner = known.get(id(item))
                    if inner is None:
                        stack.append(item)
                        waiting = True
                        continue
                    if inner[0] is None:
                        parts = None
                        break
                    one += b"P" + inner[0]
                else:
                    parts = None
                    break
                parts.append(bytes(one))
            if parts is not None and waiting:
                continue
            while stack and stack[-1] is not o:
                stack.pop()
            stack.pop()
            if parts is None:
                known[id(o)] = (None, o)
            else:
                if type(o) is frozenset:
                    parts.sort()
                h = hashlib.sha256(b"(" if type(o) is tuple else b"<")
                h.update(b"%d:" % len(parts))
                for part in parts:
                    h.update(part)
                known[id(o)] = (h.digest(), o)
                if len(parts) > 1000:
                    self.large[id(o)] = known[id(o)]
        return known[id(root)][0]

    # ---- by kind ----

    def _compound(self, o, kind):
        if not self._dynamic:
            if id(o) in _DYNAMIC_VALUES:
                self._refuse(_DYNAMIC_VALUES[id(o)])
            if (kind in (types.BuiltinFunctionType, types.FunctionType) or isinstance(o, type)) and (o.__module__, o.__qualname__) in _DYNAMIC:
                self._refuse(o.__qualname__ if o.__module__ == "builtins" else f"{o.__module__.lstrip('_')}.{o.__qualname__}")
        handler = _HANDLERS.get(kind)
        if handler is not None:
            handler(self, o)
            return
        if isinstance(o, type):
            self._class(o)
            return
        if isinstance(o, types.ModuleType):
            self._module(o)
            return
        for base in kind.__mro__:
            if base in _hashers:
                self.volatile = True
                self.out += b"H"
                value = _hashers[base](o)
                self._keep_also(value)
                self._push_all([(kind, None), (value, None)])
                return
        if is_user_class(kind):
            self._instance(o, kind)
        elif isinstance(o, property):
            self._property(o)
        elif isinstance(o, threading.local):
            self.volatile = True
            self.out += b"h"
            self._push(vars(o))
        elif (kind.__module__, kind.__qualname__) in _HOLDERS:
            self.volatile = True
            inside = [x for x in gc.get_referents(o) if x is not kind]
            self.out += b"G%d:" % len(inside)
            self._push_all([(kind, None), *((x, None) for x in inside)])
        elif isinstance(o, weakref.ref):
            self.volatile = True
            self.out += b"w"
            self._push_all([(kind, None), (o(), None)])
        elif not self._array(o, kind):
            self._library_object(o, kind)

    def _keep_also(self, value):
        self._pure[("kept", id(value))] = (None, value)

    def _refuse(self, what):
        self._fail(f"{what} can read anything by name, so nothing can be said about what the result depends on; "
                   "say allow_dynamic=True if the rest of the key covers it", DynamicCode)

    def _list(self, o):
        items = tuple(o)
        self.guards.append((_same_sequence, o, items))
        self.out += b"[%d:" % len(items)
        at = self._at
        self._stack.extend([(v, at, None) for v in reversed(items)])

    def _tuple(self, o):
        self.out += b"(%d:" % len(o)
        self._push_all([(v, None) for v in o])

    def _dict(self, o):
        items = list(o.items())
        self.guards.append((_same_dict, o, (tuple(o), tuple(o.values()))))
        self.out += b"{%d:" % len(items)
        pairs = []
        for k, v in items:
            pairs.append((k, None))
            pairs.append((v, f"[{k!r}]" if type(k) in (str, int) else None))
        self._push_all(pairs)

    def _set(self, o):
        items = tuple(o)
        if type(o) is set:
            self.guards.append((_same_sequence, o, items))
        self._unordered(items, b"<" if isinstance(o, set) else b">")

    def _unordered(self, items, tag):
        """In the order of what the items are. A walk that only serves that order leaves out what is hard to order: that decides nothing but which of two like items comes first."""
        ordered = []
        for item in items:
            one = bytearray()
            kind = type(item)
            if not _leaf(one, item, kind):
                if not self._ordering:
                    walk = Walk(self._ignore, True, self._before, ordering=True)
                    walk.add(item)
                    self.imported |= walk.imported
                    one += walk.digest()
                elif kind in (tuple, frozenset):
                    one += self._pure_digest(item) or b"?"
                else:
                    one += b"?"
            ordered.append((bytes(one), item))
        ordered.sort(key=lambda pair: pair[0])
        self.out += tag + b"%d:" % len(ordered)
        if self._ordering:
            self.out += b"".join(one for one, _ in ordered)
        else:
            self._push_all([(item, None) for _, item in ordered])

    def _mapping_proxy(self, o):
        inner = gc.get_referents(o)
        self.out += b"y"
        if len(inner) == 1 and type(inner[0]) is dict:
            self._push(inner[0])
        else:
            self.volatile = True
            inner = dict(o)
            self._keep_also(inner)
            self._push(inner)

    def _cell(self, o):
        try:
            value = o.cell_contents
        except ValueError:
            value = MISSING
        self.guards.append((_same_cell, o, value))
        self.out += b"z" if value is MISSING else b"Z"
        if value is not MISSING:
            self._push(value)

    def _method(self, o):
        self.out += b"m"
        self._push_all([(o.__func__, o.__func__.__name__ if hasattr(o.__func__, "__name__") else None), (o.__self__, "self")])

    def _builtin(self, o):
        owner = o.__self__
        if owner is None or isinstance(owner, types.ModuleType):
            self._named(b"B", o.__module__ or getattr(owner, "__name__", ""), o.__qualname__)
        else:
            self.out += b"M"
            self._push_all([(o.__name__, None), (owner, o.__name__)])

    def _slot_wrapper(self, o):
        self.out += b"M"
        self._push_all([(o.__name__, None), (o.__self__, o.__name__)])

    def _descriptor(self, o):
        self.out += b"D"
        self._push_all([(o.__name__, None), (o.__objclass__, None)])

    def _property(self, o):
        self.out += b"p"
        self._push_all([(type(o), None), (o.fget, "fget"), (o.fset, "fset"), (o.fdel, "fdel"), (o.__doc__, None)])

    def _static(self, o):
        self.out += b"x"
        self._push_all([(type(o), None), (o.__func__, None)])

    def _cached_property(self, o):
        self.out += b"C"
        self._push_all([(type(o), None), (o.func, o.attrname), (o.attrname, None)])

    def _lru(self, o):
        """The function inside; its results so far are no part of it."""
        inside = [x for x in gc.get_referents(o) if callable(x) and x is not type(o) and not isinstance(x, type)]
        self.out += b"W"
        given = dict(o.cache_parameters())
        rest = {k: v for k, v in vars(o).items() if k != "__wrapped__"}
        self._keep_also(given)
        self._keep_also(rest)
        self.guards.append((_same_dict, vars(o), (tuple(vars(o)), tuple(vars(o).values()))))
        self.out += b"%d:" % len(inside)
        self._push_all([(f, getattr(f, "__name__", None)) for f in inside] + [(given["maxsize"], None), (given["typed"], None), (getattr(o, "__wrapped__", None), None)]
                       + [p for k, v in rest.items() if k != "cache_parameters" for p in ((k, None), (v, k))])

    def _generic(self, o):
        self.out += b"A"
        self._push_all([(o.__origin__, None), (o.__args__, None)])

    def _type_var(self, o):
        self.out += b"t"
        self.volatile = True
        fields = ("__name__", "__bound__", "__constraints__", "__covariant__", "__contravariant__", "__default__")
        self._push_all([(type(o), None), *((getattr(o, f, None), f) for f in fields)])

    def _bytearray(self, o):
        self.volatile = True
        self._buffer(memoryview(o))

    def _memoryview(self, o):
        self.volatile = True
        try:
            self._buffer(o)
            owner = o.obj
            self._push_all([(o.readonly, None), (o.strides, None), (owner, "obj")])
        except (ValueError, NotImplementedError) as e:  # released
            self._fail(f"no key can be made from a memoryview ({e})")

    def _buffer(self, view):
        self.out += b"v"
        content = hashlib.sha256(view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()).digest()
        self._push_all([(view.format, None), (view.shape, None), (content, None)])

    def _context_var(self, o):
        """Its value here, and the one that it has by default: code may run in another context."""
        self.volatile = True
        pairs = [(o.name, None)]
        for context in (contextvars.copy_context(), contextvars.Context()):
            value = context.run(_value_of_variable, o)
            self.out += b"q" if value is MISSING else b"Q"
            pairs += [(value, o.name)] if value is not MISSING else []
        self._push_all(pairs)

    def _named(self, tag, module, qualname):
        module = module or ""
        top = module.partition(".")[0]
        self.out += tag
        owner = sys.modules.get(module)
        file = getattr(owner, "__file__", None)
        if file and file.endswith(_COMPILED) and not is_library(owner):
            self._push(file_digest(file))  # a compiled module of the user's: what it does is in its file
        self._push_all([(module, None), (qualname, None), (package_version(top) if top else "", None)])

    def _array(self, o, kind):
        """An array that is nothing but its memory: that, with its type and shape. (Subclasses may have more to them, a mask or a unit.)"""
        if (kind.__module__, kind.__qualname__) not in (("array", "array"), ("numpy", "ndarray")):
            return False
        try:
            view = memoryview(o)
        except (TypeError, ValueError):
            return False  # dates of numpy
        if "O" in view.format:
            return False  # addresses of objects
        self.volatile = True
        self.out += b"a"
        self._buffer(view)
        self._push(kind)
        return True

    # ---- objects ----

    def _shape(self, kind):
        """How objects of a class are made up: the library classes that it is derived from, the slots of its own ones, the names of its cached properties."""
        shape = self._shapes.get(kind)
        if shape is None:
            bases = kind.__mro__[:-1]
            libraries = [b for b in bases if b is not object and not is_user_class(b)]
            slots = [(n, m) for b in bases if b not in libraries for n, m in vars(b).items() if type(m) is types.MemberDescriptorType]
            shown = {}
            for b in reversed(bases):
                shown.update(vars(b))
            shape = self._shapes[kind] = (libraries, slots, frozenset(n for n, m in shown.items() if isinstance(m, functools.cached_property)))
        return shape

    def _instance(self, o, kind):
        """An object of a class of the user's: all that it holds. What its class says to pickle is an opinion, and may leave out what a method reads."""
        libraries, slots, cached = self._shape(kind)
        pairs = [(kind, None)]
        try:
            attributes = (threading.local if isinstance(o, threading.local) else object).__getattribute__(o, "__dict__")
        except AttributeError:
            attributes = None
        if attributes is not None and type(attributes) is not dict:
            self._fail(f"the attributes of a value of type {kind.__module__}.{kind.__qualname__} are no dict")
        attributes = attributes or {}
        if attributes or hasattr(kind, "__dict__"):
            self.guards.append((_same_attributes, o, (tuple(attributes), tuple(attributes.values()), kind)))
        items = []
        for name, value in attributes.items():
            if name in cached:
                seen = (id(o), name)
                if self._known_lazy is not None and seen not in self._known_lazy:
                    continue
                self.lazy.add(seen)
            if name == "lock" and isinstance(o, functools.cached_property):
                continue
            items += [(name, None), (value, name)]
        for name, member in slots:
            items += self._slot(o, kind, name, member)
        self.out += b"o%d:" % len(items)
        self._push_all(pairs + items + self._library_parts(o, kind, libraries))

    def _slot(self, o, kind, name, member):
        try:
            value = member.__get__(o, kind)
        except AttributeError:
            value = MISSING
        self.guards.append((_same_slot, (member, o, kind), value))
        return [(name, None), (value, name)] if value is not MISSING else []

    def _library_parts(self, o, kind, libraries):
        """What the library classes that an object's class is derived from keep in it: read by their own functions, never by those of the user's class."""
        pairs, rest = [], []
        for base in libraries:
            read = _LAYERS.get(base)
            if read is not None:
                self.volatile = True
                content = read(o)
                self._keep_also(content)
                pairs += [(base, None), (content, None)]
            elif _is_opaque(base) or _members(base):
                rest.append(base)
        if isinstance(o, BaseException):
            pairs += self._exception_parts(o, kind)
        elif isinstance(o, threading.local):
            self.volatile = True
        elif rest:
            # numpy's __reduce_ex__ asks the class at hand for its __reduce__.
            names = ("__reduce__",) if any((b.__module__, b.__qualname__) == ("numpy", "ndarray") for b in rest) else ("__reduce_ex__", "__reduce__", "__getstate__")
            tell = next(((name, vars(b)[name]) for b in libraries for name in names if name in vars(b)), None)
            if tell is not None:
                self.volatile = True
                name, function = tell
                pairs.append((self._reduced(o, kind, lambda x: function(x, 4) if name == "__reduce_ex__" else function(x), state=name == "__getstate__"), None))
            for base in rest if tell is None else ():
                if _is_opaque(base):
                    self._fail(f"no key can be made from a value of type {kind.__module__}.{kind.__qualname__}: what {base.__module__}.{base.__qualname__} keeps in it can't be seen")
                for name, member in vars(base).items():
                    pairs += self._slot(o, kind, name, member) if type(member) is types.MemberDescriptorType else []
        return pairs

    def _exception_parts(self, o, kind):
        """All that its classes keep in it, and of its traceback where it was raised. (The variables there are reached only by names that are refused.)"""
        self.volatile = True
        pairs = []
        for base in kind.__mro__[:-1]:
            if is_user_class(base):
                continue
            for name, member in vars(base).items():
                if type(member) in (types.MemberDescriptorType, types.GetSetDescriptorType) and name not in ("__dict__", "__weakref__", "__traceback__"):
                    try:
                        pairs += [(name, None), (member.__get__(o, kind), name)]
                    except AttributeError:
                        pass
        at = o.__traceback__
        while at is not None:
            pairs += [(at.tb_frame.f_code, None), (at.tb_lineno, None), (at.tb_lasti, None)]
            at = at.tb_next
        return pairs

    def _reduced(self, o, kind, reduce=None, state=False):
        """As pickle takes it apart, but by structure: pickle's own bytes depend on which equal objects are identical. `state`: `reduce` gives the state alone."""
        reduce = reduce or copyreg.dispatch_table.get(kind)
        try:
            parts = reduce(o) if reduce is not None else kind.__reduce_ex__(o, 4)
        except Exception as e:
            self._fail(f"no key can be made from a value of type {kind.__module__}.{kind.__qualname__} ({e})")
        if state:
            self._keep_also(parts)
            return parts
        if isinstance(parts, str):
            return parts
        parts = list(parts) + [None] * (6 - len(parts))
        for i in (3, 4):
            if parts[i] is not None:
                parts[i] = list(parts[i])
        self._keep_also(parts)
        return parts

    def _library_object(self, o, kind):
        if any(o is getattr(sys, name, None) for name in _STREAMS):
            self._named(b"S", "sys", next(name for name in _STREAMS if o is getattr(sys, name, None)))
            return
        if isinstance(o, BaseException):
            self._instance(o, kind)
            return
        read = _READERS.get((kind.__module__, kind.__qualname__))
        if read is not None:
            content = [read(o)]
            self._keep_also(content)
            self.volatile = True
            self.out += b"d"
            self._push_all([(kind, None), (content, None)])
            return
        parts = self._reduced(o, kind)
        if not isinstance(parts, str):
            if (kind.__module__, kind.__qualname__) not in _FIXED:
                self.volatile = True
            self.out += b"r"
            self._push(parts)
            return
        module = getattr(o, "__module__", None) or kind.__module__
        if not lives_in_library(o, module, parts):  # a ufunc does not say of which module
            module = next((n for n in sorted(sys.modules) if lives_in_library(o, n, parts)), None)
        if module is not None:
            self._named(b"g", module, parts)
            return
        if kind.__flags__ & HEAP and not any(_is_opaque(base) for base in kind.__mro__[:-1]):
            self._instance(o, kind)  # a class in Python that pickles by name: NewType, ParamSpec
            return
        inside = gc.get_referents(o)  # of a ufunc: the function it was made from
        if not any(isinstance(x, types.FunctionType) or isinstance(x, types.BuiltinFunctionType) for x in inside):
            self._fail(f"no key can be made from a value of type {kind.__module__}.{kind.__qualname__}: it says only its name, {parts!r}")
        self.volatile = True
        self.out += b"R%d:" % len(inside)
        self._push_all([(kind, None), *((x, None) for x in inside)])

    # ---- code ----

    def _function(self, f):
        cached = _mark_of(f)
        code = f.__code__
        if f in _attributes_of_stet:  # says something about the cache, nothing about results
            self.out += b"X"
            return
        if cached is not None:  # of persistent_cache: it gives what the function inside gives
            inner, ignore, own = cached.function, cached.ignore, cached.own
            self.files.update(cached.depends_on)
            self.expires = cached.expires if self.expires is None else self.expires if cached.expires is None else min(self.expires, cached.expires)
            rest = [(k, v) for k, v in vars(f).items() if own.get(k, MISSING) is not v and vars(inner).get(k, MISSING) is not v]
            self.guards.append((_same_dict, vars(f), (tuple(vars(f)), tuple(vars(f).values()))))
            self.out += b"O%d:" % len(rest)
            self._push_all([(k, None) if i == 0 else (v, k) for k, v in rest for i in (0, 1)])
            if isinstance(inner, types.FunctionType):
                # The function itself is an object of its own: its names may be left out here, and count where it is used without the cache.
                self._user_function(inner, ignore | {n for n in self._ignore if "." in n}, label=f.__name__)
            else:
                self._push(inner)
            return
        if is_library_file(code.co_filename):
            self._library_function(f)
        else:
            self._user_function(f, frozenset(n for n in self._ignore if "." in n))

    def _library_function(self, f):
        code = f.__code__
        self.out += b"L" + _code_digest(code)
        if code.co_qualname == "singledispatch.<locals>.wrapper" and hasattr(f, "registry"):
            self.volatile = True
            registry = dict(f.registry)
            self._keep_also(registry)
            self._push(registry, "registry")
            return
        pairs = [(code.co_qualname, None)]
        module = f.__globals__.get("__name__")
        top = module.partition(".")[0] if isinstance(module, str) else ""
        pairs += [(top, None), (package_version(top) if top else "", None)]
        if "<locals>" in code.co_qualname and not lives_in_library(f, f.__module__, f.__qualname__):
            pairs += self._own_parts(f, frozenset())
            for name, cell in zip(code.co_freevars, f.__closure__ or ()):
                pairs += [(name, None), (cell, name)]
        self._push_all(pairs)

    def _own_parts(self, f, ignore):
        """What a function holds besides its code."""
        code, values = f.__code__, f.__defaults__ or ()
        attributes = vars(f)
        annotations = f.__annotations__
        self.guards.append((_same_function, f, (code, f.__defaults__, f.__kwdefaults__, tuple(attributes), tuple(attributes.values()), tuple(annotations), tuple(annotations.values()), f.__name__,
                                                f.__qualname__, f.__doc__)))
        if f.__kwdefaults__:
            self.guards.append((_same_dict, f.__kwdefaults__, (tuple(f.__kwdefaults__), tuple(f.__kwdefaults__.values()))))
        defaults = {**dict(zip(code.co_varnames[code.co_argcount - len(values):code.co_argcount], values)), **(f.__kwdefaults__ or {})}
        pairs = [(f.__name__, None), (f.__qualname__, None), (script_name(f.__module__), None), (f.__doc__, None)]
        for tag, parts in (("defaults", defaults), ("attributes", attributes), ("annotations", annotations)):
            parts = [(k, v) for k, v in parts.items() if tag != "defaults" or k not in ignore]
            pairs.append((len(parts), None))
            for name, value in parts:
                pairs += [(name, None), (value, name)]
        return pairs

    def _user_function(self, f, ignore, label=None):
        code = f.__code__
        self.out += b"F" + _code_digest(code)
        found = references(code)
        pairs = self._own_parts(f, ignore)
        self._check_dynamic(found)
        for one in found.imports:
            pairs += self._import(one, f.__globals__)
        cells = dict(zip(code.co_freevars, f.__closure__ or ()))
        chains = collections.defaultdict(set)
        for name, attributes in found.free:
            chains[name].add(attributes)
        for name, cell in cells.items():
            if name in ignore:
                continue
            try:
                value = cell.cell_contents
            except ValueError:
                value = MISSING
            self.guards.append((_same_cell, cell, value))
            pairs.append((name, None))
            for attributes in sorted(chains.get(name, {()})):
                pairs += self._chain(value, name, attributes)
        pairs += self.name_pairs([n for n in found.names if n[0] not in ignore], f.__globals__, f.__builtins__, stored=[n for n in found.stored if n not in ignore])
        self._push_all(pairs)

    def statements(self, found, inputs, space, scopes):
        """What statements that run in these scopes depend on."""
        self._check_dynamic(found)
        pairs = []
        for one in found.imports:
            pairs += self._import(one, space)
        self._push_all(pairs + self.name_pairs(inputs, *scopes, stored=found.stored))
        self._run()

    def _check_dynamic(self, found):
        if found.dynamic and not self._dynamic:
            self._refuse(found.dynamic[0])

    def _look(self, scope, name):
        if self._before is not None and scope is self._before[0] and name in self._before[1]:
            return self._before[1][name]
        return scope.get(name, MISSING)

    def name_pairs(self, names, *scopes, stored=()):
        """Values of names, each with the attributes that follow it: those of a module are looked up, of anything else the value itself counts."""
        pairs = []
        dotted = {n for n in self._ignore if "." in n}
        for name, attributes in (*names, *((n, ()) for n in stored)):
            value = MISSING
            for scope in scopes:
                value = self._look(scope, name)
                if type(scope) is dict:
                    self.names_guard.append((scope.get, name, value))
                else:
                    self.volatile = True
                if value is not MISSING:
                    break
            if dotted and f"{script_name(scopes[0].get('__name__', ''))}.{name}" in dotted:
                continue
            pairs.append((name, None))
            pairs += self._chain(value, name, attributes)
        return pairs

    def _chain(self, value, name, attributes):
        """What `name.a.b` is: through modules by attribute, then the value. A module that is used without an attribute counts in whole."""
        path = [name]
        for attribute in attributes:
            if not isinstance(value, types.ModuleType):
                break
            if not is_library(value) and f"{script_name(value.__name__)}.{attribute}" in self._ignore:
                return [(tuple(path) + (attribute, "ignored"), None)]
            module, space = value, vars(value)
            if module is sys and attribute in _STREAMS:
                return [(tuple(path) + (attribute,), None)]
            value = self._look(space, attribute)
            path.append(attribute)
            if value is MISSING:
                special = inspect.getattr_static(type(module), attribute, MISSING) is not MISSING or "__getattr__" in space or type(module) is not types.ModuleType
                try:
                    value = getattr(module, attribute)
                except AttributeError:
                    self.names_guard.append((space.get, attribute, MISSING))
                if special:
                    self.volatile = True
                    self.imported |= attribute in space  # it was made just now, and is found there from now on
                    pairs = [(tuple(path), None), (space.get("__getattr__"), "__getattr__"), (type(module), None)]
                    return pairs + ([(value, ".".join(path))] if value is not MISSING else [])
            else:
                self.names_guard.append((space.get, attribute, value))
        if value is MISSING:
            return [(tuple(path) + ("missing",), None)]
        return [(tuple(path), None), (value, ".".join(path))]

    def _import(self, one, scope):
        """What an import statement in code gives, as Python resolves it. A module of the user's is loaded now: what it holds counts."""
        level, name, attribute, leaf, attributes = one
        full = name
        package = scope.get("__package__")
        if level:
            package = package or (scope.get("__name__") or "").rpartition(".")[0]
            try:
                full = importlib.util.resolve_name("." * level + name, package)
            except (ImportError, ValueError) as e:
                self.volatile = True
                return [(("import", full, str(e)), None)]
        module = sys.modules.get(full)
        if module is None:
            before = set(sys.modules)
            try:
                module = importlib.import_module(full)
            except Exception as e:  # what it does about that is up to the code; the next time it may be there
                self.volatile = True
                return [(("import", full, type(e).__name__, str(e)), None)]
            finally:
                if any(not is_library(m) for n, m in list(sys.modules.items()) if n not in before and isinstance(m, types.ModuleType)):
                    self.imported = True
        self.names_guard.append((sys.modules.get, full, module))
        if attribute == "":  # that it is there, with its version
            return [(("import", full), None)] + ([(module, full)] if isinstance(module, types.ModuleType) and is_library(module) else [])
        if attribute is None and not leaf:
            value, label = sys.modules.get(full.partition(".")[0], module), full.partition(".")[0]
        elif attribute is None:
            value, label = module, full
        else:
            value, label = vars(module).get(attribute, MISSING), f"{full}.{attribute}"
            if value is MISSING:
                try:
                    value = getattr(module, attribute)
                    self.volatile = True
                except AttributeError:
                    try:
                        value = importlib.import_module(label)
                        self.imported = self.imported or not is_library(value)
                    except Exception as e:
                        self.volatile = True
                        return [(("import", label, type(e).__name__, str(e)), None)]
            else:
                if not is_library(module) and f"{script_name(full)}.{attribute}" in self._ignore:
                    return [(("import", label, "ignored"), None)]
                self.names_guard.append((vars(module).get, attribute, value))
        if attributes is None:
            attributes = ()
        return self._chain(value, label, attributes)

    def _module(self, module):
        """The whole of it: of a library its name and version."""
        if is_library(module):
            self._named(b"K", module.__name__, "")
            return
        names = vars(module)
        dotted = {n for n in self._ignore if "." in n}
        self.guards.append((_same_dict, names, (tuple(names), tuple(names.values()))))
        self.out += b"k"
        own = script_name(module.__name__)
        pairs = [(own, None), (type(module), None)]
        file = getattr(module, "__file__", None)
        if file and file.endswith(_COMPILED):
            pairs.append((file_digest(file), None))
        for name in sorted(n for n in names if isinstance(n, str)):
            if name in _OF_MODULES or (dotted and f"{own}.{name}" in dotted):
                continue
            value = self._look(names, name)
            pairs += [(name, None), (value, f"{module.__name__}.{name}")]
        self._push_all(pairs)

    def patches(self):
        """What the user put into libraries."""
        found = self.patched = patches.look()
        counted = [(name, value) for name, value in found if name not in self._ignore]
        if counted:
            self.out += b"!%d:" % len(counted)
            self._push_all([p for name, value in counted for p in ((name, None), (value, name))])
            self._run()

    def _registered(self, cls):
        """Classes that are registered with an abstract class, or with one below it: the user's, and for an abstract class of the user's those of libraries, too.
        (Libraries register theirs with abstract classes of Python when they are imported, which is no matter of the code.)"""
        found = _registry(cls)
        registered = [c for c in found if is_user_class(c)]
        others = sorted({f"{c.__module__}.{c.__qualname__}" for c in found if not is_user_class(c)}) if is_user_class(cls) else []
        self.guards.append((_same_registry, cls, (len(registered), others)))
        self.volatile |= bool(registered or others)
        registered.sort(key=lambda c: (script_name(c.__module__), c.__qualname__))
        return [(len(registered), None), *((c, "register") for c in registered), *((name, "register") for name in others)]

    def _class(self, cls):
        if not is_user_class(cls):
            if cls.__flags__ & HEAP and "_abc_impl" in vars(cls):
                self._push_all(self._registered(cls))
            self._named(b"C", cls.__module__, cls.__qualname__)
            return
        self.out += b"k"
        names = vars(cls)
        own = [(n, v) for n, v in names.items() if n not in _UNCOUNTED]
        self.guards.append((_same_class, cls, (tuple(names), tuple(names.values()), cls.__bases__, type(cls), cls.__name__, cls.__qualname__)))
        pairs = [(cls.__name__, None), (cls.__qualname__, None), (script_name(cls.__module__), None), (type(cls), "metaclass"), (len(cls.__bases__), None), *((b, None) for b in cls.__bases__)]
        for name, value in own:
            if type(value) in (types.GetSetDescriptorType, types.MemberDescriptorType) and value.__objclass__ is cls and value.__name__ == name:
                value = "slot"
            elif (type(value).__module__, type(value).__qualname__) == ("_ctypes", "CField"):
                value = (value.offset, value.size)  # the rest of it is in _fields_
            pairs += [(name, None), (value, f"{cls.__qualname__}.{name}")]
        annotations = names.get("__annotations__")
        if type(annotations) is dict and annotations:
            self.guards.append((_same_dict, annotations, (tuple(annotations), tuple(annotations.values()))))
            pairs += [x for k, v in annotations.items() for x in ((k, None), (v, f"annotation of {k}"))]
        elif names.get("__annotate_func__") is not None or names.get("__annotate__") is not None:
            pairs.append((names.get("__annotate_func__") or names.get("__annotate__"), "annotations"))
        if cls in copyreg.dispatch_table:
            pairs.append((copyreg.dispatch_table[cls], "copyreg"))
        if "_abc_impl" in names:
            pairs += self._registered(cls)
        self.out += b"%d:" % len(pairs)
        self._push_all(pairs)


def _value_of_variable(variable):
    try:
        return variable.get()
    except LookupError:
        return MISSING


def _of_stet(walk, o):
    walk.out += b"X"


def _members_of(o):
    """The attributes of an object of a compiled class."""
    return {name: member.__get__(o) for name, member in sorted(vars(type(o)).items()) if type(member) is types.MemberDescriptorType}


# What built-in classes keep in an object, by their own functions: a class that is derived from one may have others.
_LAYERS = {
    str: str.__str__, **{base: lambda o, base=base: base.__getnewargs__(o)[0] for base in (bytes, int, float, complex)},
    **{base: lambda o, base=base: list(base.__iter__(o)) for base in (list, tuple)}, **{base: lambda o, base=base: base(base.__iter__(o)) for base in (set, frozenset)},
    bytearray: lambda o: bytes(bytearray.__getitem__(o, slice(None))), dict: lambda o: dict(dict.items(o)), collections.OrderedDict: lambda o: list(collections.OrderedDict.items(o)),
    collections.defaultdict: collections.defaultdict.default_factory.__get__, collections.deque: lambda o: [*collections.deque.__iter__(o), collections.deque.maxlen.__get__(o)],
    property: lambda o: [property.fget.__get__(o), property.fset.__get__(o), property.fdel.__get__(o), property.__doc__.__get__(o) if hasattr(property.__doc__, "__get__") else o.__doc__],
    staticmethod: staticmethod.__func__.__get__, classmethod: classmethod.__func__.__get__}
# Objects of libraries that can't be pickled, and show what they are.
_READERS = {("_struct", "Struct"): lambda o: o.format, ("_json", "Scanner"): _members_of, ("_json", "Encoder"): _members_of}


_HANDLERS = {
    Mark: _of_stet,
    list: Walk._list, tuple: Walk._tuple, dict: Walk._dict, set: Walk._set, frozenset: Walk._set, types.MappingProxyType: Walk._mapping_proxy, types.CellType: Walk._cell,
    types.FunctionType: Walk._function, types.MethodType: Walk._method, types.BuiltinFunctionType: Walk._builtin, types.MethodWrapperType: Walk._slot_wrapper,
    property: Walk._property, staticmethod: Walk._static, classmethod: Walk._static, functools.cached_property: Walk._cached_property,
    functools._lru_cache_wrapper: Walk._lru, types.GenericAlias: Walk._generic, typing.TypeVar: Walk._type_var, bytearray: Walk._bytearray, memoryview: Walk._memoryview,
    contextvars.ContextVar: Walk._context_var, **{kind: Walk._descriptor for kind in _DESCRIPTORS}}


# ---- guards: is what a walk looked at still the same? ----

def _same_sequence(o, items):
    return len(o) == len(items) and all(map(is_, o, items))


def _same_dict(o, known):
    return len(o) == len(known[0]) and all(map(is_, o.values(), known[1])) and all(map(is_, o, known[0]))


def _same_cell(cell, value):
    try:
        return cell.cell_contents is value
    except ValueError:
        return value is MISSING


def _same_slot(where, value):
    member, o, kind = where
    try:
        return member.__get__(o, kind) is value
    except AttributeError:
        return value is MISSING


def _same_attributes(o, known):
    if type(o) is not known[2]:
        return False
    try:
        return _same_dict(object.__getattribute__(o, "__dict__"), known)
    except AttributeError:
        return not known[0]


def _same_function(f, known):
    return f.__code__ is known[0] and f.__defaults__ is known[1] and f.__kwdefaults__ is known[2] and _same_dict(vars(f), known[3:5]) and _same_dict(f.__annotations__, known[5:7]) \
        and f.__name__ is known[7] and f.__qualname__ is known[8] and f.__doc__ is known[9]


def _same_class(cls, known):
    return cls.__bases__ is known[2] and type(cls) is known[3] and cls.__name__ is known[4] and cls.__qualname__ is known[5] and _same_dict(vars(cls), known)


def _registry(cls):
    """All that is registered with an abstract class and those below it."""
    found, todo, seen = [], [cls], set()
    while todo:
        one = todo.pop()
        if id(one) in seen or "_abc_impl" not in vars(one):
            continue
        seen.add(id(one))
        todo.extend(type.__subclasses__(one))
        registered = [r() for r in _abc._get_dump(one)[0]]
        found.extend(c for c in registered if c is not None)
        todo.extend(c for c in registered if c is not None)
    return found


def _same_registry(cls, known):
    found = _registry(cls)
    others = sorted({f"{c.__module__}.{c.__qualname__}" for c in found if not is_user_class(c)}) if is_user_class(cls) else []
    return sum(map(is_user_class, found)) == known[0] and others == known[1]


class Graph:
    """What a function or block depends on besides its arguments, as it was at one time."""

    __slots__ = ("digest", "walk", "stable", "plain", "_names", "_guards", "_patched")

    def __init__(self, roots, ignore=frozenset(), allow_dynamic=False, before=None, large=None, lazy=None):
        for _ in range(8):
            walk = self.walk = Walk(ignore, allow_dynamic, before, large, lazy)
            roots(walk)
            walk.patches()
            if not walk.imported:
                break
        self.digest = walk.digest()
        self.stable = not walk.volatile and not walk.imported and before is None
        self.plain = self.stable and not walk.files and walk.expires is None  # its digest is all of it, and known without another walk
        self._names, self._guards, self._patched = walk.names_guard, walk.guards, walk.patched

    def stands(self):
        """Is all that the walk looked at as it was? Only of a stable graph."""
        if patches.look() is not self._patched:
            return False
        for get, name, value in self._names:
            if get(name, MISSING) is not value:
                return False
        for same, o, known in self._guards:
            if not same(o, known):
                return False
        return True


_NEVER_CHANGES = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType, types.CellType, tuple, frozenset, property, staticmethod, classmethod,
                  types.MappingProxyType, types.GenericAlias, typing.TypeVar, *_DESCRIPTORS)


class Inputs:
    """The objects that a computation was given. One of them in its result is that very object, on a hit as well: a change of it shows wherever it is used."""

    def __init__(self, *walks):
        self._walks = walks
        self._numbers = None

    def number(self, o):
        """(walk, number) of an object that can change and that the computation did not make, else None. Only while the walks live is an id an object's own."""
        if self._numbers is None:
            self._numbers = {id(x): (i, n) for i, walk in enumerate(self._walks) for n, x in enumerate(walk._keep)
                             if not isinstance(x, _NEVER_CHANGES) and (type(x).__module__, type(x).__qualname__) not in _FIXED}
        return self._numbers.get(id(o))

    def __bool__(self):
        return self.number(None) is not None or bool(self._numbers)

    def at(self, number):
        return self._walks[number[0]]._keep[number[1]]


def common(walk, graph):
    """Objects that are both among the arguments and in the graph, as bytes: `x is DEFAULT` may decide a result."""
    mine, theirs = walk.memo, graph.walk.memo
    if not mine:
        return b""
    shared = sorted((number, theirs[o]) for o, number in mine.items() if o in theirs)
    return repr(shared).encode() if shared else b""


def digest_of(*values):
    walk = Walk()
    for value in values:
        walk.add(value)
    return walk.digest()
