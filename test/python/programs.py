#!/usr/bin/python3
"""Programs in which a dependency is easily lost, each edited at one place, with and without the cache (edits.py has the runner and the oracle). One line of TAP each."""
import os, shutil, sys, tempfile

import edits, stet

H = "from stet import persistent_cache\n"
PROGRAMS = {}


def prog(name, files):
    PROGRAMS[name] = {path + ".py": text for path, text in files.items()}


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


REFUSED = {"mangled": "inside a class", "mangled attr": "inside a class"}
# They change what their keys cover, and so are computed each time.
NEVER_KEPT = {"method block self write", "default mutated", "random seeded", "global import"}


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
