"""What is library code, by its file; and what the user put into it.

A library counts in a key by its version, because its files do not change while that stays the same. That holds only for what its files say: a program that puts a function
of its own into a library module or class (a patch) changes what the library does, wherever in the library it is used. So every module and class of the libraries that are loaded
is looked through for such things, and each key covers all that were found. Which of them have changed since the last look is told by a number that Python gives a dict with each change.
"""
import functools
import gc
import hashlib
import os
import site
import sys
import sysconfig
import types

from . import _stet

HEAP = 1 << 9  # flag of a type that a class statement made, or the like of it


def _roots():
    roots = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    roots.update(site.getsitepackages())
    roots.add(site.getusersitepackages())
    roots.add(os.path.dirname(os.path.abspath(__file__)))
    return tuple(os.path.join(os.path.realpath(r), "") for r in roots if r)


_ROOTS = _roots()


@functools.lru_cache(maxsize=4096)
def is_library_file(file):
    """Is this the file of the standard library, of an installed package, or of stet itself?"""
    if file.startswith("<frozen "):
        return True
    if file.startswith("<"):
        return False  # of exec, of a prompt
    real = os.path.realpath(file)
    return real.startswith(_ROOTS) or "/site-packages/" in real or "/dist-packages/" in real


def is_library(module):
    """Is this module, by its file, library code? What stands in sys.modules in place of a module is not."""
    if not isinstance(module, types.ModuleType):
        return False
    spec = getattr(module, "__spec__", None)
    file = getattr(module, "__file__", None) or getattr(spec, "origin", None)
    if isinstance(file, str) and file not in ("built-in", "frozen", "namespace"):
        return is_library_file(file)
    paths = getattr(module, "__path__", None)
    if paths is not None and file not in ("built-in", "frozen"):  # a namespace package
        paths = list(paths)
        return bool(paths) and all(is_library_file(os.path.join(p, "")) for p in paths)
    return module.__name__ in sys.builtin_module_names or file in ("built-in", "frozen")


def lives_in_library(o, module_name, qualname):
    """Is `o` what a library module calls by this name?"""
    module = sys.modules.get(module_name) if isinstance(module_name, str) else None
    if module is None or not isinstance(qualname, str) or not is_library(module):
        return False
    try:
        for part in qualname.split("."):
            module = module.__dict__[part] if isinstance(module, types.ModuleType) else getattr(module, part)
    except (AttributeError, KeyError):
        return False
    return module is o


@functools.lru_cache(maxsize=1024)
def package_version(top):
    """The version of an installed package, or where it has none, the hash of its files."""
    if top in sys.stdlib_module_names or top == "stet":
        return ""  # the version of Python is in each key; stet's own code decides how results are found, not what they are
    module = sys.modules.get(top)
    version = getattr(module, "__version__", None)
    if isinstance(version, str):
        return version
    import importlib.metadata

    try:
        return importlib.metadata.version(top)
    except Exception:
        pass
    h = hashlib.sha256()
    file = getattr(module, "__file__", None)
    for directory in getattr(module, "__path__", ()):
        for place, folders, files in os.walk(directory):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(files):
                h.update(os.path.relpath(os.path.join(place, name), directory).encode() + b"\0" + file_digest(os.path.join(place, name)))
    if file and not hasattr(module, "__path__"):
        h.update(file_digest(file))
    return h.hexdigest()


def file_digest(path):
    try:
        with open(path, "rb") as f:
            return hashlib.sha256(f.read()).digest()
    except OSError:
        return b"unreadable"


# ---- patches ----

# Where programs put things that say where output and reports go, and nothing about results.
_REPORTS = frozenset(("builtins._", "warnings.showwarning", "warnings._showwarnmsg_impl", "warnings.formatwarning", "threading.excepthook"))
_CONSTANTS = frozenset((str, int, bool, float, bytes, type(None), tuple, list, dict, set, frozenset, types.BuiltinFunctionType, types.ModuleType, types.WrapperDescriptorType,
                        types.MethodDescriptorType, types.GetSetDescriptorType, types.MemberDescriptorType, types.ClassMethodDescriptorType, object))
_WRAPPERS = {staticmethod: "__func__", classmethod: "__func__", types.MethodType: "__func__", functools.partial: "func", functools.partialmethod: "func",
             functools.cached_property: "func", functools._lru_cache_wrapper: "__wrapped__", functools.singledispatchmethod: "func"}


def _is_users_function(f):
    file = f.__code__.co_filename
    if not file.startswith("<"):
        return not is_library_file(file)
    if file.startswith(("<frozen ", "<attrs ")):
        return False
    # Made by exec: it belongs to the module whose variables it sees. (A named tuple gives its functions variables of their own.)
    name = f.__globals__.get("__name__")
    module = sys.modules.get(name)
    if isinstance(module, types.ModuleType) and vars(module) is f.__globals__:
        return not is_library(module)
    return not (isinstance(name, str) and name.startswith("namedtuple_"))


