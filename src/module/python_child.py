"""python_child.py - the process that runs Python actions (src/module/python.h describes the conversation).

stet starts it with the text of this file, the project's directory and the file with the functions. It imports the file once, and forks for each action. Every file of the project that it imports or opens is told to
stet, and so is every place of the project where it looked for a module in vain.
"""
import sys
sys.path[:] = [p for p in sys.path if p]  # the directory it was started in must not hide a module of Python's
bare = set(sys.modules)
import _imp
import _thread
import hashlib
import json
import os
import resource
import select
import signal
import _frozen_importlib_external as external
from _frozen_importlib import ModuleSpec

ROOT, FILE = sys.argv[1:3]
MAX_RESULT = 64 << 20
MAX_DEPTH = 500
INSIDE = "" if ROOT == "/" else ROOT
SUFFIXES = _imp.extension_suffixes()
# Modules that are needed here, and of which a bare interpreter knows nothing, are the user's to hide: see forget().
OURS = set(sys.modules) - bare

wire = os.dup(0)
nothing = os.open("/dev/null", os.O_RDONLY)
os.dup2(nothing, 0)
os.close(nothing)


def send(message):
    body = json.dumps(message).encode()
    data = memoryview(len(body).to_bytes(4, "big") + body)
    while data:
        data = data[os.write(wire, data):]


def exactly(count):
    parts = []
    while count > 0:
        part = os.read(wire, min(count, 1 << 20))
        if not part:
            os._exit(0)  # stet is gone
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def receive():
    return json.loads(exactly(int.from_bytes(exactly(4), "big")))


# -- What is read -----------------------------------------------------------------------------------------------------

looks = {}        # path: the hash of what was read, None for nothing, "" for something else
told = set()      # those that stet knows of in this action
busy = set()      # threads that are in here: what they open counts for nothing
action = None     # what runs, in the process of an action
me = 0            # that process
turn = _thread.allocate_lock()


class Refused(PermissionError):
    pass


def ask(message):
    """Asks stet, and returns the answer. One thread at a time."""
    if os.getpid() != me:
        raise Refused("a process that an action starts can't use the action's cells and inputs")
    with turn:
        send(message)
        answer = receive()
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


def note(pairs):
    new = [(path, state) for path, state in pairs if path not in looks or looks[path] != state]
    if not new:
        return
    looks.update(new)
    if action is not None and os.getpid() == me and not action["handler"]:
        refused = ask({"op": "look", "looks": new, "lazy": True}).get("refused")
        if refused:
            raise Refused(13, refused)


def print_of(path):
    try:
        with open(path, "rb") as f:
            h = hashlib.sha256()
            while True:
                part = f.read(1 << 20)
                if not part:
                    return h.hexdigest()
                h.update(part)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return ""


def inside(path):
    return path.startswith(INSIDE + "/") and not path.startswith(LIBRARIES)


class Finder:
    """Finds modules in one directory of the project, and tells where it looked. Neither compiled files nor extension
    modules count: which source they were made of is not known."""

    def __init__(self, directory):
        directory = os.path.abspath(directory)
        if not inside(directory + "/"):
            raise ImportError
        self.directory = directory

    def invalidate_caches(self):
        pass

    def find_spec(self, name, target=None):
        base = os.path.join(self.directory, name.rpartition(".")[2])
        mine = enter()
        try:
            directory = os.path.isdir(base)
            seen = []
            found = None
            for path in ([base + "/__init__.py"] if directory else []) + [base + ".py"]:
                data, state = content(path)
                seen.append((path, state))
                if data is not None:
                    found = path, data
                    break
            if not directory:
                seen.append((base, None))
            note(seen)
        finally:
            leave(mine)
        if found:
            path, data = found
            return external.spec_from_file_location(name, path, loader=Loader(name, path, data),
                                                    submodule_search_locations=[base] if directory and path != base + ".py" else None)
        if directory:
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [base]
            return spec
        return None


