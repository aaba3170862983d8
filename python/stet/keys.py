"""What a computation depends on, as a hash: values, code, the functions it calls and the variables they use.

Two rules. A key that stays the same while a dependency changed would give back a wrong result, so whatever is not understood is an error, and what
is in doubt counts. And a key must be the same in another process, so nothing counts that depends on addresses, on the order of sets, or on which equal
objects are one and the same.

Code counts as bytecode, not as text: that is what runs, even if the file was edited since it was loaded. Hence the version of Python is in each
key. Code of the standard library and of installed packages counts by its name and the version of its package.
"""
import builtins
import copyreg
import dis
import functools
import hashlib
import importlib
import importlib.util
import os
import site
import struct
import sys
import sysconfig
import types
from base64 import urlsafe_b64encode

VERSION = b"stet key 1"


def text_of(digest):
    """43 characters of base64url."""
    return urlsafe_b64encode(digest)[:-1].decode()


# ---- library code ----

def _library_roots():
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots.update(site.getsitepackages())
    roots.add(site.getusersitepackages())
    roots.add(os.path.dirname(os.path.abspath(__file__)))
    return tuple(os.path.join(os.path.realpath(r), "") for r in roots if r)


_ROOTS = _library_roots()


@functools.lru_cache(maxsize=4096)
def _is_library_file(file):
    real = os.path.realpath(file)
    return real.startswith(_ROOTS) or "/site-packages/" in real or "/dist-packages/" in real


def is_library(module_name):
    """Does code of this module count by name and version alone?"""
    if not module_name or module_name == "__main__":
        return False
    module = sys.modules.get(module_name)
    if module is None:
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module_name.partition(".")[0] in sys.stdlib_module_names or module_name in sys.builtin_module_names
    return _is_library_file(file)


@functools.lru_cache(maxsize=1024)
def _package_version(top):
    if top in sys.stdlib_module_names:
        return ""
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    import importlib.metadata

    try:
        return importlib.metadata.version(top)
    except Exception:
        return ""


# ---- code ----

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


_codes = {}  # id to (digest, the code itself)
_references = {}  # the same for what `references` found


def references(code):
    """What code reads by name from outside: [(name, attributes that follow)], and the names of the modules that it imports."""
    known = _references.get(id(code))
    if known is None:
        if len(_references) > 10_000:  # of a process that makes functions all the time
            _references.clear()
        known = _references[id(code)] = (_read_references(code), code)
    return known[0]


def _read_references(code):
    names, imports, todo = set(), set(), [code]
    while todo:
        one = todo.pop()
        todo.extend(c for c in one.co_consts if isinstance(c, types.CodeType))
        chain = None
        for i in dis.get_instructions(one):
            if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                if chain:
                    names.add((chain[0], tuple(chain[1:])))
                chain = [i.argval]
            elif chain and i.opname in _ATTRIBUTES:
                chain.append(i.argval)
            elif i.opname not in ("CACHE", "RESUME", "PUSH_NULL"):
                if chain:
                    names.add((chain[0], tuple(chain[1:])))
                chain = None
                if i.opname == "IMPORT_NAME":
                    imports.add(i.argval)
        if chain:
            names.add((chain[0], tuple(chain[1:])))
    return tuple(sorted(names)), tuple(sorted(imports))


class Unhashable(TypeError):
    """A value that no key can be made from."""


_LEAVES = {type(None): b"N", type(...): b"E", type(NotImplemented): b"J"}
_SKIPPED = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__abstractmethods__", "_abc_impl", "__annotations__", "__firstlineno__",
                      "__static_attributes__", "__parameters__", "__orig_bases__", "__slots__", "__match_args__", "__dataclass_fields__", "__dataclass_params__"))


