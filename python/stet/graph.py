"""Patterns built in Python: functions of a file as nodes, and a JSON file that `stet run` takes.

    @stet.action
    def double(value): return value * 2

    p = stet.pattern("totals", {"n": 4})
    p.result = {"two": p.add(double, {"value": p.argument["n"]})}
    p.write()

A decorated function stays what it is: it can be called and tested like any other. docs/python.md is the guide.
"""
import json
import os
import sys

from .errors import InvalidError

MODULE_OPTIONS = ("interpreter", "limits", "metadata")
NODE_OPTIONS = ("title", "description", "debounceMs", "throttleMs", "noDebounce", "onRestart", "verifier", "argumentSchema", "resultSchema", "kind", "output")


def _mark(kind, function, options):
    def mark(function):
        if not callable(function):
            raise InvalidError(f"stet.{kind} takes a function, not a {type(function).__name__}", f"write @stet.{kind} above a function of a file")
        unknown = sorted(set(options) - set(MODULE_OPTIONS) - set(NODE_OPTIONS) | {"kind"} & set(options))
        if unknown:
            raise InvalidError(f"stet.{kind} has no option {unknown[0]}", "its options are " + ", ".join(MODULE_OPTIONS + NODE_OPTIONS[:-2]))
        function.__stet_action__ = (kind, options)
        return function
    return mark if function is None else mark(function)


def action(function=None, /, **options):
    """Marks a function as an action: its result is kept, and it runs again when something has changed that it depends on."""
    return _mark("action", function, options)


def effect(function=None, /, **options):
    """Marks a function that is there for what it does. It runs whenever something that it read has changed."""
    return _mark("effect", function, options)


def handler(function=None, /, **options):
    """Marks an event handler, `function(event, ...)`. It reads and writes cells."""
    return _mark("handler", function, options)


class Reference:
    """What is known when the pattern runs: the argument, a cell, the output of a node, or a part of one."""

    __slots__ = ("_pattern", "_owner", "_path")

    def __init__(self, pattern, owner, path=()):
        self._pattern, self._owner, self._path = pattern, owner, path

    def __getitem__(self, key):
        if isinstance(key, slice) or not isinstance(key, (str, int)):
            raise InvalidError(f"{self!r} is not known while the pattern is built: it has keys and indexes only", "compute with it in an action")
        return Reference(self._pattern, self._owner, (*self._path, str(key)))

    def _unknown(self, *_):
        raise InvalidError(f"{self!r} is not known while the pattern is built: it can't be asked or compared", "compute with it in an action")

    __bool__ = __len__ = __iter__ = __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = _unknown
    __hash__ = None

    def __repr__(self):
        return f"<reference {self.text}>"

    @property
    def text(self):
        return "/".join([self._owner, *(k.replace("~", "~0").replace("/", "~1") for k in self._path)])


class _Cell:
    def __init__(self, reference):
        self.reference = reference


class _File:
    def __init__(self, target):
        self.target = target


def cell(reference):
    """An input of an action that is to be a cell, which the function reads when it wants to, and may write."""
    if not isinstance(reference, Reference):
        raise InvalidError("stet.cell takes a reference of a pattern", "p.argument, p.cells[NAME] or what p.add gives back")
    return _Cell(reference)


def file(path):
    """An input that arrives as the path of a file, or as a list of paths for a pattern of files. The content counts."""
    if not isinstance(path, (str, os.PathLike, Reference)):
        raise InvalidError(f"stet.file takes a path or the file of a node, not a {type(path).__name__}", "stet.file('data/*.csv'), stet.file(node['files']['out'])")
    return _File(path if isinstance(path, Reference) else os.fspath(path))


class _Cells:
    def __init__(self, pattern):
        self._pattern = pattern

    def __getitem__(self, name):
        if name not in self._pattern._cells:
            raise InvalidError(f"the pattern has no cell {name!r}", "name it in cells=: " + (", ".join(self._pattern._cells) or "there is none"))
        return Reference(self._pattern, name)


