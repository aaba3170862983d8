#!/usr/bin/python3
"""Programs in which a dependency is easily lost, each edited at one place, with and without the cache (edits.py has the runner and the oracle). One line of TAP each."""
import os, shutil, sys, tempfile

import edits, stet

H = "from stet import persistent_cache\n"
PROGRAMS = {}


def prog(name, files):
    PROGRAMS[name] = {path if "." in path else path + ".py": text for path, text in files.items()}


prog("method block self read", {"main": H + '''
class A:
    def __init__(self): self.k=§1|7§
    def run(self, x):
        with persistent_cache("b"):
            print("COMPUTE")
            y = x + self.k
        return y
print(A().run(2))
'''})
prog("method block self write", {"main": H + '''
class A:
    def __init__(self): self.k=§1|7§
    def run(self, x):
        with persistent_cache("b"):
            print("COMPUTE")
            self.y = x + self.k
        return self.y
print(A().run(2))
'''})
prog("class body block", {"main": H + '''
K=§1|7§
class A:
    k=K
    with persistent_cache("b"):
        print("COMPUTE")
        y = k + 1
        z = [K for _ in range(2)]
print(A.y, A.z)
'''})
prog("mangled", {"main": H + '''
_A__K=§1|7§
class A:
    def run(self, x):
        with persistent_cache("b"):
            print("COMPUTE")
            y = x + __K
        return y
print(A().run(2))
'''})
prog("mangled attr", {"main": H + '''
class A:
    __k=§1|7§
    def run(self, x):
        with persistent_cache("b"):
            print("COMPUTE")
            y = x + self.__k
            __z = y
        return __z
print(A().run(2))
'''})
prog("nested blocks", {"main": H + '''
k=§1|7§
with persistent_cache("outer"):
    print("COMPUTE")
    with persistent_cache("inner"):
        print("INNER")
        y = k + 1
    z = y * 2
print(y, z)
'''})
prog("nonlocal block", {"main": H + '''
def outer():
    n = §1|7§
    def inner(x):
        nonlocal n
        with persistent_cache("b"):
            print("COMPUTE")
            n = n + x
        return n
    return inner(2), n
print(outer())
'''})
prog("generator function", {"main": H + '''
def g(x):
    for i in range(2):
        with persistent_cache("b"):
            print("COMPUTE")
            y = x + i + §1|7§
        yield y
print(list(g(2)))
'''})
prog("swallow", {"main": H + '''
import contextlib
k=§0|1§
y=5
with persistent_cache("b"):
    print("COMPUTE")
    with contextlib.suppress(ZeroDivisionError):
        1/k
        y = 6
print(y)
'''})
prog("try else finally", {"main": H + '''
k=§0|1§
r="old"
with persistent_cache("b"):
    print("COMPUTE")
    try:
        v = 1/k
    except ZeroDivisionError as e:
        r = "zero"
    else:
        r = "fine"
    finally:
        s = r
print(r, s)
'''})
prog("import in block", {"main": H + '''
with persistent_cache("b"):
    print("COMPUTE")
    import b
    from b import g as h
    y = b.g(1) + h(2)
print(y, b.g(5), h(6))
''', "b": 'def g(x): return x + §1|7§\n'})
prog("conditional import in block", {"main": H + '''
with persistent_cache("b"):
    print("COMPUTE")
    try:
        import nothing_at_all as m
    except ImportError:
        import b as m
    y = m.g(1)
print(y, m.g(5))
''', "b": 'def g(x): return x + §1|7§\n'})
prog("while with else", {"main": H + '''
n=§2|5§
i=0
with persistent_cache("b"):
    print("COMPUTE")
    while i < n:
        i += 1
        if i == 4: break
    else:
        done = True
print(i, "done" in globals())
'''})
prog("block and function", {"main": H + '''
def f(v): return v + K
K=§1|7§
def run():
    out=[]
    for a in range(2):
        with persistent_cache("b") as c:
            print("COMPUTE")
            r = [f(a) for _ in range(1)]
        out.append(r)
    return out
print(run())
'''})
prog("global in function block", {"main": H + '''
total = §1|7§
def run():
    global total
    with persistent_cache("b"):
        print("COMPUTE")
        total += 1
    return total
print(run(), total)
'''})
prog("match capture", {"main": H + '''
cmd=["go", §1|7§]
with persistent_cache("b"):
    print("COMPUTE")
    match cmd:
        case ["go", n] if n > 3: r = ("big", n)
        case ["go", n]: r = ("small", n)
print(r, n)
'''})
prog("defined class in block", {"main": H + '''
K=§1|7§
with persistent_cache("b"):
    print("COMPUTE")
    class C:
        k=K
        def m(self): return self.k + K
    def f(): return C().m()
    y = f()
print(y, f(), C.k)
'''})
prog("decorated def in block", {"main": H + '''
def deco(f): return lambda: f() + §1|7§
with persistent_cache("b"):
    print("COMPUTE")
    @deco
    def f(): return 1
    y = f()
print(y, f())
'''})
prog("lambda late", {"main": H + '''
with persistent_cache("b"):
    print("COMPUTE")
    fs = []
    base = K = §1|7§
    y = (lambda: base)()
    del fs
print(y)
'''})
prog("default mutated", {"main": H + '''
@persistent_cache
def f(x, acc=[§1|7§]):
    print("COMPUTE")
    acc.append(x)
    return sum(acc)
print(f(1), f(1), f(1))
'''})
prog("conditional user import", {"main": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    try:
        from nothing_there import g
    except ImportError:
        from b import g
    return g(x)
print(f(1))
''', "b": 'def g(x): return x + §1|7§\n'})
prog("circular", {"main": H + '''
import a
@persistent_cache
def f(x):
    print("COMPUTE")
    return a.fa(x)
print(f(3))
''', "a": 'import b\ndef fa(x): return 0 if x < 1 else b.fb(x-1)\n', "b": 'import a\ndef fb(x): return §1|7§ if x < 1 else a.fa(x-1)\n'})
prog("called while importing", {"main": 'import m\nprint(m.R)\n', "m": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    return x + g(x)
def g(x): return §1|7§
R = f(2)
LATE = 1
'''})
prog("plugin registered by import", {"main": H + '''
import reg
@persistent_cache
def f(x):
    print("COMPUTE")
    import plugin
    return reg.R["p"](x)
print(f(1))
''', "reg": 'R={}\n', "plugin": 'import reg\ndef p(x): return x + §1|7§\nreg.R["p"]=p\n'})
prog("import patches", {"main": H + '''
import c
@persistent_cache
def f(x):
    print("COMPUTE")
    from patch import T
    return c.K + T + x
print(f(1))
''', "c": 'K=1\n', "patch": 'import c\nc.K=§5|6§\nT=1\n'})
prog("package init lazy", {"main": H + '''
import pkg
@persistent_cache
def f(x):
    print("COMPUTE")
    return pkg.sub.g(x)
print(f(1))
''', "pkg/__init__": 'def __getattr__(n):\n    if n != "sub": raise AttributeError(n)\n    import pkg.sub as s\n    return s\n', "pkg/sub": 'def g(x): return x + §1|7§\n'})
prog("same name two", {"main": H + '''
@persistent_cache("n")
def a(x): return x + §1|7§
@persistent_cache("n")
def b(x): return x + 2
print(a(1), b(1), a(1))
'''})
prog("loop closures", {"main": H + '''
fs=[]
for k in (1, §2|7§):
    @persistent_cache
    def f(x, k=k): return x + k
    fs.append(f)
print([f(1) for f in fs], [f(1) for f in fs])
'''})
prog("late binding global loop", {"main": H + '''
out=[]
@persistent_cache
def f(x): return x + k
for k in (1, §2|7§, 1): out.append(f(1))
print(out)
'''})
prog("subclass override", {"main": H + '''
class A:
    @persistent_cache
    def f(self, x): return x + self.h()
    def h(self): return 1
class B(A):
    def h(self): return §5|8§
print(A().f(2), B().f(2), A().f(2))
'''})
prog("abstract isinstance", {"main": H + '''
import numbers
class My: pass
§numbers.Number.register(My)|pass§
m=My()
@persistent_cache
def f(o):
    print("COMPUTE")
    return isinstance(o, numbers.Number)
print(f(m))
'''})
prog("json default patch", {"main": H + '''
import json
class O: pass
def enc(self, o): return §1|7§
json.JSONEncoder.default = enc
@persistent_cache
def f(x):
    print("COMPUTE")
    return json.JSONEncoder().encode(O())
print(f(1))
'''})
prog("json default patch, dumps", {"main": H + '''
import json
class O: pass
def enc(self, o): return §1|7§
json.JSONEncoder.default = enc
@persistent_cache
def f(x):
    print("COMPUTE")
    return json.dumps(O())
print(f(1))
'''})
prog("copyreg", {"main": H + '''
import copyreg, copy
class O:
    k=0
def red(o): return (make, (§1|7§,))
def make(k):
    o=O(); o.k=k; return o
copyreg.pickle(O, red)
@persistent_cache
def f(x):
    print("COMPUTE")
    return copy.copy(O()).k
print(f(1))
'''})
prog("random seeded", {"main": H + '''
import random
random.seed(§1|7§)
@persistent_cache
def f(x):
    print("COMPUTE")
    return random.random()
print(f(1))
'''})
prog("sorted set order", {"main": H + '''
class C:
    def __init__(s,k): s.k=k
    def __eq__(s,o): return True
    def __hash__(s): return 1
A=C(1); B=C(§1|7§)
D={A: 1}
@persistent_cache
def f(x):
    print("COMPUTE")
    return D[B], next(iter(D)).k + B.k
print(f(1))
'''})
prog("exec string global", {"main": H + '''
SRC="§1|7§"
@persistent_cache(allow_dynamic=True)
def f(x):
    print("COMPUTE")
    return eval(SRC) + x
print(f(1))
'''})
prog("import in class body of function", {"main": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    class Z:
        import b
        from b import g
    return Z.b.g(x) + Z.g(x)
print(f(1))
''', "b": 'def g(x): return x + §1|7§\n'})
prog("import several", {"main": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    import os, b, pkg.c as q, json as j
    from b import (g, h as hh)
    return b.g(x) + q.K + hh(x)
print(f(1))
''', "b": 'def g(x): return x + §1|7§\ndef h(x): return x\n', "pkg/__init__": '', "pkg/c": 'K=§1|7§\n'})
prog("global import", {"main": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    global b
    import b
    return b.g(x)
print(f(1)); print(f(1))
''', "b": 'def g(x): return x + §1|7§\n'})
prog("nested function import", {"main": H + '''
@persistent_cache
def f(x):
    print("COMPUTE")
    import b
    def inner():
        def deeper(): return b.g(x)
        return deeper()
    return inner() + [b.K for _ in [1]][0]
print(f(1))
''', "b": 'def g(x): return x + §1|7§\nK=§1|7§\n'})
prog("del module attr", {"main": H + '''
import b
@persistent_cache
def f(x):
    print("COMPUTE")
    return hasattr(b, "K")
print(f(1))
''', "b": '§K=1|J=1§\n'})
prog("class kwargs init_subclass", {"main": H + '''
class B:
    def __init_subclass__(cls, k=0): cls.k=k
class C(B, k=§1|7§): pass
@persistent_cache
def f(x):
    print("COMPUTE")
    return C.k
print(f(1))
'''})
prog("star global", {"main": H + '''
A=[1,§2|7§]; K={"z":§1|7§}
def g(*a, z=0, **k): return sum(a)+z
@persistent_cache
def f(x):
    print("COMPUTE")
    return g(*A, **K)
print(f(1))
'''})
prog("vars of class instance attr", {"main": H + '''
import types
ns = types.SimpleNamespace(a=types.SimpleNamespace(b=lambda x: x+§1|7§))
@persistent_cache
def f(x):
    print("COMPUTE")
    return ns.a.b(x)
print(f(1))
'''})

# What an inner one depends on, the outer one depends on.
LOAD = 'def load(): return int(open("data.txt").read())'
for name, text in {
    "files of a function in a function": '@persistent_cache(depends_on="data.txt")\n' + LOAD + '\n@persistent_cache\ndef f():\n    print("COMPUTE")\n    return load() + 1\nprint(load(), f())\n',
    "files, three deep": '@persistent_cache(depends_on=["data.txt"])\n' + LOAD + '\n@persistent_cache\ndef g(): return load() + 1\ndef h(): return g() * 2\n@persistent_cache\ndef f():\n    print("COMPUTE")\n    return h() + 1\n' 'print(f())\n',
    "files of a function in a block": '@persistent_cache(depends_on="data.txt")\n' + LOAD + '\nwith persistent_cache("b"):\n    print("COMPUTE")\n    y = load() + 1\nprint(y)\n',
    "files of a block in a function": LOAD + '\ndef g():\n    with persistent_cache("b", depends_on="data.txt"):\n        y = load()\n    return y\n@persistent_cache\ndef f():\n    print("COMPUTE")\n    return g() + 1\n'
                                      'print(f())\n',
    "files of a block in a block": LOAD + '\nwith persistent_cache("a"):\n    print("COMPUTE")\n    with persistent_cache("b", depends_on="data.txt"):\n        y = load()\n    z = y + 1\nprint(z)\n',
    "files of a block in a thread": 'from concurrent.futures import ThreadPoolExecutor\n' + LOAD + '\ndef g(n):\n    with persistent_cache("b", depends_on="data.txt"):\n        y = load()\n    return y + n\n'
                                    '@persistent_cache\ndef f():\n    print("COMPUTE")\n    with ThreadPoolExecutor(2) as pool:\n        return list(pool.map(g, [1, 2]))\nprint(f())\n',
    "files of a block in a coroutine": 'import asyncio\n' + LOAD + '\nasync def g(n):\n    await asyncio.sleep(0)\n    with persistent_cache("b", depends_on="data.txt"):\n        y = load()\n    return y + n\n'
                                       '@persistent_cache\nasync def f():\n    print("COMPUTE")\n    return await asyncio.gather(g(1), g(2))\nprint(asyncio.run(f()))\n',
    "files of a method": 'class A:\n    @persistent_cache(depends_on="data.txt")\n    def load(self): return int(open("data.txt").read())\n    @persistent_cache\n    def f(self):\n        print("COMPUTE")\n'
                         '        return self.load() + 1\nprint(A().f())\n',
    "files of a function that is an argument": '@persistent_cache(depends_on="data.txt")\n' + LOAD + '\n@persistent_cache\ndef f(g):\n    print("COMPUTE")\n    return g() + 1\nprint(f(load))\n',
}.items():
    prog(name, {"main": H + text, "data.txt": "§1|7§"})
prog("files below a linked directory", {"main": H + '''
import os
if not os.path.lexists("data/sub"):
    os.makedirs("data", exist_ok=True); os.symlink("../real", "data/sub"); os.symlink("../data", "data/up")
@persistent_cache(depends_on="data")
def f():
    print("COMPUTE")
    return open("data/sub/x.txt").read()
print(f())
''', "real/x.txt": "§a|b§"})
prog("a link that leads elsewhere", {"main": H + '''
import os
if os.path.lexists("link"): os.unlink("link")
os.symlink("§real/x.txt|real/y.txt§", "link")
@persistent_cache(depends_on="link")
def f():
    print("COMPUTE")
    return os.path.realpath("link").rpartition("/")[2]
print(f())
''', "real/x.txt": "a", "real/y.txt": "a"})

# What lies in an object though pickle, or the user's class, leaves it out.
for name, (text, expression) in {
    "factory of a defaultdict of one's own": ("from collections import defaultdict\nclass D(defaultdict): pass\ndef h(): return §1|7§\nV = D(h)", "V.default_factory()"),
    "order of an OrderedDict of one's own": ("from collections import OrderedDict\nclass D(OrderedDict): pass\nV = D(a=1, b=2, c=3)\nV.move_to_end('§a|b§')", "list(V)"),
    "order of an OrderedDict": ("from collections import OrderedDict\nV = OrderedDict(a=1, b=2, c=3)\nV.move_to_end('§a|b§')", "list(V)"),
    "cause of an exception": ("class E(OSError): pass\nV = E(1, 'x')\nV.__cause__ = KeyError(§1|7§)", "repr(V.__cause__)"),
    "member of an exception": ("class E(OSError): pass\nV = E(1, 'x')\nV.errno = §1|7§", "V.errno"),
    "cause of a built-in exception": ("V = ValueError(1)\nV.__cause__ = KeyError(§1|7§)", "repr(V.__cause__)"),
    "context of an exception": ("V = ValueError(1)\nV.__context__ = KeyError(§1|7§)", "repr(V.__context__)"),
    "suppressed context": ("V = ValueError(1)\nV.__suppress_context__ = §True|False§", "V.__suppress_context__"),
    "note of an exception": ("V = ValueError(1)\nV.add_note('§a|b§')", "V.__notes__"),
    "value of StopIteration": ("V = StopIteration(1)\nV.value = §1|7§", "V.value"),
    "line of a SyntaxError": ("V = SyntaxError('x')\nV.lineno = §1|7§", "V.lineno"),
    "group of exceptions": ("V = ExceptionGroup('g', [ValueError(§1|7§)])", "V.exceptions[0].args"),
    "UUID that hides itself": ("import uuid\nclass I(uuid.UUID):\n    def __getstate__(self): return {}\nV = I(int=§1|7§)", "V.int"),
    "StringIO that hides itself": ("import io\nclass B(io.StringIO):\n    def __getstate__(self): return ('', None, 0, None)\nV = B('§a|b§')", "V.getvalue()"),
    "BytesIO that hides itself": ("import io\nclass B(io.BytesIO):\n    def __reduce__(self): return (B, ())\nV = B(b'§a|b§')", "V.getvalue()"),
    "deque that iterates otherwise": ("import collections\nclass D(collections.deque):\n    def __iter__(self): return iter(())\nV = D([§1|7§])", "V[0]"),
    "length of a deque": ("import collections\nclass D(collections.deque):\n    def __reduce__(self): return (D, ())\nV = D([1], §3|4§)", "V.maxlen"),
    "list that iterates otherwise": ("class D(list):\n    def __iter__(self): return iter(())\nV = D([§1|7§])", "V[0]"),
    "dict with items of its own": ("class D(dict):\n    def items(self): return ()\n    def __iter__(self): return iter(())\nV = D(a=§1|7§)", "V['a']"),
    "set that iterates otherwise": ("class D(set):\n    def __iter__(self): return iter(())\nV = D([§1|7§])", "1 in V"),
    "str with a text of its own": ("class D(str):\n    def __str__(self): return 'x'\nV = D('§a|b§')", "V[0]"),
    "int with a value of its own": ("class D(int):\n    def __int__(self): return 3\n    def __getnewargs__(self): return (1,)\nV = D(§1|7§)", "V + 0"),
    "bytes": ("class D(bytes):\n    def __getnewargs__(self): return (b'',)\nV = D(b'§a|b§')", "V[0]"),
    "bytearray": ("class D(bytearray):\n    def __iter__(self): return iter(())\nV = D(b'§a|b§')", "V[0]"),
    "date": ("import datetime\nclass D(datetime.date):\n    def __reduce__(self): return (D, (1, 1, 1))\nV = D(2024, 1, §1|7§)", "V.day"),
    "fold of a time": ("import datetime\nV = datetime.datetime(2024, 1, 1, fold=§0|1§)", "V.fold"),
    "Fraction that hides itself": ("import fractions\nclass D(fractions.Fraction):\n    def __reduce__(self): return (D, ())\nV = D(1, §2|3§)", "V.denominator"),
    "path of one's own": ("import pathlib\nclass D(pathlib.PurePosixPath):\n    def __reduce__(self): return (D, ())\nV = D('§a|b§')", "str(V)"),
    "partial that hides itself": ("import functools\nclass D(functools.partial):\n    def __reduce__(self): return (D, (int,))\nV = D(int, §1|7§)", "V()"),
    "random generator of one's own": ("import random\nclass D(random.Random):\n    def __reduce__(self): return (D, ())\nV = D(§1|7§)", "random.Random.getstate(V)[1][0]"),
    "subclass of a namedtuple": ("import collections\nclass D(collections.namedtuple('P', 'a')):\n    def __getnewargs__(self): return (0,)\n    def __iter__(self): return iter(())\nV = D(§1|7§)", "V.a"),
    "array of numpy of one's own": ("import numpy\nclass D(numpy.ndarray):\n    def __reduce__(self): return (D, ())\nV = numpy.array([§1|7§]).view(D)", "int(numpy.ndarray.sum(V))"),
    "masked array": ("import numpy\nV = numpy.ma.array([1, 2], mask=[False, §True|False§])", "int(V.sum())"),
    "array of objects": ("import numpy\nclass C:\n    k = §1|7§\nV = numpy.array([C()], dtype=object)", "V[0].k"),
    "array of dates": ("import numpy\nV = numpy.array(['2024-01-0§1|7§'], dtype='M8[D]')", "str(V[0])"),
    "thread-local of one's own": ("import threading\nclass D(threading.local): pass\nV = D()\nV.k = §1|7§", "V.k"),
    "slots of a library class": ("import ipaddress\nclass D(ipaddress.IPv4Address): pass\nV = D('127.0.0.§1|7§')", "str(V)"),
    "sign of NaN": ("import math\nV = §+|-§float('nan')", "math.copysign(1, V)"),
    "sign of zero": ("import math\nV = §+|-§0.0", "math.copysign(1, V)"),
    "sign of a complex zero": ("import math\nV = complex(0, §+|-§0.0)", "math.copysign(1, V.imag)"),
    "sign of NaN in a tuple": ("import math\nV = (1, (§+|-§float('nan'),))", "math.copysign(1, V[1][0])"),
    "one, true, or a float": ("V = (§1|True§, §1|1.0§)", "repr(V)"),
    "read-only memory": ("V = memoryview(§b'a'|bytearray(b'a')§)", "V.readonly"),
    "owner of memory": ("V = memoryview(b'a§b|c§')[:1]", "V.obj"),
    "steps of memory": ("V = memoryview(b'abababab')[::§2|4§]", "(V.strides, len(V))"),
    "default of a context variable": ("import contextvars\nV = contextvars.ContextVar('v', default=§1|7§)", "V.get()"),
    "default of a context variable that is set": ("import contextvars\nV = contextvars.ContextVar('v', default=§1|7§)\nV.set(3)", "contextvars.Context().run(V.get)"),
    "default that is a list": ("import contextvars\nV = contextvars.ContextVar('v', default=[§1|7§])", "V.get()[0]"),
    "NewType": ("from typing import NewType\nA = NewType('A', §int|str§)\ndef g(x: A): return x\nV = g", "V.__annotations__['x'].__supertype__.__name__"),
    "name of a NewType": ("from typing import NewType\nV = NewType('§A|B§', int)", "V.__name__"),
    "ParamSpec": ("from typing import ParamSpec\nV = ParamSpec('§P|Q§')", "V.__name__"),
    "TypeVarTuple": ("from typing import TypeVarTuple\nV = TypeVarTuple('§P|Q§')", "V.__name__"),
    "struct": ("import struct\nV = struct.Struct('§<h|>i§')", "V.size"),
    "decoder with a hook": ("import json\nV = json.JSONDecoder(object_hook=lambda d: §1|7§)", "V.decode('{}')"),
    "encoder with a default": ("import json\nV = json.JSONEncoder(default=lambda d: §1|7§)", "V.encode(object())"),
    "cached property of one's own": ("import functools\nclass P(functools.cached_property): pass\nclass C:\n    @P\n    def k(self): return §1|7§\nV = C", "V().k"),
    "weak dictionary": ("import weakref\nclass C: pass\nc = C()\nc.k = §1|7§\nV = weakref.WeakValueDictionary(a=c)", "V['a'].k"),
    "user list": ("import collections\nclass D(collections.UserList): pass\nV = D([§1|7§])", "V[0]"),
}.items():
    prog("value: " + name, {"main": H + text + f'''
@persistent_cache
def f():
    print("COMPUTE")
    return {expression}
print(f())
'''})
    prog("argument: " + name, {"main": H + text + f'''
@persistent_cache
def f(V):
    print("COMPUTE")
    return {expression}
print(f(V))
'''})

# What the user puts into libraries.
for name, (text, expression) in {
    "class": ("import textwrap\nclass M(textwrap.TextWrapper):\n    def fill(self, t): return '§1|7§' + t\ntextwrap.TextWrapper = M", "textwrap.fill('a')"),
    "class with nothing but a constant": ("import textwrap\nclass M(textwrap.TextWrapper):\n    k = §1|7§\n    def __init__(self, *a, **k): super().__init__(width=self.k)\ntextwrap.TextWrapper = M", "textwrap.fill('a b c d e f')"),
    "method": ("import textwrap\ntextwrap.TextWrapper.fill = lambda self, t: '§1|7§' + t", "textwrap.fill('a')"),
    "static method": ("import string\nstring.Formatter.get_value = staticmethod(lambda k, a, kw: §1|7§)", "string.Formatter().get_field('a', (), {})[0]"),
    "partial": ("import functools, textwrap\ndef g(n, *a, **k): return type('T', (), {'fill': lambda self, t: t * n})()\ntextwrap.TextWrapper = functools.partial(g, §1|7§)", "textwrap.fill('a')"),
    "object that is called": ("import fnmatch\nclass C:\n    def __init__(self, k): self.k = k\n    def __call__(self, *a): return self.k\nfnmatch.fnmatchcase = C(§1|7§)", "fnmatch.fnmatch('a', 'b')"),
    "bound method": ("import fnmatch\nclass C:\n    def __init__(self, k): self.k = k\n    def m(self, *a): return self.k\nfnmatch.fnmatchcase = C(§1|7§).m", "fnmatch.fnmatch('a', 'b')"),
    "cached function": ("import fnmatch, functools\n@functools.lru_cache\ndef g(*a): return §1|7§\nfnmatch.fnmatchcase = g", "fnmatch.fnmatch('a', 'b')"),
    "function that exec made": ("import fnmatch\nspace = {}\nexec('def g(*a): return §1|7§', space)\nfnmatch.fnmatchcase = space['g']", "fnmatch.fnmatch('a', 'b')"),
    "function in a library's wrapper": ("import contextlib, fnmatch\n@contextlib.contextmanager\ndef g(*a): yield §1|7§\nfnmatch.fnmatchcase = g", "fnmatch.fnmatch('a', 'b').__enter__()"),
    "deeper": ("import json, json.encoder\njson.encoder.c_make_encoder = None\njson.encoder.encode_basestring_ascii = lambda s: '§1|7§'", "json.dumps(['a'], indent=0)"),
    "in another library": ("import fnmatch, posixpath\nposixpath.normcase = lambda p: p * §1|7§", "fnmatch.fnmatch('aaaaaaa', 'a')"),
    "built-in function": ("import builtins, html\nbuiltins.chr = lambda n: '§1|7§'", "html.unescape('&#65;')"),
    "mock": ("import fnmatch\nfrom unittest import mock\nmock.patch('fnmatch.fnmatchcase', lambda *a: §1|7§).start()", "fnmatch.fnmatch('a', 'b')"),
}.items():
    prog("patch of a library: " + name, {"main": H + text + f'''
@persistent_cache
def f():
    print("COMPUTE")
    return {expression}
print(f())
'''})
    module = text.partition("\n")[0]
    prog("patch after the first call: " + name, {"main": H + f'''
{module}
@persistent_cache
def f():
    return {expression}
try: first = f()
except Exception: first = None
{text}
print(first, f())
'''})

prog("a script's class in another script", {"main": '''
import subprocess, sys
subprocess.run([sys.executable, "other.py"], check=True)
import other
class P:
    def who(self): return "main"
print(other.f().who(), type(other.f()) is other.P, other.g() is other.h)
''', "other": H + '''
class P:
    def who(self): return "other §1|7§"
def h(): pass
@persistent_cache
def f(): return P()
@persistent_cache
def g(): return h
if __name__ == "__main__": f(); g()
'''})
prog("a module's class in its script", {"main": '''
import subprocess, sys, other
other.f()
subprocess.run([sys.executable, "other.py"], check=True)
''', "other": H + '''
class P:
    k = §1|7§
@persistent_cache
def f(): return P()
if __name__ == "__main__": print(type(f()) is P, f().k, flush=True)
'''})
prog("as on a line of its own", {"main": H + '''
with (
    persistent_cache("m")
    as cache
):
    print("COMPUTE")
    x = §1|7§
print(x, type(cache).__name__)
'''})
prog("as with several targets", {"main": H + '''
class T: pass
with (
    persistent_cache("m")
    as
    T.cache
):
    print("COMPUTE")
    x = §1|7§
print(x, type(T.cache).__name__)
'''})
prog("hook of JSON", {"main": H + '''
def hook(d): return d if §1|7§ == 1 else dict(d, z=1)
@persistent_cache(content_spec={"variables": "json"}, object_hook=hook)
def f(): return {"a": 1}
print(f())
'''})
prog("hook of JSON in a block", {"main": H + '''
def hook(d): return d if §1|7§ == 1 else dict(d, z=1)
with persistent_cache("m", content_spec={"variables": "json"}, object_hook=hook):
    x = {"a": 1}
print(x)
'''})
prog("an object in place of a module", {"main": H + '''
import helper
@persistent_cache
def f():
    print("COMPUTE")
    return helper.k
print(f())
''', "helper": 'import sys\nclass O: k = §1|7§\nsys.modules[__name__] = O()\n'})
prog("an object in place of a module, imported inside", {"main": H + '''
@persistent_cache
def f():
    print("COMPUTE")
    import helper
    from helper import k
    return helper.k + k
print(f())
''', "helper": 'import sys\nclass O: k = §1|7§\nsys.modules[__name__] = O()\n'})

# A result that is, or holds, what the computation was given.
for name, (setup, result, after) in {
    "list": ("rows = [§1|7§]", "rows", "y.append(2)"), "in a tuple": ("rows = [§1|7§]", "(1, rows)", "y[1].append(2)"), "in a dict": ("rows = [§1|7§]", "{'a': {'b': rows}}", "y['a']['b'].append(2)"),
    "twice": ("rows = [§1|7§]", "[rows, rows]", "y[0].append(2); print(y[1])"), "part of it": ("rows = [[§1|7§], []]", "rows[1]", "y.append(2)"),
    "object": ("class C: pass\nrows = C(); rows.k = §1|7§", "rows", "y.k = 9; print(rows.k); rows = rows.k"), "copy": ("rows = [§1|7§]", "list(rows)", "y.append(2)"),
    "array": ("import numpy\nrows = numpy.array([§1|7§, 2])", "rows", "y[0] = 3"), "view of an array": ("import numpy\nrows = numpy.array([§1|7§, 2])", "rows[1:].T", "y[0] = 3"),
    "array that was made": ("import numpy\nrows = numpy.array([§1|7§, 2])", "(rows * 2)[1:]", "y[0] = 3"),
    "set": ("rows = {§1|7§}", "rows", "y.add(2); rows = sorted(rows)"), "member of an enum": ("import enum\nclass E(enum.Enum):\n    A = §1|7§\nrows = [E.A]", "rows[0]", "print(y is E.A)"),
}.items():
    prog("alias in a block: " + name, {"main": H + f'{setup}\nwith persistent_cache("m"):\n    print("COMPUTE")\n    y = {result}\n{after}\nprint(rows)\n'})
    prog("alias of a global: " + name, {"main": H + f'{setup}\n@persistent_cache\ndef f():\n    print("COMPUTE")\n    return {result}\ny = f()\n{after}\nprint(rows)\n'})
    prog("alias of an argument: " + name, {"main": H + f'{setup}\n@persistent_cache\ndef f(rows):\n    print("COMPUTE")\n    return {result}\ny = f(rows)\n{after}\nprint(rows)\n'})


REFUSED = {"mangled": "inside a class", "mangled attr": "inside a class"}
# They change what their keys cover, and so are computed each time.
NEVER_KEPT = {"method block self write", "default mutated", "random seeded", "global import", *(f"{where}: view of an array" for where in ("alias in a block", "alias of a global", "alias of an argument"))}


def problems(run, directory, files, name):
    edits.write(directory, files, None, False)
    plain = run(directory, False)
    if plain[0]:
        return ["the program is broken: " + plain[2][-300:]]
    first, second = run(directory, True), run(directory, True)
    if name in REFUSED:
        return [] if first[0] and REFUSED[name] in first[2] else ["not refused"]
    found = []
    for which, one in enumerate((first, second)):
        if one[0] or edits.result(one[1]) != edits.result(plain[1]):
            found.append(f"run {which + 1}: {edits.result(one[1])}, right is {edits.result(plain[1])} {one[2][-300:]}")
    if "COMPUTE" in second[1] and name not in NEVER_KEPT:
        found.append("computed again: " + second[2][-300:])
    for which in range(len(edits.EDIT.findall("".join(files.values())))):
        edits.write(directory, files, which, False)
        right, got = run(directory, False), run(directory, True)
        if got[0] != right[0] or edits.result(got[1]) != edits.result(right[1]):
            found.append(f"edit {which + 1}: {edits.result(got[1])}, right is {edits.result(right[1])} {got[2][-300:]}")
    return found


def main():
    work = tempfile.mkdtemp(prefix="stet-programs-", dir=os.environ.get("TMPDIR"))
    stet.Project.init(os.path.join(work, "project")).close()
    import asyncio  # noqa: F401 what children would load again

    run, failed = edits.Runner(False), 0
    for number, (name, files) in enumerate(PROGRAMS.items(), 1):
        directory = os.path.join(work, f"p{number}")
        shutil.copytree(os.path.join(work, "project"), directory)
        found = problems(run, directory, files, name)
        failed += bool(found)
        print(f"{'not ok' if found else 'ok'} {number} - {name}")
        for line in found:
            print("#", line.replace("\n", "\n# "))
    print(f"1..{len(PROGRAMS)}")
    shutil.rmtree(work, ignore_errors=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