def content(path):
    """The bytes of a module's file, and its state as in looks."""
    try:
        with open(path, "rb") as f:
            data = f.read()
    except (FileNotFoundError, NotADirectoryError):
        return None, None
    except IsADirectoryError:
        return None, ""
    return data, hashlib.sha256(data).hexdigest()


class Loader(external.SourceFileLoader):
    """Compiles what was read when the module was found: a compiled file may be that of another text."""

    def __init__(self, name, path, data):
        super().__init__(name, path)
        self.data = data

    def get_code(self, fullname):
        return compile(self.data, self.path, "exec", dont_inherit=True)


class Missing:
    """The last one to be asked for a module: none is there. One that is installed later changes that."""

    def find_spec(name, path=None, target=None):
        if path is None and name not in getattr(sys, "stdlib_module_names", ()):
            mine = enter()
            try:
                note([(os.path.join(d, name) + s, None) for d in SITES for s in ["", ".py"] + SUFFIXES])
            finally:
                leave(mine)
        return None


def enter():
    """From here on this thread's files are ours. True: it was not in here before."""
    ident = _thread.get_ident()
    if ident in busy:
        return False
    busy.add(ident)
    return True


def leave(mine):
    if mine:
        busy.discard(_thread.get_ident())


seen_tops = {name.partition(".")[0] for name in bare}  # what site has imported comes with the interpreter


def libraries():
    """Tells of the distributions that imported modules belong to."""
    new = []
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top in seen_tops or name != top:
            continue
        spec = getattr(module, "__spec__", None)
        places = [p for p in [getattr(spec, "origin", None)] + list(getattr(spec, "submodule_search_locations", None) or [])
                  if isinstance(p, str)]
        for number, site in enumerate(SITES):
            if any(p.startswith(site + "/") for p in places):
                seen_tops.add(top)
                new += [(os.path.join(d, top) + s, None) for d in SITES[:number] for s in ["", ".py"] + SUFFIXES
                        if not any(p.startswith(os.path.join(d, top)) for p in places)]
                new += distributions(site, top)
    note([(path, print_of(path) if state == "?" else state) for path, state in new])


def plain_name(name):
    return name.lower().replace("-", "_").replace(".", "_")


def distributions(site, top):
    try:
        infos = [e for e in sorted(os.listdir(site)) if e.endswith((".dist-info", ".egg-info"))]
    except OSError:
        infos = []
    chosen = [e for e in infos if plain_name(e.partition("-")[0]) == plain_name(top)] or \
        [e for e in infos if top in provided(os.path.join(site, e))]
    if not chosen:  # of no distribution: file by file
        return [(m.__file__, "?") for n, m in list(sys.modules.items())
                if n.partition(".")[0] == top and isinstance(getattr(m, "__file__", None), str)]
    at = []
    for e in chosen:
        path = os.path.join(site, e)
        inner = [os.path.join(path, n) for n in ("RECORD", "METADATA", "PKG-INFO")]
        at.append((next((p for p in inner if os.path.isfile(p)), path), "?"))
    return at


def provided(info):
    for name in ("top_level.txt", "RECORD"):
        try:
            with open(os.path.join(info, name), encoding="utf-8", errors="replace") as f:
                return {line.partition(",")[0].partition("/")[0].strip().partition(".")[0] for line in f}
        except OSError:
            pass
    return set()


WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = {"os.remove": 1, "os.rename": 2, "os.mkdir": 1, "os.rmdir": 1, "os.link": 2, "os.symlink": 2, "os.truncate": 1,
           "os.chmod": 1, "os.chown": 1, "os.utime": 1}
LISTS = {"os.listdir", "os.scandir"}
STARTS = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.exec", "os.spawn", "os.fork", "os.forkpty"}