class Pattern:
    """A pattern that is being built. `result` is what it gives back: references in any JSON value."""

    def __init__(self, name, argument=None, *, cells=None, title=None, description=None):
        self.name, self.result = name, None
        self._default, self._cells = argument, dict(cells or {})
        self._texts = {"title": title, "description": description}
        self._nodes = []
        self._ids = {"argument", *self._cells}

    @property
    def argument(self):
        return Reference(self, "argument")

    @property
    def cells(self):
        return _Cells(self)

    def add(self, what, inputs=None, /, *, id=None, **options):
        """Adds a node, and returns a reference to its output. `what` is a decorated function, or a module as in docs/pattern-format.md. `inputs` is a dict by name, or a
        list by position."""
        inputs = {} if inputs is None else inputs
        if not isinstance(inputs, (dict, list, tuple)):
            raise InvalidError(f"the inputs of a node are a dict or a list, not a {type(inputs).__name__}", 'p.add(function, {"value": ...})')
        members, files = {}, []
        if isinstance(what, dict):
            module, hint = dict(what), str(what.get("ref") or what.get("type") or "node")
        else:
            module, members = self._python(what, options)
            hint = what.__name__
        for key, value in options.items():
            if key not in NODE_OPTIONS and (isinstance(what, dict) or key not in MODULE_OPTIONS):
                raise InvalidError(f"a node has no option {key}", "its options are " + ", ".join(MODULE_OPTIONS + NODE_OPTIONS))
            (module if key in MODULE_OPTIONS else members)[key] = self._json(value, key) if key != "output" else self._bind(value, "output")
        name = self._name(id, hint)
        if isinstance(inputs, dict):
            bound = {str(k): self._input(v, str(k), files) for k, v in inputs.items()}
        else:
            bound = [self._input(v, str(i), files) for i, v in enumerate(inputs)]
        if files and module.get("type") == "python" and not isinstance(bound, dict):
            raise InvalidError(f"node {name}: files are inputs with names", 'p.add(function, {"path": stet.file(...)})')
        if files and module.get("type") in ("python", "command"):
            module["files"] = sorted({*module.get("files", ()), *files})
        node = {"id": name, "inputs": bound, "module": module, **members}
        if module.get("handler"):
            node["stream"] = {"$": name}
        self._nodes.append(node)
        self._ids.add(name)
        return Reference(self, name)

    def _name(self, id, hint):
        if id is not None and id in self._ids:
            raise InvalidError(f"the pattern has {id!r} already", "give the node another id")
        name, count = id or hint, 2
        while name in self._ids:
            name, count = f"{hint}-{count}", count + 1
        return name

    def _python(self, function, options):
        kind, own = getattr(function, "__stet_action__", (None, {}))
        if kind is None:
            raise InvalidError(f"{getattr(function, '__name__', function)!r} is neither an action nor a module", "write @stet.action above the function, or give a module as a dict")
        name = function.__qualname__
        if "<" in name:
            raise InvalidError(f"{name}: a function inside a function can't be found by its name", "move it to the top of its file")
        path = sys.modules[function.__module__].__file__ if function.__module__ in sys.modules else None
        if not path:
            raise InvalidError(f"{name} is in no file", "put it into a file of the project")
        for key, value in own.items():
            options.setdefault(key, value)
        module = {"type": "python", "implementation": {"file": _Here(os.path.abspath(path)), "export": name}}
        if kind == "handler":
            module["handler"] = True
        return module, {"kind": "effect"} if kind == "effect" else {}

    def _input(self, value, name, files):
        if isinstance(value, _Cell):
            return {**self._bind(value.reference, name), "asCell": True}
        several = isinstance(value, (list, tuple)) and value and all(isinstance(v, _File) for v in value)
        if isinstance(value, _File) or several:
            files.append(name)
            made = [self._bind(f.target, name) if isinstance(f.target, Reference) else _Link(f.target) for f in (value if several else [value])]
            return made if several else made[0]
        return self._bind(value, name)

    def _bind(self, value, where, depth=0):
        """A binding: values as they are, references by name."""
        if isinstance(value, Reference):
            if value._pattern is not self:
                raise InvalidError(f"{where}: {value!r} belongs to another pattern", "build one pattern at a time")
            return {"$": value.text}
        if isinstance(value, (_Cell, _File)):
            raise InvalidError(f"{where}: a cell or a file is an input by itself", "take it out of the list or dict around it")
        if callable(value):
            raise InvalidError(f"{where}: a function is no value", "p.add(function, inputs) makes a node of it")
        if depth > 400:
            raise InvalidError(f"{where}: nested too deeply, or a circle")
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise InvalidError(f"{where}: the key {key!r} is no text", "keys are texts")
            made = {k: self._bind(v, f"{where}[{k!r}]", depth + 1) for k, v in value.items()}
            return {"$literal": made} if {"$", "$literal", "/"} & set(made) else made
        if isinstance(value, (list, tuple)):
            return [self._bind(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
        return self._json(value, where)

    def _json(self, value, where):
        try:
            return json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError) as e:
            raise InvalidError(f"{where}: {e}", "values of a pattern are JSON") from None

    def json(self, root):
        """The pattern as a JSON value, with files as seen from the project's directory."""
        root = os.path.realpath(root)
        made = {"pattern": 1, "name": self.name, **{k: v for k, v in self._texts.items() if v}}
        if self._default is not None:
            made["argument"] = {"default": self._json(self._default, "the argument")}
        if self._cells:
            made["cells"] = {k: {"default": self._json(v, f"cell {k}")} for k, v in self._cells.items()}
        made["nodes"] = [_placed(n, root) for n in self._nodes]
        made["result"] = self._bind({n["id"]: Reference(self, n["id"]) for n in self._nodes} if self.result is None else self.result, "the result")
        return made

    def write(self, path=None):
        """Writes the pattern for `stet run`: NAME.json in the current directory unless a path is given. Returns the path."""
        from . import where

        path = os.path.abspath(os.fspath(path) if path is not None else self.name + ".json")
        kind, base = where.find_base(os.path.dirname(path))
        if kind != "stet" or not where.exists(kind, base):
            raise InvalidError(f"{path} lies in no project", "stet init makes one")
        text = json.dumps(self.json(base.parent), indent=2, ensure_ascii=False) + "\n"
        try:
            with open(path, encoding="utf-8") as f:
                if f.read() == text:
                    return path
        except (FileNotFoundError, UnicodeDecodeError):
            pass
        beside = f"{path}.{os.getpid()}.tmp"
        try:
            with open(beside, "w", encoding="utf-8") as f:
                f.write(text)
            os.replace(beside, path)
        except BaseException:
            if os.path.exists(beside):
                os.unlink(beside)
            raise
        return path


class _Here(str):
    """The absolute path of a file with code."""


class _Link(str):
    """A path or pattern of files, as seen from the project's directory."""


def _escape(path):
    """A path as ids have it: what is no printable character, and %, by two digits for each byte."""
    return "".join("".join(f"%{b:02X}" for b in os.fsencode(c)) if c == "%" or ord(c) < 32 or ord(c) == 127 or 0xd800 <= ord(c) < 0xe000 else c for c in path)


def _placed(value, root):
    if isinstance(value, _Here):
        path = os.path.relpath(os.path.realpath(value), root)
        if path.startswith(".."):
            raise InvalidError(f"{value} lies outside of the project {root}", "actions are functions of files of the project")
        return path
    if isinstance(value, _Link):
        path = os.path.normpath(os.path.relpath(value, root) if os.path.isabs(value) else value)
        return {"/": {"link@1": {"id": ("glob:" if any(c in path for c in "*?[") else "file:") + _escape(path)}}}
    if isinstance(value, dict):
        return {k: _placed(v, root) for k, v in value.items()}
    if isinstance(value, list):
        return [_placed(v, root) for v in value]
    return value


def pattern(name, argument=None, *, cells=None, title=None, description=None):
    """Begins a pattern: `argument` is its default, `cells` are the defaults of its named cells."""
    return Pattern(name, argument, cells=cells, title=title, description=description)
