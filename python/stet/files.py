"""Files that a result depends on, as a hash of what is in them."""
import hashlib
import os
import stat
import time

_known = {}  # path to (what stat says, digest)


def digest_of_files(paths):
    """Of the contents of files and of all files below directories, with their names; of a path where nothing is, that nothing is there."""
    h = hashlib.sha256()
    for path in paths:
        h.update(b"\0" + os.fsencode(path) + b"\0")
        for name, digest in _below(os.fspath(path)):
            h.update(os.fsencode(name) + b"\0" + digest)
    return h.digest()


def _below(path):
    if not os.path.isdir(path):
        yield "", _file(path)
        return
    for place, folders, files in os.walk(path):
        folders.sort()
        yield os.path.relpath(place, path) + "/", b"directory"
        for name in sorted(files):
            yield os.path.relpath(os.path.join(place, name), path), _file(os.path.join(place, name))


def _file(path):
    try:
        with open(path, "rb") as f:
            s = os.fstat(f.fileno())
            if not stat.S_ISREG(s.st_mode):
                raise ValueError(f"depends_on: {path} is neither a file nor a directory")
            about = (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
            known = _known.get(path)
            if known is not None and known[0] == about:
                return known[1]
            h = hashlib.sha256()
            while part := f.read(1 << 20):
                h.update(part)
        # A file that was written just now can be written again without another time or size.
        if time.time_ns() - max(s.st_mtime_ns, s.st_ctime_ns) > 2_000_000_000:
            _known[path] = (about, h.digest())
        return h.digest()
    except FileNotFoundError:
        return b"nothing"
