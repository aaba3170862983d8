"""Python objects to bytes and back. The library only sees bytes and the name of a format.

Keyword arguments come from one place (the call of `persistent_cache`) and go to both directions: each takes those that it knows, and one that
nobody knows is a mistake.
"""
import importlib
import io
import json
import math
import pickle
import struct
import sys
import types

from .keys import script_name

PROTOCOL = 4  # an empty dict then is the five bytes that the library knows as trivial

FORMATS = {"variables": ("auto", "pickle", "json"), "output": ("auto", "pickle", "json", "text", "bytes"), "stderr": ("auto", "pickle", "json", "text", "bytes")}

# Outputs that say next to nothing are stored without an object: the empty one, and the value in the format's name. Many blocks have them, and
# what many entries share is what a cleanup on one machine takes away from another.
TRIVIAL = {"true": True, "false": False, "newline": "\n", "empty_dict": {}, "empty_list": [], "empty_set": set(), "zero": 0, "one": 1, "nan": math.nan}

_PICKLER = {"protocol", "fix_imports", "buffer_callback"}
_UNPICKLER = {"fix_imports", "encoding", "errors", "buffers"}
_ENCODER = {"cls", "skipkeys", "ensure_ascii", "check_circular", "allow_nan", "indent", "separators", "default", "sort_keys"}
_DECODER = {"cls", "object_hook", "parse_float", "parse_int", "parse_constant", "object_pairs_hook"}
KNOWN = _PICKLER | _UNPICKLER | _ENCODER | _DECODER


def check_options(options):
    for name in options:
        if name not in KNOWN:
            raise TypeError(f"unexpected keyword argument {name!r}: neither pickle nor json knows it")


def check_spec(spec):
    if spec is None:
        return
    for kind, format in spec.items():
        if kind not in FORMATS:
            raise ValueError(f"content_spec: no content kind {kind!r}; there are {', '.join(FORMATS)}")
        if format not in FORMATS[kind]:
            raise ValueError(f"content_spec: {format!r} is no format for {kind}; there are {', '.join(FORMATS[kind])}")


def check_put(key, spec, options):
    if key.created_at is None:
        raise ValueError("an entry that is put has an execution_key.created_at")
    check_options(options)
    check_spec(spec)


def _trivial(value):
    if isinstance(value, float):
        return "nan" if math.isnan(value) else None
    if type(value) not in (bool, str, dict, list, set, int):
        return None
    for name, known in TRIVIAL.items():
        if type(known) is type(value) and known == value:
            return name
    return None


def choose(kind, format, value, auto_variables_format):
    """The format that "auto" stands for."""
    if format != "auto":
        return format
    if kind == "variables":
        return auto_variables_format
    trivial = _trivial(value)
    if trivial:
        return trivial
    return "text" if isinstance(value, str) else "bytes" if isinstance(value, (bytes, bytearray, memoryview)) else "pickle"


# ---- pickles ----

_MAIN = ("__main__", "__mp_main__")


def of_script(script, qualname):
    """A class or function of a script, in whatever process: the script itself, its workers, one that imports it."""
    module = next((m for n in _MAIN if (m := sys.modules.get(n)) is not None and script_name(n) == script), None)
    found = module if module is not None else importlib.import_module(script)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


class _Pickler(pickle.Pickler):
    arrays = None  # of a result, if two that share their memory are refused: the array that owns it, and those in it

    def reducer_override(self, o):
        numpy = sys.modules.get("numpy") if self.arrays is not None else None
        if numpy is not None and isinstance(o, numpy.ndarray) and o.flags.writeable:
            owner = o
            while isinstance(owner.base, numpy.ndarray):
                owner = owner.base
            beside = self.arrays.setdefault(id(owner), (owner, []))[1]
            if any(numpy.may_share_memory(o, other) for other in beside):
                raise SharedMemory("two arrays in it share their memory, and would not when they are found again: copy one of them")
            beside.append(o)
        if (isinstance(o, type) or type(o) is types.FunctionType) and o.__module__ in _MAIN:
            script = script_name(o.__module__)
            try:
                if script not in _MAIN and of_script(script, o.__qualname__) is o:
                    return of_script, (script, o.__qualname__)
            except (AttributeError, ImportError):
                pass
        return NotImplemented


class SharedMemory(ValueError):
    """A result holds two arrays with the same memory: a change of one shows in the other, but not on a hit."""


class SharedInput(ValueError):
    """A result holds an object that the computation was given, in a way or format that can't say so."""


