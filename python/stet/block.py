"""The block of a `with` statement: its code, the names that it reads from outside, and those that it leaves behind."""
import ast
import hashlib
import itertools
import linecache
import os
import types
from importlib.machinery import SourceFileLoader


class SourceChanged(Exception):
    """The file is not what this process loaded: its text says nothing about what runs."""


class Block:
    """`inputs`: [(name, attributes)] that may be read before the block assigns them; `outputs`: names that it assigns; `definitions`: its imports,
    functions and classes, which are no variables; `digest`: of its code."""

    def __init__(self, body):
        reading = _Reading()
        reading.block(body, frozenset())
        self.inputs = tuple(sorted(reading.inputs))
        definitions = [s for s in _top_level(body) if isinstance(s, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
        self.imports = [s for s in definitions if isinstance(s, (ast.Import, ast.ImportFrom))]
        self.functions = [s for s in definitions if not isinstance(s, (ast.Import, ast.ImportFrom))]
        defined = set()
        for s in self.imports:
            defined.update(a.asname or a.name.partition(".")[0] for a in s.names)
        defined.update(s.name for s in self.functions)
        self.outputs = tuple(sorted(reading.assigned - defined))
        self.digest = hashlib.sha256(ast.dump(ast.Module(body=body, type_ignores=[])).encode()).digest()


def _top_level(body):
    """Statements of a block that run in its scope, however deep."""
    for s in body:
        yield s
        if not isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for field in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(s, field, []))
            for part in (*getattr(s, "handlers", []), *getattr(s, "cases", [])):
                yield from _top_level(part.body)


class _Reading:
    """Which names may be read before they are assigned: in doubt one counts as read, never as assigned."""

    def __init__(self):
        self.inputs, self.assigned = set(), set()

    def block(self, body, known):
        """`known`: names that surely are assigned before. Those that surely are after it."""
        for s in body:
            known = self.statement(s, known)
        return known

    def statement(self, s, known):
        if isinstance(s, (ast.If, ast.While)):
            inner = self.expression(s.test, known)
            first = self.block(s.body, inner)
            second = self.block(s.orelse, inner)
            return first & second if isinstance(s, ast.If) else inner
        if isinstance(s, (ast.For, ast.AsyncFor)):
            known = self.expression(s.iter, known)
            self.block(s.body, self.target(s.target, known))
            self.block(s.orelse, known)
            return known
        if isinstance(s, (ast.With, ast.AsyncWith)):
            for item in s.items:
                known = self.expression(item.context_expr, known)
                if item.optional_vars is not None:
                    known = self.target(item.optional_vars, known)
            self.block(s.body, known)
            return known  # it may swallow an exception
        if isinstance(s, (ast.Try, getattr(ast, "TryStar", ast.Try))):
            after = self.block(s.orelse, self.block(s.body, known))
            for handler in s.handlers:
                inner = self.expression(handler.type, known) if handler.type is not None else known
                if handler.name:
                    self.assigned.add(handler.name)
                    inner = inner | {handler.name}
                after = after & self.block(handler.body, inner)
            return after | (self.block(s.finalbody, known) if s.finalbody else frozenset())
        if isinstance(s, ast.Match):
            known = self.expression(s.subject, known)
            for case in s.cases:
                inner = known
                for node in ast.walk(case.pattern):
                    name = getattr(node, "name", None) or getattr(node, "rest", None)
                    if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)) and name:
                        self.assigned.add(name)
                        inner = inner | {name}
                    if isinstance(node, (ast.MatchValue, ast.MatchClass)):
                        self.expression(node.value if isinstance(node, ast.MatchValue) else node.cls, known)
                if case.guard is not None:
                    inner = self.expression(case.guard, inner)
                self.block(case.body, inner)
            return known
        if isinstance(s, ast.AugAssign):
            if isinstance(s.target, ast.Name):
                self.read(s.target.id, (), known)
            known = self.expression(s.value, known)
            return self.target(s.target, known)
        if isinstance(s, (ast.Assign, ast.AnnAssign)):
            if s.value is not None:
                known = self.expression(s.value, known)
            elif isinstance(s.target, ast.Name):
                return known  # x: int
            for target in s.targets if isinstance(s, ast.Assign) else [s.target]:
                known = self.target(target, known)
            return known
        if isinstance(s, ast.Delete):
            for target in s.targets:
                if not isinstance(target, ast.Name):
                    known = self.expression(target, known)
            return known - {t.id for t in s.targets if isinstance(t, ast.Name)}
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            names = {a.asname or a.name.partition(".")[0] for a in s.names}
            self.assigned |= names
            return known | names
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            for part in (*s.decorator_list, *getattr(s, "bases", ()), *(k.value for k in getattr(s, "keywords", ()))):
                known = self.expression(part, known)
            self.scope(s, known)
            self.assigned.add(s.name)
            return known | {s.name}
        for part in ast.iter_child_nodes(s):
            if isinstance(part, ast.expr):
                known = self.expression(part, known)
        return known

    def target(self, t, known):
        if isinstance(t, ast.Name):
            self.assigned.add(t.id)
            return known | {t.id}
        if isinstance(t, (ast.Tuple, ast.List)):
            for part in t.elts:
                known = self.target(part, known)
            return known
        if isinstance(t, ast.Starred):
            return self.target(t.value, known)
        for part in ast.iter_child_nodes(t):  # x[i] = ..., x.a = ...: x is read, and is changed
            if isinstance(part, ast.expr):
                known = self.expression(part, known)
        if isinstance(t, (ast.Subscript, ast.Attribute)):
            root = t
            while isinstance(root, (ast.Subscript, ast.Attribute)):
                root = root.value
            if isinstance(root, ast.Name):
                self.assigned.add(root.id)
        return known

    def read(self, name, attributes, known):
        if name not in known:
            self.inputs.add((name, tuple(attributes)))

    def expression(self, e, known):
        if isinstance(e, ast.Name):
            if isinstance(e.ctx, ast.Load):
                self.read(e.id, (), known)
            return known
        if isinstance(e, ast.Attribute):
            chain, root = [], e
            while isinstance(root, ast.Attribute):
                chain.append(root.attr)
                root = root.value
            if isinstance(root, ast.Name):
                self.read(root.id, reversed(chain), known)
                return known
            return self.expression(root, known)
        if isinstance(e, ast.NamedExpr):
            return self.target(e.target, self.expression(e.value, known))
        if isinstance(e, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            self.scope(e, known)
            return known
        after = known
        for part in ast.iter_child_nodes(e):
            got = self.expression(part, after) if isinstance(part, (ast.expr, ast.keyword, ast.comprehension, ast.Slice)) else after
            # In `a and (b := 1)` the second may not be reached.
            after = after if isinstance(e, (ast.BoolOp, ast.IfExp, ast.Compare)) else got
        return after

    def scope(self, node, known):
        """Reads of a scope of its own: everything in it that is not local to it."""
        local = set()
        for n in ast.walk(node):
            if isinstance(n, ast.arg):
                local.add(n.arg)
            elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store):
                local.add(n.id)
            elif isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and n is not node:
                local.add(n.name)
            elif isinstance(n, ast.NamedExpr) and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                self.assigned.add(n.target.id)
        if isinstance(node, ast.ClassDef):
            local = set()
        for n in ast.walk(node):
            if isinstance(n, ast.Attribute):
                chain, root = [], n
                while isinstance(root, ast.Attribute):
                    chain.append(root.attr)
                    root = root.value
                if isinstance(root, ast.Name) and root.id not in local:
                    self.read(root.id, reversed(chain), known)
            elif isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in local:
                self.read(n.id, (), known)