def place(path):
    """The path of a file of the project, with links before it followed; None: it is elsewhere."""
    if isinstance(path, int) or path is None:
        return None
    path = os.fsdecode(path)
    full = os.path.join(os.getcwd(), path)
    if "/../" in full or full.endswith("/.."):
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
    full = os.path.normpath(full)
    if (full + "/").startswith(LIBRARIES):
        return None
    if not inside(full):
        full = os.path.realpath(full)
    return full if inside(full) or full == ROOT else None


def watch(event, args):
    """What Python itself reports (PEP 578). A file of the project that is opened is a read; what could not be recorded is
    refused."""
    if event == "open":
        path, mode, flags = args
        writes = bool(flags & WRITES) if isinstance(flags, int) else bool(mode and set(mode) & set("wax+"))
    elif event == "sqlite3.connect":
        path, writes = args[0], False
        if path == ":memory:" or path == "" or path == b":memory:":
            return
    elif event in CHANGES or event in LISTS or event in STARTS:
        path, writes = None, False
    else:
        return
    if me and os.getpid() != me or not enter():
        return
    try:
        if event in STARTS:
            if not free():
                raise Refused(13, "%s: a Python action starts no program, because what the program reads is not known; "
                              "use a command, or an effect" % event)
            return
        if event in LISTS:
            full = place(args[0] if args and args[0] is not None else ".")
            if full and not free():
                raise Refused(13, "a Python action lists no directory of the project; name the files in `files`, with a "
                              "pattern for example", os.fspath(args[0] or "."))
            return
        if event in CHANGES:
            for path in args[:CHANGES[event]]:
                if place(path) and not free():
                    raise Refused(13, "a Python action changes no file of the project; return the value, or use a "
                                  "command, or an effect", os.fspath(path))
            return
        full = place(path)
        if full is None or full == ROOT:
            return
        if full.startswith(ROOT + "/.stet/"):
            raise Refused(13, "it is a file of stet's", os.fspath(path))
        if writes:
            if not free():
                raise Refused(13, "a Python action writes no file of the project; return the value, or use a command, or "
                              "an effect", os.fspath(path))
            return
        if action is None:
            note([(full, print_of(full))])
        elif full not in told and not action["handler"]:
            told.add(full)
            refused = ask({"op": "look", "looks": [[full, looks[full] if full in looks else "?"]]}).get("refused")
            if refused:
                raise Refused(13, refused, os.fspath(path))
    finally:
        leave(True)


def free():
    return action is not None and action["free"]


# -- The functions ----------------------------------------------------------------------------------------------------

def load():
    """Imports the file: under the name that its packages give it, with the directory above them first in sys.path."""
    path = os.path.join(ROOT, FILE)
    names = [os.path.basename(path)[:-3] if path.endswith(".py") else os.path.basename(path)]
    top = os.path.dirname(path)
    while inside(top):
        init = os.path.join(top, "__init__.py")
        state = content(init)[1]
        note([(init, state)])
        if state is None:
            break
        names.insert(0, os.path.basename(top))
        top = os.path.dirname(top)
    sys.path[:0] = [top] if top == ROOT else [top, ROOT]
    name = ".".join(names)
    if len(names) > 1:
        __import__(".".join(names[:-1]))
    elif name in sys.modules:
        name = "stet_action_" + name  # Python has loaded a module of this name itself
    if name in sys.modules:
        return sys.modules[name]  # a package imports it
    data, state = content(path)
    note([(path, state)])
    if data is None:
        raise FileNotFoundError(2, "no such file", FILE)
    spec = external.spec_from_file_location(name, path, loader=Loader(name, path, data))
    module = type(sys)(name)
    module.__spec__, module.__file__, module.__loader__ = spec, path, spec.loader
    module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Cell:
    """An input that is bound with asCell."""

    __slots__ = ("_path",)

    def __init__(self, path):
        self._path = path

    def get(self):
        return ask({"op": "read", "path": self._path}).get("value")

    def set(self, value):
        ask({"op": "write", "path": self._path, "value": plain(value, "the value")})

    def update(self, change):
        if callable(change):
            self.set(change(self.get()))
        else:
            for key, value in change.items():
                self.key(key).set(value)

    def push(self, *items):
        ask({"op": "push", "path": self._path, "value": plain(list(items), "the items")})

    def send(self, event):
        ask({"op": "send", "path": self._path, "value": plain(event, "the event")})

    def key(self, key):
        return Cell(self._path + [str(key)])


