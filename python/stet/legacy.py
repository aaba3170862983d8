"""Caches that marimo wrote before: `__marimo__/cache/NAME/P_HASH.pickle` or `.json`.

A pickle there holds an instance of `marimo._save.cache.Cache`. It is read and written without marimo: what the file names that class is taken apart here.
"""
import io
import json
import os
import pickle
import re
from pathlib import Path

from . import formats, where
from .entry import Entry, EntryMetadata, ExecutionKey, from_millis, to_millis
from .persister import Persister

PREFIX = {"ContextExecutionPath": "X_", "ContentAddressed": "C_", "ExecutionPath": "E_", "Pure": "P_", "Deferred": "D_", "Unknown": "U_"}
_UNIX_ZERO = 62135596800000  # milliseconds from the year 1 to 1970
_CLASS = ("marimo._save.cache", "Cache")


class _Cache:
    """What is read of marimo's class: its state. (Old versions had the class in another module, or fewer fields.)"""

    def __init__(self, *args, **kwargs):
        names = ("defs", "hash", "cache_type", "stateful_refs", "hit", "meta")
        self.__dict__.update(zip(names, args), **kwargs)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module, name):
        if name == "Cache" and module in (_CLASS[0], "marimo._save.loaders"):
            return _Cache
        return super().find_class(module, name)


class LegacyPersister(Persister):
    """Entries of a `__marimo__/cache`: the block is the name that was given to the cache, the module its hash, the time that of the file.

    `extra` holds marimo's `meta` and the `cache_type`, which is a part of the file's name. There is one entry of each block and module, the newest, and no
    cleanup.
    """

    def __init__(self, cache_dir=None, *, start=None):
        if cache_dir is None:
            kind, base = where.find_base(start)
            cache_dir = (base if kind == "marimo" else base.parent / "__marimo__") / "cache"
        self.directory = Path(os.path.abspath(cache_dir))

    def __repr__(self):
        return f"LegacyPersister({os.fspath(self.directory)!r})"

    def _folder(self, block_id):
        return self.directory / re.sub(r"[^a-zA-Z0-9 _-]", "_", block_id.strip("*"))

    @staticmethod
    def _created(path):
        return _UNIX_ZERO + path.stat().st_mtime_ns // 1_000_000

    def _find(self, key, wanted):
        """The newest file of the key, with its format and cache type; or None."""
        found = []
        if not re.fullmatch(r"[A-Za-z0-9_=-]+", key.module_hash):
            return None
        for cache_type, prefix in PREFIX.items():
            for format in ("pickle", "json"):
                path = self._folder(key.block_id) / f"{prefix}{key.module_hash}.{format}"
                if wanted in ("auto", format):
                    try:
                        found.append((self._created(path), path, format, cache_type))
                    except OSError:
                        pass
        return max(found, default=None)

    def get(self, execution_key, exact_match_created_at=False, content_spec=None, **kwargs):
        if exact_match_created_at and execution_key.created_at is None:
            raise ValueError("an exact match needs execution_key.created_at")
        formats.check_options(kwargs)
        formats.check_spec(content_spec)
        found = self._find(execution_key, "auto" if content_spec is None else content_spec.get("variables", "auto"))
        if found is None:
            return None
        created, path, format, cache_type = found
        asked = execution_key.millis
        if asked and (created > asked or (exact_match_created_at and created != asked)):
            return None
        try:
            data = path.read_bytes()
        except OSError:
            return None
        if format == "pickle":
            cache = _Unpickler(io.BytesIO(data), **{k: v for k, v in kwargs.items() if k in ("fix_imports", "encoding", "errors", "buffers")}).load()
            state = dict(cache.__dict__ if hasattr(cache, "__dict__") else cache._asdict())
        else:
            state = formats.load(data, "json", kwargs)
            state.update(state.pop("key", {}))
        if state.get("hash", execution_key.module_hash) != execution_key.module_hash:
            return None
        extra = {**(state.get("meta") or {}), "cache_type": state.get("cache_type", cache_type)}
        return Entry(ExecutionKey(execution_key.block_id, execution_key.module_hash, from_millis(created)), state.get("defs", {}), extra)

    def put(self, entry, content_spec=None, **kwargs):
        key = entry.execution_key
        formats.check_put(key, content_spec, kwargs)
        if entry.variables is None:
            raise ValueError("a legacy cache holds variables, and the entry has none")
        if not re.fullmatch(r"[A-Za-z0-9_=-]+", key.module_hash):
            raise ValueError("module_hash is not a hash")
        format = "auto" if content_spec is None else content_spec.get("variables", "auto")
        format = "pickle" if format == "auto" else format
        extra = dict(entry.extra or {})
        cache_type = extra.pop("cache_type", "Pure")
        if cache_type not in PREFIX:
            raise ValueError(f"no cache type {cache_type!r}; there are {', '.join(PREFIX)}")
        state = {"defs": dict(entry.variables), "hash": key.module_hash, "cache_type": cache_type, "stateful_refs": set(), "hit": True, "meta": extra}
        if format == "pickle":
            # The class by its name, an instance of it, then the state: what pickling such an instance gives, without having the class.
            body = pickle.dumps(state, protocol=max(2, kwargs.get("protocol", pickle.HIGHEST_PROTOCOL)))
            data = body[:2] + f"c{_CLASS[0]}\n{_CLASS[1]}\n".encode() + b")\x81" + body[2:-1] + b"b."
        else:
            encoder = {k: v for k, v in kwargs.items() if k in ("skipkeys", "ensure_ascii", "check_circular", "allow_nan", "separators", "default", "sort_keys")}
            data = json.dumps({**state, "stateful_refs": []}, indent=4, **encoder).encode()
        path = self._folder(key.block_id) / f"{PREFIX[cache_type]}{key.module_hash}.{format}"
        stamp = (key.millis - _UNIX_ZERO) * 1_000_000
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            import tempfile

            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".tmp-", delete=False) as f:
                try:
                    f.write(data)
                    f.flush()
                    os.utime(f.name, ns=(stamp, stamp))
                    os.replace(f.name, path)
                except BaseException:
                    os.unlink(f.name)
                    raise
        except OSError:
            return None
        return EntryMetadata((key.block_id, key.module_hash, to_millis(key.created_at), {"variables": (None, len(data), format, None)}, -1, None, "", False))

    def cleanup(self, strategy, include_content=None, **kwargs):
        raise NotImplementedError("a legacy cache is not cleaned up; delete its files, or begin a new one with FsPersister")

    def on_exit(self):
        pass