# ---- finding it ----

_blocks = {}  # (code, instruction) to Block: code is compared by its content


def block_of(frame):
    """The block that the `with` statement begins, at which `frame` stands now."""
    at = (frame.f_code, frame.f_lasti)
    if at not in _blocks:
        if len(_blocks) > 1000:
            _blocks.clear()
        _blocks[at] = Block(_find(frame).body)
    return _blocks[at]


def _codes(code):
    yield code
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _codes(c)


def _find(frame):
    code, file = frame.f_code, frame.f_code.co_filename
    source = "".join(linecache.getlines(file, frame.f_globals))
    if not source:
        raise OSError(f"the source of {file} can't be read, and persistent_cache needs that of its block: use it as a decorator, or put the code into a file")
    try:
        tree = ast.parse(source, file)
        loaded = any(c == code for c in _codes(compile(source, file, "exec", dont_inherit=True)))
    except SyntaxError:
        raise SourceChanged(file) from None
    if not loaded and os.path.exists(file) and type(frame.f_globals.get("__loader__")) is SourceFileLoader:
        raise SourceChanged(file)
    where = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None))
    withs = [n for n in ast.walk(tree) if isinstance(n, (ast.With, ast.AsyncWith))]
    found = [n for n in withs for item in n.items if _position(item.context_expr) == where]
    if not found:  # no columns (-X no_debug_ranges), or those of the statement
        found = [n for n in withs if n.lineno <= frame.f_lineno <= n.items[-1].context_expr.end_lineno]
    if len(found) != 1:
        raise SourceChanged(file) if not found else OSError(f"{file}:{frame.f_lineno}: which `with` this is can't be told; put it on a line of its own")
    if len(found[0].items) != 1:
        raise ValueError(f"{file}:{frame.f_lineno}: persistent_cache stands alone in its `with` statement")
    head = found[0].items[0]
    if found[0].body[0].lineno <= (head.optional_vars or head.context_expr).end_lineno:
        raise ValueError(f"{file}:{frame.f_lineno}: the block of persistent_cache begins on a new line")
    return found[0]


def _position(node):
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
