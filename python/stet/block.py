"""The block of a `with` statement: its code, the names that it reads from outside, and those that it leaves behind."""
import __future__
import ast
import copy
import hashlib
import itertools
import linecache
import os
import types
from importlib.machinery import SourceFileLoader

from . import keys


class SourceChanged(Exception):
    """The file is not what this process loaded: its text says nothing about what runs."""


class Block:
    """`inputs`: [(name, attributes)] that may be read before the block assigns them; `imports`: what it imports, as keys.References has it; `outputs`: names that it
    assigns; `unsure`: those of them that it may leave as they were; `deleted`: names that it may leave without a value; `imported`: {name: [(level, module, name or None)]};
    `functions`: its functions and classes, which are no variables; `digest`: of its code; `first_line` and `last_line` of it."""

    def __init__(self, body, future=0, in_class=False):
        _refuse(body, in_class)
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | future
        reading = _Reading(self._flags)
        known = reading.block(body, frozenset())
        self.references = _references(body, self._flags)
        if "import *" in self.references.dynamic:
            raise ValueError("a block of persistent_cache can't import *: name what it uses, or import it outside the block")
        self.functions = [s for s in body if isinstance(s, _DEFINITIONS)]
        self.imported = {}
        for s in _statements(body):
            if isinstance(s, ast.Import):
                for a in s.names:
                    self.imported.setdefault(a.asname or a.name.partition(".")[0], []).append((0, a.name if a.asname else a.name.partition(".")[0], None))
            elif isinstance(s, ast.ImportFrom):
                for a in s.names:
                    self.imported.setdefault(a.asname or a.name, []).append((s.level, s.module or "", a.name))
            elif isinstance(s, _DEFINITIONS) and s not in self.functions:
                raise ValueError("define functions and classes outside the block of persistent_cache, or as statements of its own")
        defined = {s.name for s in self.functions}
        for s in self.functions:  # they are defined again when the block is skipped, from what its variables then are
            early = _references([s], self._flags, inner=isinstance(s, ast.ClassDef)).names
            late = sorted({n for n, _ in early} & (reading.assigned - defined - set(self.imported)))
            if late:
                raise ValueError(f"{s.name} is defined in a block of persistent_cache, and from its variable {late[0]!r}: define it outside the block")
        self.inputs = tuple(sorted((n, a) for n, a in self.references.names if n in reading.inputs))
        self.outputs = tuple(sorted(reading.assigned - defined))
        self.unsure = frozenset(self.outputs) - known
        self.deleted = frozenset(reading.deleted) - known
        self.first_line = min(n.lineno for n in (body[0], *getattr(body[0], "decorator_list", ())))
        self.last_line = body[-1].end_lineno
        self.digest = hashlib.sha256(ast.dump(ast.Module(body=body, type_ignores=[])).encode()).digest()


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_SCOPES = (*_DEFINITIONS, ast.Lambda)


def _statements(body):
    """Statements of a block that run in its scope, however deep."""
    todo = list(reversed(body))
    while todo:
        s = todo.pop()
        yield s
        if not isinstance(s, _DEFINITIONS):
            for field in ("body", "orelse", "finalbody"):
                todo.extend(reversed(getattr(s, field, [])))
            for part in (*getattr(s, "handlers", []), *getattr(s, "cases", [])):
                todo.extend(reversed(part.body))


def _refuse(body, in_class):
    """What would leave the block, or reach its variables by other ways than their names: a block that is skipped can't do it."""
    if in_class:
        for node in (n for s in body for n in ast.walk(s)):
            for name in (getattr(node, "id", None), getattr(node, "arg", None), getattr(node, "name", None), getattr(node, "asname", None), getattr(node, "rest", None), *getattr(node, "names", ())):
                if isinstance(name, str) and name.startswith("__") and not name.endswith("__"):
                    raise ValueError(f"Python gives {name!r} another name inside a class: a block of persistent_cache there can't use it as a variable")
    todo = [(s, False) for s in body]  # and whether a loop of the block's own is around it
    while todo:
        node, loop = todo.pop()
        if isinstance(node, (ast.Return, ast.Yield, ast.YieldFrom)) or (isinstance(node, (ast.Break, ast.Continue)) and not loop):
            word = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}.get(type(node), "yield")
            raise ValueError(f"line {node.lineno}: {word} leaves the block of persistent_cache, which a block that is skipped can't do: move it out of the block")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and (node.func.id == "locals" or node.func.id in ("vars", "dir") and not node.args):
            raise ValueError(f"line {node.lineno}: {node.func.id}() reads every variable: name what the block of persistent_cache uses")
        if isinstance(node, _SCOPES):
            todo.extend((d, False) for d in (*getattr(node, "decorator_list", ()), *getattr(getattr(node, "args", None), "defaults", ()), *getattr(node, "bases", ())))
            continue
        inner = loop or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    todo.append((child, loop if field == "orelse" and isinstance(node, (ast.For, ast.AsyncFor, ast.While)) else inner))


class _AsGlobal(ast.NodeTransformer):
    def visit_Nonlocal(self, node):
        return ast.copy_location(ast.Global(names=node.names), node)


