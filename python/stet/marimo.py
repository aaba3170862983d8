"""A store for marimo's own caches (`mo.persistent_cache`), kept in a directory of stet.

marimo finds it by the entry point `marimo.cache.store`, which is installed with the package; nothing here is loaded before marimo asks for it:

    [tool.marimo.cache.store]
    type = "stet"
    args = {dir_path = "persist"}
"""
import atexit
import hashlib
import os
from base64 import urlsafe_b64encode

from . import _stet

from .errors import BusyError, ConflictError, DeniedError, IoError, StetError
from .persister import FsPersister

try:  # so that isinstance holds; get, put, hit and clear are all that marimo calls
    from marimo._save.stores.store import Store as _Store
except Exception:
    _Store = object


class StetStore(_Store):
    """Blobs by key, as marimo's Store. Each key is a block of its own, `marimo:KEY`, so that a cleanup, which keeps some entries of each block, keeps the latest of each key; the content kind is `blob`.

    The directory is opened when it is first used: marimo makes a store before it knows where the notebook lies."""

    def __init__(self, dir_path=None, **options):
        self._given, self._opened, self._pid = (dir_path, options), None, os.getpid()
        self._put = False
        atexit.register(self._leave)

    @property
    def persister(self):
        if self._opened is None:
            self._opened = FsPersister(self._given[0], **self._given[1])
        return self._opened

    def _leave(self):
        """What was put reaches a snapshot, so that other machines see it."""
        if self._put and self._pid == os.getpid():
            try:
                self._opened.on_exit()
            except (StetError, ValueError, OSError):
                pass  # it stays in the log, and is merged the next time

    @staticmethod
    def _key(key):
        return f"marimo:{key}", urlsafe_b64encode(hashlib.sha256(str(key).encode()).digest())[:-1].decode()

    def get(self, key):
        block, module = self._key(key)
        handle = self.persister._use()
        raw = handle.get(block, module, 0, 0, ("blob",))
        if raw is None:
            return None
        content = raw[3]["blob"]
        return content[3] if content[3] is not None else handle.read(content[0], content[1])

    def put(self, key, value):
        block, module = self._key(key)
        try:
            put = self.persister._use_for_writing().put(block, module, _stet.now())
            try:
                put.string("key", str(key))
                put.content("blob", "bytes")
                put.write(value)
            except BaseException:
                put.abort()
                raise
            put.end()
            self._put = True
            return True
        except ConflictError:
            return self.get(key) == bytes(value)
        except (BusyError, IoError, DeniedError):
            return False

    def hit(self, key):
        block, module = self._key(key)
        return self.persister._use().get(block, module, 0, _stet.NO_COUNT, ("blob",)) is not None

    def clear(self, key):
        block, module = self._key(key)

        def this_one(entries, **kwargs):
            return [e.execution_key for e in entries if e.execution_key.block_id == block and e.execution_key.module_hash == module]

        return self.persister.cleanup(this_one)["entries_removed"] > 0

    def get_batch(self, keys):
        for key in keys:
            yield key, self.get(key)

    def local_dirs(self):
        return [self.persister.directory]

    def export_keys(self):
        return []