def plain(value, where, depth=0):
    """The value as JSON has it, or an error that names the place."""
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        raise ValueError("%s: more than %d levels, or a circle" % (where[:200], MAX_DEPTH))
    if isinstance(value, str):
        value = str.__str__(value)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError("%s: a text with half a surrogate pair" % where) from None
        return value
    if isinstance(value, int):
        value = int(value)
        if not -(1 << 63) <= value < 1 << 63:
            raise ValueError("%s: an integer of more than 64 bits; use a text or a float" % where)
        return value
    if isinstance(value, float):
        value = float(value)
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError("%s: %r has no form in JSON; use None or a text" % (where, value))
        return value
    if isinstance(value, (list, tuple)):
        return [plain(v, "%s[%d]" % (where, i), depth + 1) for i, v in enumerate(value)]
    if isinstance(value, dict):
        made = {}
        for k, v in value.items():
            if not isinstance(k, str):
                raise TypeError("%s: the key %.100r is a %s; keys are texts" % (where, k, type(k).__name__))
            k = plain(k, "%s: a key" % where)
            made[k] = plain(v, "%s[%r]" % (where, k), depth + 1)
        return made
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist(), where, depth + 1)
    if isinstance(value, Cell):
        raise TypeError("%s: a cell; use its get()" % where)
    raise TypeError("%s: a %s has no form in JSON; return None, texts, numbers, lists and dicts"
                    % (where, type(value).__name__))


def own(tb):
    """A traceback without our own frames at its start."""
    while tb and tb.tb_frame.f_code.co_filename == "<string>" and tb.tb_frame.f_globals is globals():
        tb = tb.tb_next
    return tb


def failure(error):
    """The traceback goes to standard error; the message names the last line of the project."""
    mine = enter()
    try:
        tb = own(error.__traceback__)
        where = ""
        while tb:
            name = tb.tb_frame.f_code.co_filename
            if inside(name):
                where = "%s:%d: " % (name[len(INSIDE) + 1:], tb.tb_lineno)
            tb = tb.tb_next
        if isinstance(error, SyntaxError) and error.filename and inside(os.path.abspath(error.filename)):
            where = "%s:%d: " % (os.path.abspath(error.filename)[len(INSIDE) + 1:], error.lineno or 1)
        try:
            text = error.msg if isinstance(error, SyntaxError) else str(error)
        except Exception:
            text = "(its text can't be told)"
        try:
            sys.__excepthook__(type(error), error, own(error.__traceback__))
        except Exception:
            pass
        text = text.encode("utf-8", "replace").decode()
        return "%s%s%s" % (where, type(error).__name__, ": " + text[:4000] if text else "")
    finally:
        leave(mine)


def call(module):
    function = module
    for name in action["export"].split("."):
        function = getattr(function, name, None)
    if not callable(function):
        raise AttributeError("%s has no function %s" % (FILE, action["export"]))
    given = []
    for name, form in action["inputs"]:
        if "cell" in form:
            given.append((name, Cell([name])))
        elif "value" in form:
            given.append((name, form["value"]))
        elif name not in defaults(function):
            given.append((name, None))
    event = [action["event"]] if action["handler"] else []
    if action["positional"]:
        result = function(*event, *[v for _, v in given])
    else:
        result = function(*event, **dict(given))
    if hasattr(result, "__await__"):
        kept, sys.path[:] = sys.path[:], [p for p in sys.path if not inside(p + "/")]
        import asyncio
        sys.path[:] = kept

        async def whole():
            return await result
        result = asyncio.run(whole())
    return result


