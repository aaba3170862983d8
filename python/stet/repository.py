"""Calls and their results from Python: functions that run elsewhere, known by what they are given, and alive across restarts.

    repository = stet.Repository()
    dag = repository.dag("report")
    rows = dag.literal([3, 1, 2])
    total = dag.call(stet.Uri.local("total.py"), rows)     # starts it, or finds its result
    print(total.wait())                                    # 6, or the error of the call is raised
    dag.commit(total)                                      # under the name "report", on the head main

docs/calls.md says what a call is; what can be done here can be done with `stet call` and `stet dag`, too.
"""
import json
import os
import threading
from collections import namedtuple

from . import _stet
from .errors import FailedError, InvalidError, NotFoundError

Commit = namedtuple("Commit", "id head dag changed")
Commit.__doc__ = "A commit of a repository of calls. `dag`: what stands under the name now; `changed`: False if it stood there already."

_SCHEME = "dml+exec://"


class Uri(str):
    """The address of a function: `dml+exec://ADAPTER/PATH?QUERY`."""

    __slots__ = ()

    def __new__(cls, text):
        if not text.startswith(_SCHEME) or not text[len(_SCHEME):].split("/")[0].split("?")[0]:
            raise InvalidError(f"{text!r}: the address of a function begins with {_SCHEME}ADAPTER/", "for a program on this machine: stet.Uri.local(\"train.py\")")
        return super().__new__(cls, text)

    @classmethod
    def local(cls, program=None, *args, command=None, **options):
        """A program of this machine with its arguments, or with `command=` a line for the shell. The options are those of stet-exec-local, with _ in place of -: a list gives an
        option several times, True and False are written in small letters. A script that ends in .py, .sh or .js is run by its interpreter, as by `stet call run --`."""
        from urllib.parse import quote

        if (program is None) == (command is None):
            raise InvalidError("a function has either a program or command=")
        words = [] if program is None else [os.fspath(program), *map(str, args)]
        if command is not None and args:
            raise InvalidError("command= takes no arguments")
        if words and (runs := {".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node"}.get(os.path.splitext(words[0])[1])):
            words.insert(0, runs)
        query = [("arg", w) for w in words[1:]] + ([("command", command)] if command is not None else [])
        for name, value in options.items():
            for one in value if isinstance(value, (list, tuple)) else [value]:
                query.append((name.replace("_", "-"), str(one).lower() if isinstance(one, bool) else str(one)))
        path = quote(words[0], safe="/") if words else ""
        return cls(f"{_SCHEME}stet-exec-local/{path}" + ("?" if query else "") + "&".join(f"{n}={quote(v, safe='/')}" for n, v in query))

    @property
    def adapter(self):
        return self[len(_SCHEME):].split("?")[0].split("/")[0]

    @property
    def path(self):
        from urllib.parse import unquote

        return unquote(self[len(_SCHEME):].split("?")[0].partition("/")[2])

    @property
    def query(self):
        """[(NAME, VALUE)...] in order."""
        from urllib.parse import unquote_plus

        pairs = (p.partition("=") for p in self.partition("?")[2].split("&") if p)
        return [(unquote_plus(name), unquote_plus(value)) for name, _, value in pairs]


def _ask(root, operation, words):
    """In a thread: Ctrl-C ends the waiting, and not what is waited for."""
    context, answer = _stet.context(root), []

    def run():
        try:
            answer.append((context.invoke(operation, words), None))
        except BaseException as e:
            answer.append((None, e))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except BaseException:
        context.cancel()
        thread.join()
        raise
    result, error = answer[0]
    if error is not None:
        raise error
    return result


async def _ask_async(root, operation, words):
    import asyncio  # not with the package: it takes longer than all the rest

    context = _stet.context(root)
    try:
        return await asyncio.to_thread(context.invoke, operation, words)
    except asyncio.CancelledError:
        context.cancel()
        raise


def _value_of(ok, call):
    """Its result; the failure of the call is raised as it was reported."""
    if "value" in call:
        return call["value"]
    failure = call.get("failure", call)
    message = failure.get("message") if isinstance(failure, dict) else None
    raise FailedError(message or f"the call failed: {json.dumps(failure)}", failure.get("hint", "") if isinstance(failure, dict) else "", {"id": call.get("id"), "failure": failure})


class NodeHandle:
    """A node of a repository: a literal, an imported result, or a call."""

    def __init__(self, repository, node):
        self.repository, self.node = repository, node

    def value(self):
        """What it means, as JSON. Of a call that has no result it is an error: wait for it first."""
        return self.repository._result("dag show", {"object": self.node, "value": True})["value"]

    def __eq__(self, other):
        return isinstance(other, NodeHandle) and self.node == other.node

    def __hash__(self):
        return hash(self.node)

    def __repr__(self):
        return f"{type(self).__name__}({self.node[:12]})"


