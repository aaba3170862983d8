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


def stamp_of_path(path):
    """Of what stat says of a file, or of all that is below a directory. It changes with each change, also with one that is taken back."""
    h, todo = hashlib.sha256(), [os.fsdecode(os.fspath(path))]
    seen = set()
    while todo:
        path = todo.pop()
        for look in (os.lstat, os.stat):
            try:
                s = look(path)
            except OSError as e:
                h.update(b"nothing %d;" % (e.errno or 0))
                continue
            h.update(b"%d %d %d %d %d %d;" % (s.st_dev, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns))
            if look is os.stat and stat.S_ISDIR(s.st_mode) and (s.st_dev, s.st_ino) not in seen:
                seen.add((s.st_dev, s.st_ino))
                todo += [os.path.join(path, n) for n in sorted(os.listdir(path))]
    return h.digest()


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
