"""Python objects to bytes and back. The library only sees bytes and the name of a format.

Keyword arguments come from one place (the call of `persistent_cache`) and go to both directions: each takes those that it knows, and one that
nobody knows is a mistake.
"""
import json
import math
import pickle

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


def dump(put, value, format, options):
    """Writes the content that `put` has begun."""
    if format == "pickle":
        mine = {k: v for k, v in options.items() if k in _PICKLER}
        mine.setdefault("protocol", PROTOCOL)
        pickle.Pickler(put, **mine).dump(value)
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


def load(data, format, options):
    if format == "pickle":
        mine = {k: v for k, v in options.items() if k in _UNPICKLER} if options else options
        return pickle.loads(data, **mine)
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
