"""Holds the TOML reader against Python's tomllib. Used by unit/toml-oracle.py and property/toml.py.

The two differ by intent in four places, and nowhere else:
  * tomllib takes integers of any size, and inf and nan; values hold 64-bit integers and finite doubles, so those are refused here;
  * tomllib refuses the second 60 and the year 0000, which RFC 3339 and TOML's grammar allow;
  * tomllib refuses a byte order mark;
  * a double too large is inf to tomllib and an error here.
"""
import datetime, json, math, os, re, subprocess, tomllib

PROGRAM = os.path.join(os.environ["STET_BUILD"], "test", "unit", "toml")


def ours(texts):
    """The answers of the reader for a list of byte strings."""
    data = b"".join(b"%d\n%s" % (len(t), t) for t in texts)
    out = subprocess.run([PROGRAM, "--oracle"], input=data, stdout=subprocess.PIPE, check=True).stdout
    answers = [json.loads(line) for line in out.split(b"\n")[:-1]]
    assert len(answers) == len(texts), (len(answers), len(texts))
    return answers


def theirs(text):
    try:
        return {"ok": tomllib.loads(text.decode())}
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are ValueErrors
        return {"error": str(error)}
    except RecursionError:
        return {"error": "too deep"}


def holdable(value):
    if isinstance(value, dict):
        return all(holdable(v) for v in value.values())
    if isinstance(value, list):
        return all(holdable(v) for v in value)
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        return -2**63 <= value < 2**63
    return not isinstance(value, float) or math.isfinite(value)


def same(their, our):
    if isinstance(their, dict):
        return isinstance(our, dict) and their.keys() == our.keys() and all(same(their[k], our[k]) for k in their)
    if isinstance(their, list):
        return isinstance(our, list) and len(their) == len(our) and all(map(same, their, our))
    if isinstance(their, (datetime.date, datetime.time)):  # a datetime is a date
        try:
            return isinstance(our, str) and " " not in our and type(their).fromisoformat(our) == their
        except (ValueError, TypeError):  # the latter: one has an offset, the other none
            return False
    if isinstance(their, bool) or isinstance(our, bool):
        return their is our
    return their == our and isinstance(their, str) == isinstance(our, str)


def plain(text):
    """The text without what only we take."""
    text = re.sub(rb"^\xef\xbb\xbf", b"", text)
    text = re.sub(rb"(\d\d:\d\d):60", rb"\1:59", text)
    return re.sub(rb"\b0000-(\d\d-\d\d)", rb"0004-\1", text)


def difference(text, our):
    """None if we agree, else a line that says how we do not."""
    their = theirs(text)
    if "ok" in their and not holdable(their["ok"]):
        return None if "error" in our else f"{text!r}: taken, but values can't hold {their['ok']!r}"
    if "error" in their and "ok" in our and "ok" in theirs(plain(text)):
        return None
    if ("ok" in their) != ("ok" in our):
        return f"{text!r}: tomllib {their!r}, we {our!r}"
    if "ok" in their and not same(their["ok"], our["ok"]):
        return f"{text!r}: tomllib {their['ok']!r}, we {our['ok']!r}"
    return None
