"""Files that a result depends on, as a hash of what is in them."""
import hashlib
import os
import stat
import time

_known = {}  # path to (what stat says, digest)


def digest_of_path(path):
    """Of the contents of a file, or of all files below a directory with their names, links included with where they lead; where nothing is, of that."""
    h = hashlib.sha256()
    for name, digest in _below(os.fspath(path)):
        name = os.fsencode(name)
        h.update(b"%d:%b%d:%b" % (len(name), name, len(digest), digest))
    return h.digest()


_TICK = 20_000_000  # nanoseconds: times of files are behind the clock by so much at most


def times_of_path(path, settle=False):
    """What the file system says of a path and all below it: something else if a content was changed since, also if it was changed back. What was changed just now could be
    changed again without another time: `settle` waits until that can't be."""
    out, todo, around = [], [os.fsdecode(os.fspath(path))], set()
    while todo:
        at = todo.pop()
        try:
            own, s = os.lstat(at), os.stat(at)
            while settle and 0 <= time.time_ns() - s.st_ctime_ns <= _TICK:
                time.sleep(_TICK / 1e9)
                s = os.stat(at)
        except OSError:
            out.append((at, None))
            continue
        out.append((at, own.st_ino, own.st_ctime_ns, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns))
        if stat.S_ISDIR(s.st_mode) and (s.st_dev, s.st_ino) not in around:
            around.add((s.st_dev, s.st_ino))
            todo += [os.path.join(at, n) for n in sorted(os.listdir(at))]
    return out


def _below(top):
    todo = [(os.fsdecode(top), "", ())]  # path, name below the top, the directories around it
    while todo:
        path, name, around = todo.pop()
        try:
            link = os.readlink(path)
            yield name + "@", os.fsencode(link)
        except OSError:
            pass
        try:
            s = os.stat(path)
        except OSError as e:
            yield name, f"nothing, {e.errno}".encode()
            continue
        if stat.S_ISREG(s.st_mode):
            # Whether it is executable counts, and nothing else of its mode: that is what travels with Git.
            yield name, _file(path) + (b"x" if s.st_mode & stat.S_IXUSR else b"")
        elif not stat.S_ISDIR(s.st_mode):
            if not around:
                raise ValueError(f"depends_on: {path} is neither a file nor a directory")
            yield name, b"kind %d" % stat.S_IFMT(s.st_mode)
        elif (s.st_dev, s.st_ino) in around:
            yield name + "/", b"a directory around it"  # a link upward
        else:
            yield name + "/", b"directory"
            todo += [(os.path.join(path, n), f"{name}/{n}", (*around, (s.st_dev, s.st_ino))) for n in sorted(os.listdir(path), reverse=True)]


def _file(path):
    try:
        with open(path, "rb") as f:
            s = os.fstat(f.fileno())
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
