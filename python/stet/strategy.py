"""Which entries go."""
from collections.abc import Collection
from typing import Any, Protocol, runtime_checkable

from . import _stet
from .entry import EntryMetadata, ExecutionKey


@runtime_checkable
class CleanupStrategy(Protocol):
    """Called by a persister with the metadata of all its entries; returns the keys of those that are deleted.

    Keys are unique and have a time. Keyword arguments of `cleanup()` that are not the persister's own are passed on. A strategy runs while the directory is locked: it may
    read from the persister, and not write to it. Entries that are pinned or tagged stay, whatever it says.
    """

    def __call__(self, entries: Collection[EntryMetadata], **kwargs: Any) -> Collection[ExecutionKey]:
        ...


class DefaultCleanupStrategy:
    """The latest entries of each block and of each module stay; -1 means no limit.

    When the contents are larger than `max_total_content_size`, the oldest entries go first, but the latest of each block only if that is not enough.
    Entries of calls (blocks named `call:...`) are met by age and size alone.
    """

    def __init__(self, max_entries_per_block: int = 3, max_entries_per_module: int = 2, max_entry_age_days: int = -1, max_total_content_size: int = -1):
        self.max_entries_per_block = self._validate(max_entries_per_block, "max_entries_per_block")
        self.max_entries_per_module = self._validate(max_entries_per_module, "max_entries_per_module")
        self.max_entry_age_days = self._validate(max_entry_age_days, "max_entry_age_days")
        self.max_total_content_size = self._validate(max_total_content_size, "max_total_content_size")
        if self.limits == (-1, -1, -1, -1):
            raise ValueError("At least one of the parameters should be positive")

    @staticmethod
    def _validate(value, name):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, not {type(value).__name__}")
        if value != -1 and not 0 < value < 2**63:
            raise ValueError(f"{name} must be -1 or a positive integer")
        return value

    @property
    def limits(self):
        return tuple(self._named().values())

    def _named(self):
        names = ("max_entries_per_block", "max_entries_per_module", "max_entry_age_days", "max_total_content_size")
        return {name: getattr(self, name) for name in names}

    def __call__(self, entries: Collection[EntryMetadata], **kwargs: Any) -> Collection[ExecutionKey]:
        entries = list(entries)
        items = [(e.execution_key.block_id, e.execution_key.module_hash, e.execution_key.millis, sum(e.content_size(k) or 0 for k in e.content_kinds()))
                 for e in entries]
        return {entries[i].execution_key for i in _stet.default_strategy(items, self._named(), _stet.now())}

    def __repr__(self):
        return f"DefaultCleanupStrategy({', '.join(f'{n}={v}' for n, v in self._named().items())})"