class _SharingPickler(_Pickler):
    """Objects that the computation was given are numbers: on a hit they are those very objects."""

    def __init__(self, file, inputs, allowed, **options):
        super().__init__(file, **options)
        self._inputs, self._allowed, self._same = inputs, allowed, {}

    def persistent_id(self, o):
        number = self._inputs.number(o)
        if number is None or (type(o) not in (list, dict, set) and self._comes_back(o)):
            return None
        if not self._allowed:
            raise SharedInput(f"it holds a {type(o).__name__} that it was given and did not make: only a pickle in a directory of stet can say that")
        return number

    def _comes_back(self, o):
        """Is it the same object after pickling, as a member of an enum is?"""
        if id(o) not in self._same:
            try:
                same = loads(dumps(o)) is o
            except Exception:
                same = False
            self._same[id(o)] = (same, o)
        return self._same[id(o)][0]

    def reducer_override(self, value):
        o, numpy = value, sys.modules.get("numpy")
        while numpy is not None and isinstance(o, numpy.ndarray) and o.base is not None:
            o = o.base
            if self._inputs.number(o) is not None:
                raise SharedInput("it holds an array that shares its memory with one that it was given: copy it")
        return super().reducer_override(value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file, inputs, **options):
        super().__init__(file, **options)
        self._inputs = inputs

    def persistent_load(self, number):
        if self._inputs is None:
            raise pickle.UnpicklingError("it holds an object that was given to what computed it: only that finds it again")
        return self._inputs.at(number)

    def find_class(self, module, name):
        if module not in _MAIN and any(m in sys.modules and script_name(m) == module for m in _MAIN):
            return of_script(module, name)
        return super().find_class(module, name)


class _Main:
    """The name of the script, as it would stand in a pickle."""

    module = name = None

    @classmethod
    def bytes(cls):
        main = sys.modules.get("__main__")
        if main is not cls.module:
            cls.module, cls.name = main, script_name("__main__").encode("utf-8", "surrogatepass")
        return cls.name


def is_plain(data):
    """Does it name nothing of the script?"""
    return _Main.bytes() not in data


def loads(data, inputs=None, **options):
    if not options and len(data) < 1 << 20 and is_plain(data):
        try:
            return pickle.loads(data)
        except pickle.UnpicklingError:
            pass  # it holds one of its inputs, or is damaged
    return _Unpickler(io.BytesIO(data), inputs, **options).load()


def load_file(file, options, inputs):
    """A pickle that is too large to be in memory twice."""
    return _Unpickler(file, inputs, **{k: v for k, v in options.items() if k in _UNPICKLER}).load()


def dumps(value):
    file = io.BytesIO()
    _Pickler(file, PROTOCOL).dump(value)
    return file.getvalue()


# ---- pickles with their arrays beside them ----
#
# Format "pickle5": the magic, the length of the pickle and the number of buffers (u64 each, little-endian), for each buffer its offset, its length and whether it can be
# written to, then the pickle (protocol 5), then the buffers, each at a multiple of 64. So an array is read from the file into its own memory, or not read at all but mapped.

_MAGIC, _ALIGN, _BESIDE = b"stetbuf1", 64, 1 << 16


