"""Projects, spaces and documents: stet inside a Python process, as sqlite3 is.

    project = stet.Project.find()
    space = project.space()
    space.set("config", {"theme": "dark", "visits": 1})
    space.transact(lambda tx: tx.set("config/visits", tx.get("config/visits") + 1))

A cell is addressed by text, "ID[/KEY...]", with ~1 for a slash and ~0 for a tilde in id and keys. What a commit has acknowledged survives a power cut.
Threads may share a project: its calls wait for each other.
"""
import os
import threading
import time
from collections import namedtuple

from . import _stet
from .errors import NotFoundError

Commit = namedtuple("Commit", "seq changed replayed")
Commit.__doc__ = "`seq`: of this commit, or of the space if there was nothing to change; `replayed`: the answer to an earlier commit of its session."

_NONE = object()


class _Handle:
    """Something that is open, and closed with its `with`. Its lock is that of its project."""

    def close(self):
        with self._lock:
            self._raw.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


class Project(_Handle):
    """A directory with `.stet/` in it."""

    def __init__(self, root="."):
        self._raw = _stet.project_open(os.path.abspath(root))
        self._lock = threading.RLock()
        self.root = self._raw.root()

    @classmethod
    def find(cls, start="."):
        """The nearest project upward; NotFoundError if there is none."""
        return cls(_stet.project_find(os.path.abspath(start)).root())

    @classmethod
    def init(cls, directory="."):
        """Makes `directory` a project, if it is none yet, and opens it."""
        _stet.project_init(os.path.abspath(directory))
        return cls(directory)

    def space(self, name="main", *, read_only=False, must_exist=False):
        return Space(self, name, (1 if read_only else 0) | (2 if must_exist else 0))

    def run(self, pattern=None, *, piece=None, set=None, demand=None, jobs=0, stop_on_failure=False, retry_failed=True, space=None, branch=None, scope=None):
        """Runs a pattern (a path) or the piece of that name until everything that is asked for stands: what `stet run --json` prints, as a dict.

        Actions that failed before run again, unless retry_failed is False. Failed actions are counted and listed, not raised. Ctrl-C ends the run as it ends `stet run`: what was done by then is stored.
        """
        with self._lock:
            return self._raw.run(space, branch, None if pattern is None else os.fspath(pattern), piece, set, demand, jobs, stop_on_failure, retry_failed, scope)

    def send(self, piece, stream, value=None, *, id=None, space=None, branch=None, scope=None):
        """Sends an event to a stream of a piece: (applied, seq, id). With an id it is applied once, however often it is sent."""
        with self._lock:
            return self._raw.send(space, branch, piece, stream, value, id, scope)

    def __repr__(self):
        return f"Project({self.root!r})"


