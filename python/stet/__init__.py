"""stet: work that was done, and that nothing has contradicted since, stands.

`persistent_cache` keeps what blocks and functions compute; `FsPersister` is the directory underneath; `Project` and `Space` are documents with transactions.
docs/python.md is the guide.
"""
from ._stet import version as __version__  # noqa: F401
from .cache import default_persister, persistent_cache
from .entry import Entry, EntryMetadata, ExecutionKey
from .errors import (BusyError, CancelledError, ConflictError, CorruptError, DeniedError, ExecutionKeyClash, FailedError, InternalError, InvalidError, IoError,
                     LimitError, NotFoundError, StetError, UnsupportedError)
from .keys import DynamicCode, Unhashable, register_hasher
from .legacy import LegacyPersister
from .persister import ContentSpec, FsPersister, Persister, StorageWarning
from .project import Commit, Project, Space, Transaction
from .repository import Dag, ExecutionHandle, NodeHandle, Repository, Uri
from .strategy import CleanupStrategy, DefaultCleanupStrategy
from .workflow import WorkflowMismatch, step, workflow

__all__ = ["BusyError", "CancelledError", "CleanupStrategy", "Commit", "ConflictError", "ContentSpec", "CorruptError", "Dag", "DefaultCleanupStrategy", "DeniedError", "DynamicCode", "Entry",
           "EntryMetadata", "ExecutionHandle", "ExecutionKey", "ExecutionKeyClash", "FailedError", "FsPersister", "InternalError", "InvalidError", "IoError", "LegacyPersister",
           "LimitError", "NodeHandle", "NotFoundError", "Persister", "Project", "Repository", "Space", "StetError", "StorageWarning", "Transaction", "Unhashable", "UnsupportedError", "Uri",
           "WorkflowMismatch", "default_persister", "persistent_cache", "register_hasher", "step", "workflow"]
