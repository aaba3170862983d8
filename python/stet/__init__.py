"""stet: work that was done, and that nothing has contradicted since, stands.

`persistent_cache` keeps what blocks and functions compute; `FsPersister` is the directory underneath; `Project` and `Space` are documents with transactions.
docs/python.md is the guide.

What a program does not use is not imported: `import stet` takes about a millisecond.
"""
TYPE_CHECKING = False  # a checker of types takes it for typing.TYPE_CHECKING
if TYPE_CHECKING:
    from ._stet import version as __version__  # noqa: F401
    from .cache import default_persister, persistent_cache  # noqa: F401
    from .entry import Entry, EntryMetadata, ExecutionKey  # noqa: F401
    from .errors import (BusyError, CancelledError, ConflictError, CorruptError, DeniedError, ExecutionKeyClash, FailedError, InternalError, InvalidError, IoError,  # noqa: F401
                         LimitError, NotFoundError, StetError, UnsupportedError)  # noqa: F401
    from .graph import Pattern, Reference, action, cell, effect, file, handler, pattern  # noqa: F401
    from .keys import DynamicCode, Unhashable, register_hasher  # noqa: F401
    from .legacy import LegacyPersister  # noqa: F401
    from .persister import ContentSpec, FsPersister, Persister, StorageWarning  # noqa: F401
    from .project import Commit, Project, Space, Transaction  # noqa: F401
    from .repository import Dag, ExecutionHandle, NodeHandle, Repository, Uri  # noqa: F401
    from .steps import WorkflowMismatch, step, workflow  # noqa: F401
    from .strategy import CleanupStrategy, DefaultCleanupStrategy  # noqa: F401

# What is imported when it is first asked for. No part is called as something that is exported.
_PARTS = {
    "_stet": (),
    "cache": ("default_persister", "persistent_cache"),
    "entry": ("Entry", "EntryMetadata", "ExecutionKey"),
    "errors": ("BusyError", "CancelledError", "ConflictError", "CorruptError", "DeniedError", "ExecutionKeyClash", "FailedError", "InternalError", "InvalidError", "IoError",
               "LimitError", "NotFoundError", "StetError", "UnsupportedError"),
    "graph": ("Pattern", "Reference", "action", "cell", "effect", "file", "handler", "pattern"),
    "keys": ("DynamicCode", "Unhashable", "register_hasher"),
    "legacy": ("LegacyPersister",),
    "persister": ("ContentSpec", "FsPersister", "Persister", "StorageWarning"),
    "project": ("Commit", "Project", "Space", "Transaction"),
    "repository": ("Dag", "ExecutionHandle", "NodeHandle", "Repository", "Uri"),
    "strategy": ("CleanupStrategy", "DefaultCleanupStrategy"),
    "steps": ("WorkflowMismatch", "step", "workflow"),
}
_MORE = ("block", "files", "flight", "formats", "function", "library", "validity", "where")
_HOMES = {name: part for part, names in _PARTS.items() for name in names}
__all__ = sorted(_HOMES)


def __getattr__(name):
    from importlib import import_module

    if name == "__version__":
        value = import_module("._stet", __name__).version
    elif name in _HOMES:
        value = getattr(import_module("." + _HOMES[name], __name__), name)
    elif name in _PARTS or name in _MORE:
        value = import_module("." + name, __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__, "__version__"})