class Space(_Handle):
    """One file of JSON documents with one sequence."""

    def __init__(self, project, name, flags):
        self.project, self.name, self._flags = project, name, flags
        self._lock = project._lock
        with self._lock:
            self._raw = project._raw.space(name, flags)

    @property
    def seq(self):
        """The sequence of the newest commit by anybody, 0 in a new space."""
        with self._lock:
            return self._raw.seq()

    @property
    def uuid(self):
        with self._lock:
            return self._raw.uuid()

    def get(self, cell, default=_NONE, *, at=-1, scope=None, branch=None):
        """The value at a cell, now or at a past sequence. NotFoundError if nothing is there and no default is given."""
        with self._lock:
            try:
                return self._raw.get(branch, cell, scope, at)
            except NotFoundError:
                if default is _NONE:
                    raise
                return default

    def set(self, cell, value, *, scope=None, branch=None):
        return self.transact(lambda tx: tx.set(cell, value, scope=scope), branch=branch)[1]

    def patch(self, id, operations, *, scope=None, branch=None):
        """Patch operations on a document, all or none: [{"op": "increment", "path": "/n"}, ...]."""
        return self.transact(lambda tx: tx.patch(id, operations, scope=scope), branch=branch)[1]

    def delete(self, id, *, scope=None, branch=None):
        return self.transact(lambda tx: tx.delete(id, scope=scope), branch=branch)[1]

    def transact(self, function, *, branch=None):
        """Calls `function(tx)` and commits, again if somebody else changed what it read: (what it returned, Commit). An exception of its own aborts."""
        with self._lock:
            answer, commit = self._raw.transact(branch, lambda raw: function(Transaction(raw)))
            return answer, Commit(*commit)

    def begin(self, *, branch=None):
        """A transaction of one attempt, for `with`: committed at its end, aborted by an exception. ConflictError if somebody was faster."""
        with self._lock:
            return Transaction(self._raw.begin(branch), self._lock)

    def changes(self, cell, after=0, *, before=0, limit=1000, scope=None, branch=None):
        """Changes that touch a cell since a sequence, newest first: [{"seq", "path", "kind"}]."""
        with self._lock:
            return self._raw.changes(branch, cell, scope, after, before, limit)

    def watch(self, cell=None, *, after=-1, timeout=None, scope=None, branch=None):
        """Commits of any process that touch a cell (None: any), as they come, each once: {"seq", "time", "branch", "changes"}.

        `after`: from this sequence on; -1: from now on. Ends when nothing came for `timeout` seconds.
        """
        with Project(self.project.root) as project:  # its own: it waits, and others go on
            space = project.space(self.name, must_exist=True)
            follower = space._raw.follow(branch, cell, scope, self.seq if after < 0 else after)
            try:
                last = time.monotonic()
                while True:
                    left = 0.2 if timeout is None else min(0.2, last + timeout - time.monotonic())
                    event = follower.next(max(0, int(left * 1000)))  # in between Python looks for signals
                    if event is not None:
                        yield event
                        last = time.monotonic()
                    elif timeout is not None and time.monotonic() >= last + timeout:
                        return
            finally:
                follower.close()
                space.close()

    def branch(self, name, *, parent=None, at=-1):
        """Makes a branch, which sees its parent as of `at` (-1: now) and keeps its own changes."""
        with self._lock:
            self._raw.branch(name, parent, at, True)

    def delete_branch(self, name):
        with self._lock:
            self._raw.branch(name, None, -1, False)

    def __repr__(self):
        return f"Space({self.name!r} of {self.project.root!r})"


class Transaction:
    """Reads see one snapshot and the transaction's own writes."""

    def __init__(self, raw, lock=None):
        self._raw, self._lock = raw, lock
        self.commit_result = None

    def get(self, cell, default=_NONE, *, scope=None, shallow=False):
        """The value at a cell, recorded as a read. `shallow`: of its type, keys, length or scalar alone."""
        try:
            return self._raw.get(cell, scope, shallow)
        except NotFoundError:
            if default is _NONE:
                raise
            return default

    def set(self, cell, value, *, scope=None):
        self._raw.set(cell, scope, value)

    def patch(self, id, operations, *, scope=None):
        self._raw.patch(id, scope, operations)

    def delete(self, id, *, scope=None):
        self._raw.delete(id, scope)

    def require_absent(self, id, *, scope=None):
        """The commit is a conflict if the document is there."""
        self._raw.require(id, scope, None)

    def require_hash(self, id, sha256, *, scope=None):
        """The commit is a conflict unless this is the SHA-256 of the canonical text of the document's value."""
        self._raw.require(id, scope, sha256)

    def session(self, name, local):
        """Names the commit: the same again does nothing more, and gets the first answer."""
        self._raw.session(name, local)

    def commit(self):
        self.commit_result = Commit(*self._raw.commit())
        return self.commit_result

    def abort(self):
        self._raw.abort()

    def __enter__(self):
        if self._lock is not None:
            self._lock.acquire()
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None:
                self.commit()
            else:
                self.abort()
        finally:
            if self._lock is not None:
                self._lock.release()
        return False
