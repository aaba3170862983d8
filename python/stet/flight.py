"""Single flight: of those who miss the same result at the same time, one computes it, and the others find it.

Threads and coroutines of a process meet in a table. Processes of a machine meet at a file in the directory for temporary files, which is locked while one computes. A lock is gone with its
process, and where no file can be had, or two processes wait for each other, all compute: that costs time, and no result.
"""
import errno
import fcntl
import hashlib
import os
import threading

_flights, _lock = {}, threading.Lock()


class Flight:
    """A computation that is under way."""

    __slots__ = ("key", "thread", "_done", "_waiting")

    def __init__(self, key):
        self.key, self.thread = key, threading.get_ident()
        self._done, self._waiting = threading.Event(), []

    def wait(self):
        self._done.wait()

    async def wait_async(self):
        import asyncio

        loop = asyncio.get_running_loop()
        future = loop.create_future()
        with _lock:
            if self._done.is_set():
                return
            self._waiting.append((loop, future))
        await future

    def end(self):
        with _lock:
            if _flights.get(self.key) is self:
                del _flights[self.key]
            self._done.set()
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(_wake, future)
            except RuntimeError:
                pass  # that loop is closed, and nobody waits


def _wake(future):
    if not future.done():
        future.set_result(None)


def join(key):
    """(whether the caller is to compute, the flight)."""
    with _lock:
        flight = _flights.get(key)
        if flight is None:
            flight = _flights[key] = Flight(key)
            return True, flight
        return False, flight


def _forked():
    global _lock
    _lock = threading.Lock()
    _flights.clear()  # their threads are the parent's


os.register_at_fork(after_in_child=_forked)


# ---- processes ----

class FileLock:
    """The lock of one result. `try_once()`, or `wait()`, then `release()`; none of them fails."""

    def __init__(self, directory, key):
        name = hashlib.sha256("\0".join((os.fspath(directory), key.block_id, key.module_hash)).encode("utf-8", "surrogatepass")).hexdigest()
        import tempfile

        self._path = os.path.join(tempfile.gettempdir(), f"stet-{os.getuid()}", name)
        self._fd = None

    def _take(self, how):
        """True: held, or there is nothing to hold. False: another process has it."""
        while True:
            try:
                folder = os.path.dirname(self._path)
                try:
                    os.mkdir(folder, 0o700)
                except FileExistsError:
                    if os.lstat(folder).st_uid != os.getuid():
                        return True
                fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError:
                return True
            try:
                fcntl.lockf(fd, how)
                if os.fstat(fd).st_nlink:
                    self._fd = fd
                    return True
            except OSError as e:
                os.close(fd)
                return e.errno not in (errno.EACCES, errno.EAGAIN)  # EDEADLK: the other one waits for us
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)  # its owner removed it meanwhile: the next one is another file

    def try_once(self):
        return self._take(fcntl.LOCK_EX | fcntl.LOCK_NB)

    def wait(self):
        self._take(fcntl.LOCK_EX)

    async def wait_async(self):
        import asyncio

        pause = 0.001
        while not self.try_once():
            await asyncio.sleep(pause)
            pause = min(0.1, 2 * pause)

    def release(self):
        if self._fd is not None:
            try:
                os.unlink(self._path)
            except OSError:
                pass
            os.close(self._fd)
            self._fd = None
