"""Persister, and the one that keeps entries in a directory."""
import json
import mmap
import os
import sys
import threading
import warnings
import weakref
from abc import ABC, abstractmethod
from pathlib import Path
from pickle import loads
from typing import Any, Mapping, Optional, Union

from . import _stet, formats, where
from .entry import CONTENT_KINDS, Entry, EntryMetadata, ExecutionKey, stored
from .errors import BusyError, ConflictError, CorruptError, DeniedError, ExecutionKeyClash, IoError, NotFoundError
from .strategy import CleanupStrategy, DefaultCleanupStrategy

ContentSpec = Mapping[str, str]

_SMALL, _SMALL_TOTAL = 16 << 10, 8 << 20  # bytes of an object, and of all, that are remembered


class StorageWarning(RuntimeWarning):
    """Something could not be stored or read; the computation itself goes on."""


class Persister(ABC):
    """Where entries are kept."""

    @abstractmethod
    def get(self, execution_key: ExecutionKey, exact_match_created_at: bool = False, content_spec: Optional[ContentSpec] = None, **kwargs: Any) -> Optional[Entry]:
        """The latest entry of the key's block and module, not younger than its `created_at` if it has one; None if there is none.

        With `exact_match_created_at` only the entry of that very time; a key without a time then is a ValueError. `content_spec` names the contents to
        read. Keyword arguments reach the unpickler or the JSON decoder. What deserialising raises is raised.
        """

    @abstractmethod
    def put(self, entry: Entry, content_spec: Optional[ContentSpec] = None, **kwargs: Any) -> Optional[EntryMetadata]:
        """Stores an entry, whose key has a time. The very same entry again is fine; another one with the same key is an ExecutionKeyClash.

        None if the storage is unavailable: it may be tried again later. Keyword arguments reach the pickler or the JSON encoder. What serialising raises is
        raised.
        """

    @abstractmethod
    def cleanup(self, strategy: CleanupStrategy, include_content: Optional[bool] = None, **kwargs: Any) -> Any:
        """Deletes the entries that the strategy names, and with `include_content` their objects, where no other entry has them."""

    @abstractmethod
    def on_exit(self) -> None:
        """To be called before a long-lived process ends."""


# Parameters of FsPersister that are options of the library, by name.
_OPTIONS = ("auto_variables_format", "object_id_mode", "entry_storage_format", "use_fresh_object_statuses", "cleanup_default_include_content",
            "cleanup_default_delete_orphan_objects", "cleanup_on_exit", "entry_merge_timeout_seconds", "max_entries_in_log", "verify", "compression",
            "max_local_bytes", "grace_days", "trash_days", "marker_days", "lock_timeout_ms", "vanished_wait_ms")