class ExecutionHandle(NodeHandle):
    """A call that was started, joined or found. It goes on when this object is gone."""

    def __init__(self, repository, call):
        super().__init__(repository, call["node"])
        self.id, self.function = call["id"], Uri(call["function"])

    def status(self):
        """What `stet call show --json` says: {"state", "progress", ...}."""
        try:
            return self.repository._result("call show", {"id": self.id})
        except NotFoundError:
            if self.id != self.node:
                raise
            return {"id": self.id, "node": self.node, "function": str(self.function), "state": "pinned_hit", "cached": True}  # it came with a fetch: nobody here has tried it

    @property
    def exec_id(self):
        """The id of the record of its outcome; None while there is none."""
        return self.status().get("exec")

    def wait(self, timeout=None):
        """Its result. FailedError: the call failed, with the failure in `details`. BusyError: `timeout` seconds are over, and the call goes on."""
        return _value_of(*self.repository._ask("call wait", self._words(timeout)))

    async def wait_async(self, timeout=None):
        return _value_of(*await _ask_async(self.repository.root, "call wait", self._words(timeout)))

    def __await__(self):
        return self.wait_async().__await__()

    def _words(self, timeout):
        return {"id": self.id} | ({} if timeout is None else {"timeout": f"{max(timeout, 0.001):.3f}s"})

    def cancel(self):
        """Gives the call up and ends what runs for it; ConflictError if it has ended."""
        return self.repository._result("call cancel", {"id": self.id})

    def logs(self, stream="all"):
        """What its job has written by now: {"stdout", "stderr", "ended"}."""
        return self.repository._result("call logs", {"id": self.id, "stream": stream})


class Dag:
    """A result in the making: nodes that rest on each other, of which one is committed under `name`."""

    def __init__(self, repository, name, head="main"):
        self.repository, self.name, self.head = repository, name, head

    def literal(self, value):
        """A JSON value as a node."""
        return NodeHandle(self.repository, self.repository._result("dag put", {"value": value})["node"])

    def call(self, function, *args, cache=True, retries=None, timeout=None, remote=None, labels=()):
        """Starts a call, joins one that is under way, or finds its result. Arguments are nodes, whose values are waited for, or JSON values."""
        for a in args:
            if isinstance(a, ExecutionHandle):
                a.wait()
        words = {"function": str(Uri(function)), "arg": [f"node:{a.node}" if isinstance(a, NodeHandle) else json.dumps(a) for a in args], "cache": bool(cache), "detach": True}
        words |= {n: v for n, v in (("retries", retries), ("remote", remote), ("label", list(labels))) if v}
        if retries == 0:
            words["retries"] = 0
        if timeout is not None:
            words["timeout"] = f"{timeout:.3f}s"
        return ExecutionHandle(self.repository, self.repository._ask("call run", words)[1])

    def import_(self, name, head=None):
        """The result that was committed under this name, on this head or on another one (a commit will do)."""
        dags = self.repository.dags(head or self.head)
        if name not in dags:
            raise NotFoundError(f"{head or self.head} has no {name!r}", "stet dag list shows the names")
        record = self.repository._result("dag show", {"object": dags[name]})["record"]
        return NodeHandle(self.repository, record["root"])

    def commit(self, node, message="", name=None):
        """Puts a node under the name of this DAG. A call is waited for, and its failure raised."""
        if isinstance(node, ExecutionHandle):
            node.wait()
        elif not isinstance(node, NodeHandle):
            node = self.literal(node)
        got = self.repository._result("dag commit", {"name": name or self.name, "dag": node.node, "head": self.head, "message": message})
        return Commit(got["commit"], got["head"], got["dag"], got["changed"])

    def __repr__(self):
        return f"Dag({self.name!r})"


class Repository:
    """The calls of a project and their results. Threads may share it."""

    def __init__(self, root="."):
        self.root = _stet.project_find(os.path.abspath(root)).root()

    def dag(self, name, head="main"):
        return Dag(self, name, head)

    def dags(self, head="main"):
        """{NAME: ID} of what is committed."""
        try:
            return {d["name"]: d["dag"] for d in self._result("dag list", {"head": head})["dags"]}
        except NotFoundError:
            if head != "main":  # which is made with the first commit
                raise
            return {}

    def execution(self, id):
        """A call that was made before, in whatever process: by its id, or the beginning of it."""
        return ExecutionHandle(self, self._result("call show", {"id": id}))

    def executions(self, state="all", label=None, limit=50):
        """The newest calls; `state` is all, live, ok or failed."""
        words = {"state": state, "limit": limit} | ({} if label is None else {"label": label})
        return [ExecutionHandle(self, c) for c in self._result("call list", words)["calls"] if c["function"]]

    def _ask(self, operation, words):
        return _ask(self.root, operation, words)

    def _result(self, operation, words):
        return self._ask(operation, words)[1]

    def __repr__(self):
        return f"Repository({self.root!r})"