def defaults(function):
    """The names of the parameters that have a default."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return ()
    count = len(getattr(function, "__defaults__", None) or ())
    names = code.co_varnames[:code.co_argcount]
    return set(names[len(names) - count:]) | set(getattr(function, "__kwdefaults__", None) or ())


def learn():
    """What was imported while the action ran. Of an effect it would be known too late: the effect would be done again."""
    if not action["handler"] and not action["free"]:
        libraries()


def run(module):
    global me
    me = os.getpid()
    os.setpgid(0, 0)
    send({"op": "begin", "pid": me})
    if action["memory"]:
        with open("/proc/self/statm", "rb") as f:
            size = int(f.read().split()[0]) * resource.getpagesize()
        size += action["memory"]
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    try:
        try:
            result = call(module)
            sys.setrecursionlimit(max(sys.getrecursionlimit(), 8 * MAX_DEPTH))
            data = None if action["handler"] else plain(result, "the result")
            mine = enter()
            learn()
            message = {"op": "done", "result": data}
            if not action["handler"] and len(json.dumps(data)) > MAX_RESULT:
                raise ValueError("the result is above 64 MiB as JSON; write a file with a command instead")
            leave(mine)
        except SystemExit as e:
            raise RuntimeError("it called sys.exit(%r): a function returns its result" % (e.code,)) from e
    except BaseException as e:
        message = {"op": "failed", "error": failure(e)}
        if isinstance(e, MemoryError):
            message["memory"] = True
        mine = enter()
        try:
            learn()
        except Exception:
            pass
        leave(mine)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    enter()
    with turn:
        send(message)
    os._exit(0)


def forget():
    """Modules that only we have needed so far: a module of the project may have one of these names."""
    for name in OURS:
        sys.modules.pop(name, None)


def serve():
    global action
    error = None
    sys.addaudithook(watch)
    forget()
    try:
        module = load()
    except BaseException as e:
        error = failure(e)
    enter()
    libraries()
    leave(True)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    interpreter = [(os.path.realpath(sys.executable), "")]
    if sys.prefix != sys.base_prefix:
        interpreter.append((os.path.join(sys.prefix, "pyvenv.cfg"), ""))
    loaded = {"op": "loaded", "looks": list(looks.items()) + interpreter}
    if error is not None:
        loaded["error"] = error
    send(loaded)
    while error is None:
        message = receive()
        enter()
        child = os.fork()
        if child == 0:
            action = message
            busy.clear()
            run(module)
        leave(True)
        wait(child)


def wait(child):
    """Until the action ends, or stet does. What the action has started ends with it."""
    poll = select.poll()
    handle = os.pidfd_open(child)
    poll.register(handle, select.POLLIN)
    poll.register(wire, select.POLLHUP)
    gone = False
    while not any(fd == handle for fd, _ in poll.poll()):
        gone = True
        poll.unregister(wire)
        end(child)
        os.kill(child, signal.SIGKILL)
    end(child)
    os.close(handle)
    _, status = os.waitpid(child, 0)
    if gone:
        os._exit(0)
    send({"op": "ended", "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
          "code": os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0})


def end(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass


real = os.path.realpath
LIBRARIES = tuple({p.rstrip("/") + "/" for e in sys.path for p in (e, real(e))
                   if not (e + "/").startswith(INSIDE + "/") or e.startswith((sys.prefix + "/", sys.base_prefix + "/"))})
SITES = [p for p in sys.path if p.endswith(("/site-packages", "/dist-packages"))]
sys.path_hooks.insert(0, Finder)
sys.path_importer_cache.clear()
sys.meta_path.append(Missing)
signal.signal(signal.SIGINT, signal.SIG_DFL)
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(line_buffering=True, errors="backslashreplace")
serve()