class Hasher:
    """One key in the making. `add(value)` any number of times, then `digest()`."""

    def __init__(self):
        self._out = bytearray()
        self._memo = {}  # id to (digest, the object, so that its id stays taken)
        self._active = {}  # id to how deep, of what is being looked at now: a cycle refers to that

    def digest(self):
        h = hashlib.sha256(VERSION + b" %d.%d " % sys.version_info[:2])
        h.update(self._out)
        return h.digest()

    def add(self, value):
        self._feed(self._out, value)

    # Leaves are written as they are; everything else as the digest of its own, once for each object.
    def _feed(self, out, o):
        kind = type(o)
        if kind is str:
            data = o.encode("utf-8", "surrogatepass")
            out += b"s%d:" % len(data)
            out += data
        elif kind is int:
            out += b"i%d:" % o if -(2**63) <= o < 2**63 else b"I" + hex(o).encode() + b":"
        elif kind is bool:
            out += b"T" if o else b"F"
        elif kind is float:
            out += b"f" + (b"nan-----" if o != o else struct.pack("<d", o))
        elif kind is bytes:
            out += b"b%d:" % len(o)
            out += o
        elif kind in _LEAVES:
            out += _LEAVES[kind]
        else:
            known = self._memo.get(id(o))
            if known is not None:
                out += b"@" + known[0]
                return
            depth = self._active.get(id(o))
            if depth is not None:
                out += b"^%d:" % (len(self._active) - depth)
                return
            self._active[id(o)] = len(self._active)
            try:
                inner = bytearray()
                self._compound(inner, o, kind)
            finally:
                del self._active[id(o)]
            digest = hashlib.sha256(inner).digest()
            self._memo[id(o)] = (digest, o)
            out += b"@" + digest

    def _all(self, out, tag, items):
        out += tag
        out += b"%d:" % len(items)
        for item in items:
            self._feed(out, item)

    def _name(self, out, tag, module, qualname):
        top = (module or "").partition(".")[0]
        self._all(out, tag, (module or "", qualname, _package_version(top) if top else ""))

    def _compound(self, out, o, kind):
        if kind is tuple:
            self._all(out, b"(", o)
        elif kind is list:
            self._all(out, b"[", tuple(o))
        elif kind is dict:
            out += b"{%d:" % len(o)
            for k, v in list(o.items()):
                self._feed(out, k)
                self._feed(out, v)
        elif kind is set or kind is frozenset:
            digests = []
            for item in o:
                one = bytearray()
                self._feed(one, item)
                digests.append(hashlib.sha256(one).digest())
            out += b"<" if kind is set else b">"
            out += b"".join(sorted(digests))
        elif kind is types.FunctionType:
            self._function(out, o)
        elif kind is types.CodeType:
            self._code(out, o)
        elif kind is types.MethodType:
            self._all(out, b"m", (o.__func__, o.__self__))
        elif kind is types.ModuleType:
            self._module(out, o)
        elif isinstance(o, type):
            self._class(out, o)
        elif kind is property:
            self._all(out, b"p", (o.fget, o.fset, o.fdel))
        elif kind in (staticmethod, classmethod):
            self._all(out, b"w", (kind.__name__, o.__func__))
        elif kind is types.BuiltinFunctionType:
            owner = o.__self__
            if owner is None or isinstance(owner, types.ModuleType):
                self._name(out, b"B", o.__module__, o.__qualname__)
            else:
                self._all(out, b"M", (owner, o.__name__))
        elif kind in (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
                      types.MemberDescriptorType, types.MethodWrapperType):
            self._all(out, b"D", (o.__qualname__ if hasattr(o, "__qualname__") else repr(o), getattr(o, "__objclass__", None)))
        elif kind is types.GenericAlias:
            self._all(out, b"A", (o.__origin__, o.__args__))
        elif kind in (bytearray, memoryview):
            self._buffer(out, memoryview(o))
        elif isinstance(getattr(o, "__wrapped__", None), types.FunctionType):  # of functools.lru_cache and the like
            self._all(out, b"W", (kind.__module__, kind.__qualname__, o.__wrapped__))
        elif not self._array(out, o):
            self._object(out, o)

    def _buffer(self, out, view):
        self._all(out, b"v", (view.format, view.shape))
        out += hashlib.sha256(view.cast("B") if view.c_contiguous and view.nbytes else view.tobytes()).digest()

    def _array(self, out, o):
        """An array that is nothing but its memory: that, with its type and shape. (Subclasses may have more to them, a mask or a unit.)"""
        kind = type(o)
        if (kind.__module__, kind.__qualname__) not in (("array", "array"), ("numpy", "ndarray")):
            return False
        try:
            view = memoryview(o)
        except (TypeError, ValueError):
            return False  # dates of numpy
        if "O" in view.format:
            return False  # addresses of objects
        self._feed(out, kind)
        self._buffer(out, view)
        return True

    def _object(self, out, o):
        """As pickle would take it apart, but by structure: pickle's own bytes depend on which equal objects are identical."""
        kind = type(o)
        reduce = copyreg.dispatch_table.get(kind)
        try:
            parts = reduce(o) if reduce is not None else o.__reduce_ex__(4)
        except Exception as e:
            raise Unhashable(f"no key can be made from a value of type {kind.__module__}.{kind.__qualname__}: {e}") from None
        if isinstance(parts, str):
            self._name(out, b"g", getattr(o, "__module__", None) or kind.__module__, parts)
            return
        parts = list(parts) + [None] * (6 - len(parts))
        for i in (3, 4):
            if parts[i] is not None:
                parts[i] = list(parts[i])
        self._all(out, b"r", tuple(parts))

    # ---- code ----

    def _code(self, out, code):
        known = _codes.get(id(code))
        if known is None:
            inner = bytearray()
            self._write_code(inner, code)
            if len(_codes) > 10_000:
                _codes.clear()
            known = _codes[id(code)] = (hashlib.sha256(inner).digest(), code)
        out += known[0]

    def _write_code(self, out, code):
        for field in (code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_consts):
            self._feed(out, field)
        self._all(out, b"c", (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags))

    def _function(self, out, f):
        cached = getattr(f, "_stet_cached", None)
        if cached is not None:  # of persistent_cache: it gives what the function inside gives
            self._all(out, b"W", ("stet",))
            self._code_and_names(out, *cached)
        elif is_library(f.__module__):
            self._name(out, b"L", f.__module__, f.__qualname__)
        else:
            self._code_and_names(out, f, frozenset())

    def _code_and_names(self, out, f, ignore):
        code, values = f.__code__, f.__defaults__ or ()
        defaults = {**dict(zip(code.co_varnames[code.co_argcount - len(values):code.co_argcount], values)), **(f.__kwdefaults__ or {})}
        out += b"d"
        self._feed(out, code)
        self._feed(out, {n: v for n, v in defaults.items() if n not in ignore})
        for name, cell in zip(code.co_freevars, f.__closure__ or ()):
            if name in ignore:
                continue
            self._feed(out, name)
            try:
                value = cell.cell_contents
            except ValueError:
                out += b"empty"  # not assigned yet
                continue
            self._feed(out, value)
        names, imports = references(code)
        self.names(out, [n for n in names if n[0] not in ignore] if ignore else names, f.__globals__)
        for name in imports:
            self._imported(out, name, f.__globals__.get("__package__"))

    def names(self, out, names, *scopes):
        """Values of names, each with the attributes that follow it: those of a module are looked up, of anything else the value itself counts."""
        for name, attributes in names:
            for scope in scopes:
                if name in scope:
                    break
            else:
                if not hasattr(builtins, name):
                    self._all(out, b"u", (name,))  # not there yet
                continue
            value, path = scope[name], [name]
            for attribute in attributes:
                if not isinstance(value, types.ModuleType) or not hasattr(value, attribute):
                    break
                value = getattr(value, attribute)
                path.append(attribute)
            self._all(out, b"n", path)
            try:
                self._feed(out, value)
            except Unhashable as e:
                raise Unhashable(f"{'.'.join(path)}: {e}") from None

    def _imported(self, out, name, package):
        """A module that a function imports when it runs. If it is the user's it counts, and so is loaded now."""
        try:
            spec = importlib.util.find_spec(name, package)
            library = spec is None or not spec.origin or spec.origin in ("built-in", "frozen") or _is_library_file(spec.origin)
            if library:
                self._name(out, b"l", name, "")
            else:
                self._feed(out, importlib.import_module(name, package))
        except Exception:
            self._all(out, b"x", (name,))

    def _module(self, out, module):
        self._name(out, b"K", module.__name__, "")
        if is_library(module.__name__):
            return
        for name, value in sorted(vars(module).items()):
            own = isinstance(value, (types.FunctionType, type)) and value.__module__ == module.__name__
            if own or (not name.startswith("__") and isinstance(value, (type(None), bool, int, float, str, bytes, tuple))):
                self._feed(out, name)
                self._feed(out, value)

    def _class(self, out, cls):
        if is_library(cls.__module__):
            self._name(out, b"C", cls.__module__, cls.__qualname__)
            return
        self._all(out, b"k", (cls.__qualname__, cls.__bases__))
        for name, value in sorted(vars(cls).items()):
            if name in _SKIPPED or isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
                continue
            self._feed(out, name)
            before = len(out)
            try:
                self._feed(out, value)
            except Unhashable:
                del out[before:]
                self._feed(out, type(value))


def digest_of(*values):
    hasher = Hasher()
    for value in values:
        hasher.add(value)
    return hasher.digest()