class FsPersister(Persister):
    """Entries and objects in a directory that Git, Dropbox or rsync may carry between machines; `stet persist` reads and writes the same one.

    `dir_path` is absolute, or relative to the nearest `.stet/` or `__marimo__/` upward from `start` (the notebook's directory, or the current one). A parameter that is
    not given is what the configuration says. Threads may share a persister, processes the directory; a fork opens it again by itself.
    """

    def __init__(
        self,
        dir_path: Optional[Union[str, os.PathLike]] = None,
        auto_variables_format: Optional[str] = None,
        object_id_mode: Optional[str] = None,
        entry_storage_format: Optional[str] = None,
        use_fresh_object_statuses: Optional[bool] = None,
        cleanup_default_include_content: Optional[bool] = None,
        cleanup_default_delete_orphan_objects: Optional[bool] = None,
        cleanup_on_exit: Optional[bool] = None,
        entry_merge_timeout_seconds: Optional[int] = None,
        max_entries_in_log: Optional[int] = None,
        default_cleanup_strategy: Optional[CleanupStrategy] = None,
        *,
        start: Optional[Union[str, os.PathLike]] = None,
        read_only: bool = False,
        verify: Optional[str] = None,
        compression: Optional[str] = None,
        max_local_bytes: Optional[int] = None,
        grace_days: Optional[int] = None,
        trash_days: Optional[int] = None,
        marker_days: Optional[int] = None,
        lock_timeout_ms: Optional[int] = None,
        vanished_wait_ms: Optional[int] = None,
    ):
        given = locals()
        if default_cleanup_strategy is not None and not callable(default_cleanup_strategy):
            raise TypeError("default_cleanup_strategy is called with the entries: it is not callable")
        self._options = {name: given[name] for name in _OPTIONS if given[name] is not None}
        self._place = where.find(os.fspath(dir_path) if dir_path is not None else None, start)
        self._explicit = dir_path is not None
        self._strategy = default_cleanup_strategy
        self._read_only = read_only
        self._lock = threading.Lock()
        self._handle = None
        self._generation = None
        self._closed = False
        self._warned = set()
        self._small, self._small_bytes = {}, 0
        self.last_error = None
        _persisters.add(self)
        with self._lock:
            self._open()

    # ---- the handle ----

    def _config(self):
        config = {}
        if self._place.kind == "marimo":
            config = where.marimo_config(self._place.base)
            if not self._explicit:
                dir_path = config.get("defaults", {}).get("dir_path")
                if dir_path is not None:
                    self._place = where.Place("marimo", self._place.base, dir_path)
        defaults = {**config.get("defaults", {}), **self._options}
        if self._explicit:
            defaults["dir_path"] = self._place.dir_path
        config = {**config, "defaults": defaults}
        if isinstance(self._strategy, DefaultCleanupStrategy):
            config["default_cleanup_strategy"] = self._strategy._named()
        return config

    def _open(self):
        config, place = self._config(), self._place
        own = None if self._strategy is None or isinstance(self._strategy, DefaultCleanupStrategy) else self._adapter(self._strategy, {})
        if place.kind == "stet" and where.exists("stet", place.base):
            handle = _stet.open_project(os.fspath(place.base.parent), config, self._read_only, own)
        elif place.kind == "stet":
            local = place.base / "local"
            handle = _stet.open_dir(os.fspath(place.directory), os.fspath(local / "persist"), os.fspath(local / "temp"), config, self._read_only, own)
        else:
            temp = os.fspath(place.base / "temp") if place.kind == "marimo" else None
            handle = _stet.open_dir(os.fspath(place.directory), None, temp, config, self._read_only, own)
        directory, why, settings = handle.info()
        self._auto = settings["defaults"]["auto_variables_format"]
        self._limits = settings["default_cleanup_strategy"]
        self._directory = Path(directory)
        if why and not self._read_only:
            self._warn_once("read only", f"{directory} is only read: {why}")
        self._handle, self._generation = handle, _generation
        return handle

    def _use(self):
        """The handle. A child of a fork opens its own: locks of open files are shared with the parent, and would exclude nobody."""
        if self._generation is _generation and not self._closed:
            return self._handle
        with self._lock:
            if self._closed:
                raise ValueError("the persister is closed")
            return self._handle if self._generation is _generation else self._open()

    def _use_for_writing(self):
        handle = self._use()
        if self._place.kind == "stet" and not self._read_only and not where.exists("stet", self._place.base):
            _stet.project_init(os.fspath(self._place.base.parent))
        return handle

    @property
    def directory(self) -> Path:
        """Where the entries and objects lie, or will."""
        return self._directory

    @property
    def read_only(self) -> Optional[str]:
        """Why nothing can be put, or None."""
        return self._use().info()[1]

    @property
    def default_cleanup_strategy(self) -> CleanupStrategy:
        return self._strategy if self._strategy is not None else DefaultCleanupStrategy(**self._limits)

    def close(self) -> None:
        """Deletes nothing. Calls that are under way in other threads end first."""
        with self._lock:
            if not self._closed and self._handle is not None and self._generation is _generation:
                self._handle.close()
            self._closed = True

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        return _again, (os.fspath(self._directory), self._options, self._strategy, self._read_only)

    def __repr__(self):
        return f"FsPersister({os.fspath(self._directory)!r})"

    def _warn_once(self, about, message):
        if about not in self._warned:
            self._warned.add(about)
            warnings.warn(message, StorageWarning, stacklevel=4)

    # ---- get and put ----

    def get(self, execution_key, exact_match_created_at=False, content_spec=None, **kwargs):
        return self._get(execution_key, exact_match_created_at, content_spec, kwargs, None)

    def _get(self, execution_key, exact_match_created_at, content_spec, kwargs, inputs, mapped=False):
        created = 0 if execution_key.created_at is None else execution_key.millis
        if not (exact_match_created_at or content_spec or kwargs):  # the usual case, without detours
            handle = self._handle if self._generation is _generation and not self._closed else self._use()
            raw = handle.get(execution_key.block_id, execution_key.module_hash, created, 0, None)
            if raw is None:
                return None
            contents = raw[3]
            if len(contents) == 1 and "variables" in contents:
                _, _, format, data = contents["variables"]
                if data is not None and format == "pickle":
                    return stored(raw, formats.loads(data, inputs), None, None)
        flags = 0
        if exact_match_created_at:
            if not created:
                raise ValueError("an exact match needs execution_key.created_at")
            flags = _stet.EXACT
        if kwargs:
            formats.check_options(kwargs)
        kinds = None
        if content_spec is not None:
            formats.check_spec(content_spec)
            kinds = tuple(content_spec)
        handle = self._use()
        while True:
            raw = handle.get(execution_key.block_id, execution_key.module_hash, created, flags, kinds)
            if raw is None:
                return None
            if content_spec is None or all(formats.is_of(raw[3][k][2], f) for k, f in content_spec.items()):
                values = self._values(handle, raw, kinds, kwargs, inputs, mapped)
                if values is not None:
                    return stored(raw, *values)
            if flags:
                return None
            created = raw[2] - 1  # in another format, or gone since: the next older one
            if created <= 0:
                return None

    def _variables(self, block, module):
        """The variables of the latest entry, None if there is none. A LookupError: only `get` can tell.

        Bytes of small objects are remembered. They were right when they were read, and an object is named by what is in it; whether the entry is still there is asked each time."""
        handle = self._handle if self._generation is _generation and not self._closed else self._use()
        raw = handle.get(block, module, 0, 0, ())
        if raw is None:
            return None
        if raw[5] is not None:
            raise LookupError
        content = raw[3].get("variables")
        if content is None or content[2] != "pickle":
            raise LookupError
        data = self._small.get(content[0])
        if data is not None:
            return loads(data)
        raw = handle.get(block, module, 0, _stet.NO_COUNT, ("variables",))
        if raw is None or raw[5] is not None or raw[3]["variables"][2] != "pickle" or raw[3]["variables"][3] is None:
            raise LookupError
        content = raw[3]["variables"]
        data = content[3]
        if len(data) <= _SMALL and formats.is_plain(data):
            self._small_bytes += len(data)
            if self._small_bytes > _SMALL_TOTAL:
                self._small, self._small_bytes = {}, len(data)
            self._small[content[0]] = data
        return formats.loads(data)

    def _has(self, execution_key):
        """Is there an entry? Reads none of its contents, and counts neither as a hit nor as a miss."""
        return self._use().get(execution_key.block_id, execution_key.module_hash, 0, _stet.NO_COUNT, ()) is not None

    def _values(self, handle, raw, kinds, options, inputs=None, mapped=False):
        values = []
        for kind in CONTENT_KINDS:
            content = raw[3].get(kind)
            if content is None or (kinds is not None and kind not in kinds):
                values.append(None)
                continue
            data = content[3]
            if content[2] == "pickle5" and (mapped or data is None) or content[2] == "pickle" and data is None:
                file = self._file(handle, raw, kind)
                if file is not None:
                    with file:
                        values.append(formats.load_file(file, options, inputs) if content[2] == "pickle" else
                                      formats.load_beside(file, options, inputs, memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) if mapped else None))
                    continue
            if data is None:
                try:
                    data = handle.read(content[0], content[1])
                except (CorruptError, NotFoundError):
                    return None
            values.append(formats.load(data, content[2], options, inputs))
        return values

    def _file(self, handle, raw, kind):
        """The open file of a large object, if its bytes are known to be right; None where they must be read by the library (compressed, or behind a link)."""
        path = self._directory / "objects" / raw[3][kind][0]
        try:
            file = open(path, "rb")
        except OSError:
            return None
        # The library looks at what lies there after this one was opened: if both are the same file, it is right.
        if handle.get(raw[0], raw[1], raw[2], _stet.EXACT | _stet.NO_COUNT, (kind,)) is not None:
            mine, there = os.fstat(file.fileno()), os.lstat(path)
            if (mine.st_dev, mine.st_ino, mine.st_size, mine.st_mtime_ns) == (there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns):
                return file
        file.close()
        return None

    def put(self, entry, content_spec=None, **kwargs):
        return self._put(entry, content_spec, kwargs, None)

    def _put(self, entry, content_spec, kwargs, inputs):
        key = entry.execution_key
        formats.check_put(key, content_spec, kwargs)
        contents = []
        for kind in CONTENT_KINDS:
            value = getattr(entry, kind)
            if value is None or (content_spec is not None and kind not in content_spec):
                continue
            format = "auto" if content_spec is None else content_spec[kind]
            format, value = formats.choose(kind, format, value, self._auto), dict(value) if kind == "variables" else value
            # Of a cached function or block: arrays lie beside the pickle. Others may want to read what is put here without stet.
            if inputs is not None and format == "pickle" and "numpy" in sys.modules and not {"protocol", "buffer_callback"} & set(kwargs):
                value = formats.Beside(value, kwargs, inputs)
                format = value.format
            contents.append((kind, format, value))
        if not contents:
            raise ValueError("there is nothing to put: the entry has none of the contents")
        extra = None if entry.extra is None else json.dumps(dict(entry.extra), sort_keys=True, ensure_ascii=False)
        try:
            put = self._use_for_writing().put(key.block_id, key.module_hash, key.millis)
            try:
                if extra is not None:
                    put.string("extra", extra)
                if entry.elapsed_ms is not None:
                    put.elapsed(entry.elapsed_ms)
                for kind, format, value in contents:
                    put.content(kind, format)
                    value.dump(put) if isinstance(value, formats.Beside) else formats.dump(put, value, format, kwargs, inputs)
            except BaseException:
                put.abort()
                raise
            return EntryMetadata(put.end())
        except ConflictError as e:
            raise ExecutionKeyClash(e.message, e.hint, e.details) from None
        except BusyError as e:
            self.last_error = e
            return None
        except (IoError, DeniedError) as e:
            self.last_error = e
            self._warn_once(e.message, f"an entry could not be stored: {e.message}")
            return None

    # ---- cleanup ----

    @staticmethod
    def _adapter(strategy, kwargs):
        def choose(raws):
            entries = [EntryMetadata(raw) for raw in raws]
            doomed = set(strategy(entries, **kwargs))
            return [i for i, e in enumerate(entries) if e.execution_key in doomed]

        return choose

    def cleanup(self, strategy=None, include_content=None, *, delete_orphan_objects=None, max_local_bytes=None, dry_run=False, force=False, purge=False, **kwargs):
        """Merges this machine's log and all snapshots into a new one without the entries that the strategy names (None: the default one).

        `delete_orphan_objects` looks at all objects, not only at those of entries that go, and implies content; what is deleted lies in the trash until its time is over
        unless `purge`. `dry_run` changes nothing. Returns a dict of counts and of what went or would go. Other keyword arguments are the strategy's.
        """
        if strategy is None:
            strategy = self.default_cleanup_strategy
        if not callable(strategy):
            raise TypeError("a cleanup strategy is called with the entries: it is not callable")
        cap = 0 if max_local_bytes is None else max_local_bytes
        return self._use().cleanup(self._adapter(strategy, kwargs), include_content, delete_orphan_objects, cap, dry_run, force, purge)

    def on_exit(self) -> None:
        """A cleanup with the defaults, if `cleanup_on_exit` says so."""
        self._use().on_exit()

    def tick(self) -> Optional[float]:
        """For a long-lived process: merges what is due. Seconds until it should be called again, None if nothing waits."""
        next_ms = self._use().tick()
        return None if next_ms < 0 else next_ms / 1000

    def undelete(self, block_id=None, module_hash=None, *, batch=None, dry_run=False):
        """Brings back what cleanups put into the trash: (entries, objects), how many."""
        return self._use().undelete(batch, block_id, module_hash, dry_run)

    # ---- looking ----

    def entries(self, block_id: Optional[str] = None):
        """The metadata of all entries, or of a block's, sorted by key."""
        return [EntryMetadata(raw) for raw in self._use().entries(block_id)]

    def stats(self) -> dict:
        return self._use().stats()

    def check(self, repair: bool = False):
        """Looks at every entry and object: (what, where, repaired) for each problem."""
        return self._use().check(repair)

    def pin(self, execution_key: ExecutionKey, on: bool = True) -> None:
        """Protects an entry from every strategy, on all machines."""
        self._use().mark(execution_key.block_id, execution_key.module_hash, execution_key.millis, None, on)

    def tag(self, execution_key: ExecutionKey, name: str, on: bool = True) -> None:
        """Names an entry, which protects it too."""
        self._use().mark(execution_key.block_id, execution_key.module_hash, execution_key.millis, name, on)

    def tags(self, execution_key: ExecutionKey):
        """Names of its tags; "" is the pin."""
        return self._use().marks(execution_key.block_id, execution_key.module_hash, execution_key.millis)


_generation = object()  # another one in each child of a fork
_persisters = weakref.WeakSet()


def _forked():
    global _generation
    _generation = object()
    for persister in list(_persisters):  # a thread of the parent may have held it
        persister._lock = threading.Lock()


os.register_at_fork(after_in_child=_forked)


def _again(directory, options, strategy, read_only):
    return FsPersister(directory, default_cleanup_strategy=strategy, read_only=read_only, **options)