@functools.lru_cache(maxsize=16384)
def _is_users_class(cls):
    """By the module that it says it comes from: what a library makes without a name of its own is still the library's."""
    return bool(cls.__flags__ & HEAP) and isinstance(cls.__module__, str) and cls.__module__ in sys.modules and not is_library(sys.modules[cls.__module__])


def _is_users(value):
    """Is this the user's, or does it call what is?"""
    todo, seen = [value], set()
    while todo:
        o = todo.pop()
        kind = type(o)
        if kind in _CONSTANTS or id(o) in seen:
            continue
        seen.add(id(o))
        if kind is types.FunctionType:
            if _is_users_function(o):
                return True
            for cell in o.__closure__ or ():
                try:
                    if type(cell.cell_contents) is types.FunctionType or type(cell.cell_contents) in _WRAPPERS:
                        todo.append(cell.cell_contents)
                except ValueError:
                    pass
        elif kind in _WRAPPERS:
            todo.append(getattr(o, _WRAPPERS[kind], None))
            if kind is functools.partial:
                todo += [*o.args, *o.keywords.values()]
            elif kind is types.MethodType:
                todo.append(o.__self__)
        elif isinstance(o, property):
            todo += [o.fget, o.fset, o.fdel]
        elif isinstance(o, type):
            if _is_users_class(o):
                return True
        elif _is_users_class(kind) or any(base.__name__ == "NonCallableMock" for base in kind.__mro__[:-1]):
            return True
    return False


def _numbers_hold():
    """Does this Python give dicts such numbers?"""
    d = {}
    watched = _stet.watch((d,))
    numbers = [_stet.last_change(watched)]
    for change in (lambda: d.update(a=1), lambda: d.update(a=2), lambda: d.pop("a"), lambda: d.setdefault("b", 3), d.clear):
        change()
        numbers.append(_stet.last_change(watched))
    return numbers == sorted(set(numbers)) and _stet.last_change(watched) == numbers[-1]


class _Space:
    """The names of one module or class: those that are the user's, and how the dict was when they were looked for."""

    __slots__ = ("label", "names", "found", "watched", "change", "seen")

    def __init__(self, label, names):
        self.label, self.names, self.found, self.watched, self.change, self.seen = label, names, (), _stet.watch((names,)), None, None


class Patches:
    """`look()` returns ((MODULE.NAME, value), ...), the very same tuple as long as nothing changed."""

    def __init__(self):
        self._numbered = _numbers_hold()
        self._spaces, self._watched, self._modules = {}, None, {}
        self._last = None
        self._found = ()

    def look(self):
        if self._last is None or _stet.last_change(self._watched) != self._last:
            self._search()
        return self._found

    def _search(self):
        last = None
        for _ in range(3):  # looking may load what is lazy, or another thread may import
            last = _stet.last_change(self._watched) if self._numbered and self._watched is not None else None
            for name, module in list(sys.modules.items()):
                if isinstance(module, types.ModuleType) and id(vars(module)) not in self._spaces and name != "sys" and id(module) not in self._modules:
                    self._modules[id(module)] = module
                    if is_library(module):
                        self._add(name, vars(module))
            changed = False
            todo = list(self._spaces.values())
            while todo:
                space = todo.pop()
                if not self._stands(space):
                    changed = True
                    todo += self._scan(space)
            if not changed:
                break
            self._watched = _stet.watch((sys.modules, *(s.names for s in self._spaces.values())))
        found = sorted(((f"{s.label}.{n}", v) for s in self._spaces.values() for n, v in s.found), key=lambda pair: pair[0])
        if len(found) != len(self._found) or any(a[0] != b[0] or a[1] is not b[1] for a, b in zip(found, self._found)):
            self._found = tuple(found)
        self._last = last

    def _add(self, label, names):
        self._spaces[id(names)] = space = _Space(label, names)
        return space

    def _stands(self, space):
        if self._numbered:
            return space.change is not None and _stet.last_change(space.watched) == space.change
        return space.seen is not None and len(space.seen) == len(space.names) and all(a is b for a, b in zip(space.seen, space.names.values()))

    def _scan(self, space):
        """Looks through the names. The classes among them that were not seen yet."""
        space.change = _stet.last_change(space.watched) if self._numbered else None
        items = list(space.names.items())
        if not self._numbered:
            space.seen = [v for _, v in items]
        found, classes = [], []
        for name, value in items:
            kind = type(value)
            if kind in _CONSTANTS or not isinstance(name, str):
                continue
            if isinstance(value, type) and value.__flags__ & HEAP and not _is_users_class(value):
                names = gc.get_referents(vars(value))[0]
                if type(names) is dict and id(names) not in self._spaces:
                    classes.append(self._add(f"{value.__module__}.{value.__qualname__}", names))
            elif _is_users(value) and f"{space.label}.{name}" not in _REPORTS:
                found.append((name, value))
        space.found = tuple(found)
        return classes


patches = Patches()
