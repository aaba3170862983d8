"""What is stored: execution keys, entries, and what is known of an entry without reading its contents."""
import binascii
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Optional

CONTENT_KINDS = ("variables", "output", "stderr")

_MILLISECOND = timedelta(milliseconds=1)
_ZERO = datetime.min


def to_millis(created_at: datetime) -> int:
    """UTC milliseconds since the year 1. A datetime without a time zone is in UTC."""
    if created_at.tzinfo is not None:
        created_at = created_at.astimezone(timezone.utc).replace(tzinfo=None)
    return (created_at - _ZERO) // _MILLISECOND


def from_millis(millis: int) -> datetime:
    return _ZERO + timedelta(milliseconds=millis)


@dataclass(frozen=True)
class ExecutionKey:
    """One execution of a block of code: the block, the hash of the block and of all that it depends on, and when it began.

    `created_at` is in UTC and has milliseconds: a datetime with a time zone is converted, one without is taken as UTC, and what is handed
    out has none. `module_hash` is a SHA-256 as 43 characters of base64url; 64 hexadecimal digits are taken, too.
    """
    block_id: str
    module_hash: str
    created_at: Optional[datetime] = None

    def __post_init__(self):
        at = self.created_at
        if at is not None and (at.tzinfo is not None or at.microsecond % 1000):
            object.__setattr__(self, "created_at", from_millis(to_millis(at)))
        if len(self.module_hash) == 64:
            try:
                object.__setattr__(self, "module_hash", urlsafe_b64encode(binascii.unhexlify(self.module_hash))[:-1].decode())
            except binascii.Error:
                pass

    @property
    def millis(self) -> int:
        """`created_at` as it is stored, 0 if there is none."""
        return 0 if self.created_at is None else to_millis(self.created_at)


@dataclass(frozen=True)
class Entry:
    """An execution key and what the execution left: Python objects, not yet serialised or deserialised again.

    `variables` maps names to values. `extra` is small and of JSON types; it lies with the entry, not in an object. `elapsed_ms`, what the execution
    took, makes the statistics of time saved.
    """
    execution_key: ExecutionKey
    variables: Optional[Mapping[str, Any]] = None
    extra: Optional[Mapping[str, Any]] = None
    output: Any = None
    stderr: Any = None
    elapsed_ms: Optional[int] = None


def stored(raw, variables, output, stderr):
    """The Entry of what the library handed out. Made without __init__: its parts are in order, and frozen dataclasses are slow to make."""
    key = object.__new__(ExecutionKey)
    key.__dict__.update(block_id=raw[0], module_hash=raw[1], created_at=_ZERO + timedelta(0, 0, 0, raw[2]))
    entry = object.__new__(Entry)
    entry.__dict__.update(execution_key=key, variables=variables, extra=None if raw[5] is None else json.loads(raw[5]), output=output, stderr=stderr,
                          elapsed_ms=None if raw[4] < 0 else raw[4])
    return entry


class EntryMetadata:
    """What is known of an entry without its contents: their sizes, formats and object ids. The contents themselves may be gone."""

    __slots__ = ("_raw", "_key")

    def __init__(self, raw):
        self._raw = raw
        self._key = None

    @property
    def execution_key(self) -> ExecutionKey:
        if self._key is None:
            self._key = ExecutionKey(self._raw[0], self._raw[1], from_millis(self._raw[2]))
        return self._key

    @property
    def created_at(self) -> datetime:
        return self.execution_key.created_at

    def content_kinds(self):
        return tuple(self._raw[3])

    def has_content(self, content_kind: str) -> bool:
        return content_kind in self._raw[3]

    def content_size(self, kind: str) -> Optional[int]:
        content = self._raw[3].get(kind)
        return None if content is None else content[1]

    def content_format(self, kind: str) -> Optional[str]:
        content = self._raw[3].get(kind)
        return None if content is None else content[2]

    def content_object_id(self, kind: str) -> Optional[str]:
        content = self._raw[3].get(kind)
        return None if content is None else content[0]

    @property
    def total_size(self) -> int:
        return sum(content[1] for content in self._raw[3].values())

    @property
    def elapsed_ms(self) -> Optional[int]:
        return None if self._raw[4] < 0 else self._raw[4]

    @property
    def extra(self) -> Optional[Mapping[str, Any]]:
        return None if self._raw[5] is None else json.loads(self._raw[5])

    @property
    def entry_hash(self) -> str:
        return self._raw[6]

    @property
    def in_log(self) -> bool:
        """Not in a snapshot yet: other machines do not see it."""
        return self._raw[7]

    def __eq__(self, other):
        return isinstance(other, EntryMetadata) and self.execution_key == other.execution_key and self.entry_hash == other.entry_hash

    def __hash__(self):
        return hash((self._raw[0], self._raw[1], self._raw[2]))

    def __repr__(self):
        return f"EntryMetadata({self.execution_key!r}, {', '.join(self._raw[3])})"