class Beside:
    """A value pickled in memory, with its large arrays left where they are: `format` says whether there are any."""

    def __init__(self, value, options, inputs):
        self.chunks, self.buffers = [], []
        mine = {k: v for k, v in options.items() if k in _PICKLER}

        def beside(buffer):
            view = buffer.raw()
            if view.nbytes < _BESIDE:
                return True
            self.buffers.append(view)

        made = _SharingPickler(self, inputs, True, protocol=5, buffer_callback=beside, **mine) if inputs else _Pickler(self, protocol=5, buffer_callback=beside, **mine)
        made.arrays = {} if inputs is not None else None
        made.dump(value)
        self.format = "pickle5" if self.buffers else "pickle"

    def write(self, data):
        self.chunks.append(bytes(data))
        return len(data)

    def dump(self, put):
        if not self.buffers:
            for chunk in self.chunks:
                put.write(chunk)
            return
        length = sum(map(len, self.chunks))
        at = len(_MAGIC) + 16 + 24 * len(self.buffers) + length
        head, offsets = [_MAGIC, struct.pack("<QQ", length, len(self.buffers))], []
        for view in self.buffers:
            offset = -(-at // _ALIGN) * _ALIGN
            offsets.append(offset - at)
            head.append(struct.pack("<QQQ", offset, view.nbytes, not view.readonly))
            at = offset + view.nbytes
        put.write(b"".join(head + self.chunks))
        for gap, view in zip(offsets, self.buffers):
            put.write(bytes(gap))
            put.write(view)


def load_beside(file, options, inputs, mapped):
    """`mapped`: the whole file as a read-only memoryview, whose arrays are not read; or None."""
    head = file.read(len(_MAGIC) + 16)
    if head[:len(_MAGIC)] != _MAGIC:
        raise pickle.UnpicklingError("not a pickle with buffers")
    length, count = struct.unpack_from("<QQ", head, len(_MAGIC))
    index = file.read(24 * count)
    stream, buffers = file.read(length), []
    for offset, size, writable in struct.iter_unpack("<QQQ", index):
        if mapped is not None:
            buffers.append(mapped[offset:offset + size])
            continue
        numpy = sys.modules.get("numpy")  # its memory comes in large pages
        room = memoryview(numpy.empty(size, "u1") if numpy is not None else bytearray(size))
        file.seek(offset)
        if file.readinto(room) != size:
            raise pickle.UnpicklingError("the buffers end too early")
        buffers.append(room if writable else room.toreadonly())
    return _Unpickler(io.BytesIO(stream), inputs, buffers=buffers, **{k: v for k, v in options.items() if k in _UNPICKLER - {"buffers"}}).load()


def is_of(format, wanted):
    return wanted in ("auto", format) or (wanted, format) == ("pickle", "pickle5")


class _Nowhere:
    @staticmethod
    def write(data):
        return len(data)


def check_shared(value, inputs):
    """Raises SharedInput if `value` holds what the computation was given."""
    if inputs:
        _SharingPickler(_Nowhere, inputs, False, protocol=PROTOCOL).dump(value)


def dump(put, value, format, options, inputs=None):
    """Writes the content that `put` has begun."""
    if format == "pickle":
        mine = {k: v for k, v in options.items() if k in _PICKLER}
        mine.setdefault("protocol", PROTOCOL)
        made = _SharingPickler(put, inputs, mine["protocol"] is None or mine["protocol"] > 0, **mine) if inputs else _Pickler(put, **mine)
        made.arrays = {} if inputs is not None else None
        made.dump(value)
    elif format == "json":
        mine = {k: v for k, v in options.items() if k in _ENCODER}
        if "cls" in mine and not issubclass(mine["cls"], json.JSONEncoder):
            del mine["cls"]
        put.write(json.dumps(value, **mine).encode())
    elif format == "text":
        put.write(value.encode())
    elif format == "bytes":
        put.write(value)
    elif format not in TRIVIAL:
        raise ValueError(f"no format {format!r}")


def check_json(value, options):
    """Raises a ValueError if `value` would come back from JSON as something else: a tuple as a list, a key 1 as "1"."""
    mine = {k: v for k, v in options.items() if k in _ENCODER and (k != "cls" or issubclass(v, json.JSONEncoder))}
    todo = [(value, load(json.dumps(value, **mine).encode(), "json", options), "")]
    while todo:
        a, b, where = todo.pop()
        if type(a) is not type(b) or (isinstance(a, (dict, list)) and len(a) != len(b)) or (isinstance(a, dict) and list(a) != list(b)):
            raise ValueError(f"{where or 'the value'} is a {type(a).__name__} that JSON would not give back as it is: use pickle")
        if isinstance(a, dict):
            for (j, x), (k, y) in zip(a.items(), b.items()):
                todo += [(j, k, f"a key of {where or 'the value'}"), (x, y, f"{where}[{j!r}]")]
        elif isinstance(a, list):
            todo += [(x, y, f"{where}[{i}]") for i, (x, y) in enumerate(zip(a, b))]
        elif a != b and (a == a or b == b):
            raise ValueError(f"{where or 'the value'} would come back from JSON as {b!r}: use pickle")


class UnknownFormat(ValueError):
    pass


def load(data, format, options, inputs=None):
    if format == "pickle5":
        return load_beside(io.BytesIO(data), options, inputs, None)
    if format == "pickle":
        return loads(data, inputs, **{k: v for k, v in options.items() if k in _UNPICKLER} if options else {})
    if format == "json":
        mine = {k: v for k, v in options.items() if k in _DECODER}
        if "cls" in mine and not issubclass(mine["cls"], json.JSONDecoder):
            del mine["cls"]
        return json.loads(data, **mine)
    if format == "text":
        return data.decode()
    if format == "bytes":
        return data
    if format in TRIVIAL:
        value = TRIVIAL[format]
        return type(value)(value) if isinstance(value, (dict, list, set)) else value
    raise UnknownFormat(f"no format {format!r}")