def _references(body, flags, inner=False):
    """What statements refer to, by Python's own compiler: as a module of their own, in which every name of an outer scope is a global one.
    `inner`: only what runs at once, the body of a class included."""
    tree = _AsGlobal().visit(ast.Module(body=copy.deepcopy(body), type_ignores=[]))
    code = compile(ast.fix_missing_locations(tree), "<block>", "exec", flags, dont_inherit=True)
    if inner or (len(body) == 1 and isinstance(body[0], _DEFINITIONS) and inner is not None):
        bodies = [c for c in code.co_consts if isinstance(c, types.CodeType)] if inner else []
        names = set()
        for one in (code, *bodies):
            flat = one.replace(co_consts=tuple(None if isinstance(c, types.CodeType) else c for c in one.co_consts))
            names.update(keys.read_references(flat, block=True).names)
        found = keys.References()
        found.names = names
        return found
    return keys.read_references(code, block=True)


class _Reading:
    """Which names may be read before they are assigned: in doubt one counts as read, never as assigned."""

    def __init__(self, flags):
        self.inputs, self.assigned, self.deleted = set(), set(), set()
        self._flags = flags

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
            return first & second if isinstance(s, ast.If) else inner - self.deleted
        if isinstance(s, (ast.For, ast.AsyncFor)):
            known = self.expression(s.iter, known)
            self.block(s.body, self.target(s.target, known))
            self.block(s.orelse, known)
            return known - self.deleted
        if isinstance(s, (ast.With, ast.AsyncWith)):
            for item in s.items:
                known = self.expression(item.context_expr, known)
                if item.optional_vars is not None:
                    known = self.target(item.optional_vars, known)
            self.block(s.body, known)
            return known - self.deleted  # it may swallow an exception
        if isinstance(s, (ast.Try, getattr(ast, "TryStar", ast.Try))):
            after = self.block(s.orelse, self.block(s.body, known))
            for handler in s.handlers:
                inner = self.expression(handler.type, known) if handler.type is not None else known
                if handler.name:
                    self.assigned.add(handler.name)
                    self.deleted.add(handler.name)
                    inner = inner | {handler.name}
                after = after & self.block(handler.body, inner)
                after -= {handler.name}
            return (after | (self.block(s.finalbody, known) if s.finalbody else frozenset())) - (self.deleted & {h.name for h in s.handlers})
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
                    if isinstance(node, ast.MatchMapping):
                        for key in node.keys:
                            self.expression(key, known)
                if case.guard is not None:
                    inner = self.expression(case.guard, inner)
                self.block(case.body, inner)
            return known - self.deleted
        if isinstance(s, ast.AugAssign):
            if isinstance(s.target, ast.Name):
                self.read(s.target.id, known)
            known = self.expression(s.value, known)
            return self.target(s.target, known)
        if isinstance(s, (ast.Assign, ast.AnnAssign)):
            if isinstance(s, ast.AnnAssign):
                known = self.expression(s.annotation, known)
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
                elif target.id not in known:
                    raise ValueError(f"line {s.lineno}: the block of persistent_cache deletes {target.id!r}, which it did not assign: a block that is skipped can't; "
                                     "delete it outside the block")
                else:
                    self.deleted.add(target.id)
                    known = known - {target.id}
            return known
        if isinstance(s, (ast.Import, ast.ImportFrom)):
            names = {a.asname or a.name.partition(".")[0] for a in s.names}
            self.assigned |= names
            return known | names
        if isinstance(s, _DEFINITIONS):
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
        return known

    def read(self, name, known):
        if name not in known:
            self.inputs.add(name)

    def expression(self, e, known):
        if isinstance(e, ast.Name):
            if isinstance(e.ctx, ast.Load):
                self.read(e.id, known)
            return known
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
        """A scope of its own reads everything that is not local to it. What it does later counts as if it were done now."""
        found = _references([node if isinstance(node, ast.stmt) else ast.copy_location(ast.Expr(node), node)], self._flags, inner=None)
        for name, _ in found.names:
            self.read(name, known)
        mine = {node.name} if isinstance(node, _DEFINITIONS) else set()
        self.assigned.update({*found.stored, *found.assigned} - mine)


# ---- finding it ----

FUTURE = __future__.annotations.compiler_flag
_blocks = {}  # (code, its lines, instruction) to Block: code is compared by its content


def block_of(frame):
    """The block that the `with` statement begins, at which `frame` stands now."""
    at = (frame.f_code, frame.f_code.co_linetable, frame.f_lasti)
    if at not in _blocks:
        if len(_blocks) > 1000:
            _blocks.clear()
        statement, in_class = _find(frame)
        try:
            _blocks[at] = Block(statement.body, frame.f_code.co_flags & FUTURE, in_class)
        except ValueError as e:
            raise ValueError(f"{frame.f_code.co_filename}:{frame.f_lineno}: {e}") from None
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
        loaded = any(c == code and c.co_linetable == code.co_linetable for c in _codes(compile(source, file, "exec", dont_inherit=True)))
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
    return found[0], any(isinstance(n, ast.ClassDef) and any(inner is found[0] for inner in ast.walk(n)) for n in ast.walk(tree))


def _position(node):
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
