#!/usr/bin/python3
"""Generated programs of several files, each edited at one place, with and without the cache.

A program is made of four choices: what the cached code depends on (SOURCES), the way that leads there (PATHS), the statement it is used in (USES) and what is cached
(ROOTS). It runs with the cache, again (which should find the result), then edited. The oracle is the same program in a process whose `persistent_cache` does nothing: it
shares no line with what it judges. A result that differs is stale; a program that is refused with an error of stet's is counted apart; a second run
that computes is a needless miss.

    edits.py [--count N] [--seed N] [--keep] [--only TEXT] [--spawn]
"""
import argparse, collections, os, pathlib, random, re, shutil, subprocess, sys, tempfile, textwrap, types

# (name, definition of N, an expression with N and x that gives a number). §a|b§ is a place to edit; further ones are edits of their own.
SOURCES = [s.strip("\n").split("\n") for s in r'''
constant
N = §1|7§
= N + x

negative constant
N = -§1|7§
= x - N

float
N = §1.5|2.5§
= N + x

string
N = "§a|bb§"
= len(N) + x

bytes
N = b"§a|bb§"
= len(N) + x

large string
N = "§a|b§" * 10000
= ord(N[77]) + x

large tuple
N = tuple(range(§3000|3001§))
= len(N) + x

tuple in tuple
N = (1, (2, (§1|7§,)))
= N[1][1][0] + x

frozenset of tuples
N = frozenset({(1, "a"), (§2|7§, "b")})
= sum(a for a, _ in N) + x

list
N = [1, §2|7§]
= sum(N) + x

dict
N = {"a": {"b": §1|7§}}
= N["a"]["b"] + x

order of a dict
N = {"§a": 1, "b": 2|b": 2, "a": 1§}
= list(N.values())[0] + x

set
N = {1, §2|7§}
= sum(N) + x

list in a list twice
N = [[1]] * §2|3§
= len(N) + x

shared or equal
A = [1]
N = [A, §A|[1]§]
= (N[0] is N[1]) + x

cycle
N = [§1|7§]
N.append(N)
= N[1][1][0] + x

function
def N(x): return x + §1|7§
= N(x)

default argument
def N(x, k=§1|7§): return x + k
= N(x)

default that is a list
def N(x, k=[§1|7§]): return x + k[0]
= N(x)

keyword-only default
def N(x, *, k=§1|7§): return x + k
= N(x)

lambda
N = lambda x: x + §1|7§
= N(x)

closure
def make(k):
    def inner(x): return x + k
    return inner
N = make(§1|7§)
= N(x)

closure of a closure
def make(k):
    def middle():
        def inner(x): return x + k
        return inner
    return middle()
N = make(§1|7§)
= N(x)

counter with nonlocal
def make(k):
    n = k
    def inner(x):
        nonlocal n
        n = n + 0
        return n + x
    return inner
N = make(§1|7§)
= N(x)

helper of a helper
K = §1|7§
def h(x): return x + K
def N(x): return h(x)
= N(x)

mutual recursion
def N(x): return 0 if x < 1 else other(x - 1) + 1
def other(x): return §1|7§ if x < 1 else N(x - 1)
= N(x)

generator
def N(x):
    for i in range(x): yield i + §1|7§
= sum(N(x))

generator with send
def N(x):
    got = yield §1|7§
    yield from [got, x]
= next(N(x)) + x

coroutine
async def N(x): return x + §1|7§
= __import_asyncio.run(N(x))

asynchronous generator
async def gen(x):
    yield x + §1|7§
async def N(x): return [i async for i in gen(x)][0]
= __import_asyncio.run(N(x))

asynchronous context
class Ctx:
    async def __aenter__(self): return §1|7§
    async def __aexit__(self, *a): return False
async def N(x):
    async with Ctx() as k: return x + k
= __import_asyncio.run(N(x))

function attribute
def N(x): return x + N.k
N.k = §1|7§
= N(x)

annotation
def N(x: §1|7§): return x
= N.__annotations__["x"] + x

name of a function
def §aa|bbbb§(x): return x
N = §aa|bbbb§
= len(N.__name__) + x
* both

docstring
def N(x):
    "§a|bbb§"
    return x
= len(N.__doc__) + x

class attribute
class N:
    k = §1|7§
= N.k + x

class attribute that is a dict
class N:
    k = {"a": [§1|7§]}
= N.k["a"][0] + x

method
class N:
    def m(self, x): return x + §1|7§
= N().m(x)

static method
class N:
    @staticmethod
    def m(x): return x + §1|7§
= N.m(x)

class method
class N:
    k = §1|7§
    @classmethod
    def m(cls, x): return x + cls.k
= N.m(x)

property
class N:
    @property
    def v(self): return §1|7§
= N().v + x

property subclass
class prop(property): pass
class N:
    @prop
    def v(self): return §1|7§
= N().v + x

cached property
import functools
class N:
    @functools.cached_property
    def v(self): return §1|7§
= N().v + x

descriptor
class Lazy:
    def __init__(self, f): self.f = f
    def __get__(self, o, t): return self.f(o)
class N:
    @Lazy
    def v(self): return §1|7§
= N().v + x

descriptor with a name
class Field:
    def __set_name__(self, owner, name): self.name = name
    def __get__(self, o, t): return len(self.name)
class N:
    §aa|bbbbb§ = Field()
= vars(N)[[n for n in vars(N) if isinstance(vars(N)[n], type(list(vars(N).values())[-1]))][0]].__get__(None, N) + x if False else sum(len(n) for n in vars(N) if not n.startswith("_")) + x

slots
class N:
    __slots__ = ("a", "b")
    def __init__(self): self.a = §1|7§
= N().a + x

instance with slots
class C:
    __slots__ = ("a", "b")
N = C()
N.a = §1|7§
= N.a + x

alias of a slot
class N:
    __slots__ = ("a", "b")
    def __init__(self): self.a, self.b = 1, 2
N.c = N.§a|b§
= N().c + x

instance
class C: pass
N = C()
N.k = §1|7§
= N.k + x

instance that is called
class C:
    def __init__(self, k): self.k = k
    def __call__(self, x): return x + self.k
N = C(§1|7§)
= N(x)

instance whose pickling leaves something out
class C:
    def __init__(self, k): self.k = k
    def __getstate__(self): return {}
    def __setstate__(self, s): self.k = 0
N = C(§1|7§)
= N.k + x

instance with its own reduce
class C:
    def __init__(self, k): self.k = k
    def __reduce__(self): return (C, (0,))
N = C(§1|7§)
= N.k + x

getattr hook
class C:
    def __getattr__(self, name): return §1|7§
N = C()
= N.anything + x

getitem
class C:
    def __getitem__(self, i): return i + §1|7§
N = C()
= N[x]

operators
class C:
    def __add__(self, o): return o + §1|7§
    def __radd__(self, o): return o + 1
N = C()
= N + x

comparison
class C:
    def __eq__(self, o): return §True|False§
    __hash__ = None
N = C()
= (N == 3) + x

iteration
class C:
    def __iter__(self): return iter([§1|7§])
N = C()
= sum(N) + x

format hook
class C:
    def __format__(self, spec): return "y" * §1|7§
N = C()
= len(f"{N:>3}") + x

bool hook
class C:
    def __bool__(self): return §True|False§
N = C()
= (1 if N else 2) + x

class getitem
class N:
    def __class_getitem__(cls, i): return i + §1|7§
= N[x]

base class
class B:
    def m(self, x): return x + §1|7§
class N(B): pass
= N().m(x)

super
class B:
    def m(self, x): return x + §1|7§
class N(B):
    def m(self, x): return super().m(x)
= N().m(x)

two bases
class A:
    def m(self, x): return x + 1
class B:
    def m(self, x): return x + 2
class N(§A, B|B, A§): pass
= N().m(x)

nested class
class N:
    class I:
        k = §1|7§
= N.I.k + x

metaclass method
class M(type):
    def k(cls, x): return x + §1|7§
class N(metaclass=M): pass
= N.k(x)

metaclass call
class M(type):
    def __call__(cls, x): return x + §1|7§
class N(metaclass=M): pass
= N(x)

metaclass prepare
class M(type):
    @classmethod
    def __prepare__(m, name, bases): return {"k": §1|7§}
class N(metaclass=M): pass
= N.k + x

metaclass instancecheck
class M(type):
    def __instancecheck__(cls, o): return §True|False§
class N(metaclass=M): pass
= isinstance(3, N) + x

init_subclass registry
class B:
    all = []
    def __init_subclass__(cls): B.all.append(cls)
class S(B):
    k = §1|7§
N = B
= N.all[0].k + x

abstract class with registered
import abc
class N(abc.ABC): pass
class S: pass
§N.register(S)|pass§
s = S()
N.instance = s
= isinstance(N.instance, N) + x

order of attributes
class N:
    §a = 1|b = 2§
    §b = 2|a = 1§
= [v for v in vars(N).values() if isinstance(v, int)][0] + x
* both

class decorator
def deco(k):
    def d(cls):
        cls.k = k
        return cls
    return d
@deco(§1|7§)
class N: pass
= N.k + x

type call
N = type("N", (), {"k": §1|7§})
= N.k + x

new class
import types
N = types.new_class("N", (), {}, lambda ns: ns.update(k=§1|7§))
= N.k + x

method added later
class N: pass
def m(self, x): return x + §1|7§
N.m = m
= N().m(x)

method replaced
class N:
    def m(self, x): return x
N.m = lambda self, x: x + §1|7§
= N().m(x)

function replaced
def N(x): return x
old = N
def N(x): return old(x) + §1|7§
= N(x)

defaults replaced
def N(x, k=1): return x + k
N.__defaults__ = (§1|7§,)
= N(x)

code replaced
def N(x): return x
def other(x): return x + §1|7§
N.__code__ = other.__code__
= N(x)

dataclass default
import dataclasses
@dataclasses.dataclass
class N:
    k: int = §1|7§
= N().k + x

dataclass factory
import dataclasses
@dataclasses.dataclass
class N:
    k: list = dataclasses.field(default_factory=lambda: [§1|7§])
= N().k[0] + x

dataclass metadata
import dataclasses
@dataclasses.dataclass
class N:
    k: int = dataclasses.field(default=1, metadata={"m": §1|7§})
= dataclasses.fields(N)[0].metadata["m"] + x
import dataclasses

dataclass instance
import dataclasses
@dataclasses.dataclass(frozen=True, slots=True)
class C:
    k: int
N = C(§1|7§)
= N.k + x

dataclass post init
import dataclasses
@dataclasses.dataclass
class N:
    k: int = 1
    def __post_init__(self): self.k += §1|7§
= N().k + x

dataclass order of fields
import dataclasses
@dataclasses.dataclass
class N:
    §a|b§: int
    §b|a§: int
= N(1, 2).a + x
* both

make_dataclass
import dataclasses
N = dataclasses.make_dataclass("N", [("k", int, dataclasses.field(default=§1|7§))])
= N().k + x

match args
class N:
    __match_args__ = ("§a|b§",)
    a, b = 1, 2
= __match(N(), N) + x
def __match(o, cls):
    match o:
        case cls(k): return k

named tuple
import collections
N = collections.namedtuple("N", "a b", defaults=[1, §2|7§])
= N().b + x

NamedTuple
import typing
class N(typing.NamedTuple):
    a: int = §1|7§
= N().a + x

enum
import enum
class N(enum.Enum):
    A = §1|7§
= N.A.value + x

enum method
import enum
class N(enum.Enum):
    A = 1
    def m(self): return §1|7§
= N.A.m() + x

flags
import enum
class N(enum.IntFlag):
    A = §1|4§
= N.A + x

type variable
import typing
class A: k = 1
class B: k = 2
N = typing.TypeVar("N", bound=§A|B§)
= N.__bound__.k + x

generic alias
class A: k = 1
class B: k = 2
N = list[§A|B§]
= N.__args__[0].k + x

union
class A: k = 1
class B: k = 2
N = int | §A|B§
= N.__args__[1].k + x

protocol
import typing
@typing.runtime_checkable
class N(typing.Protocol):
    def §aa|bb§(self): ...
class S:
    def aa(self): ...
N.s = S()
= isinstance(N.s, N) + x

partial
import functools
def g(a, x): return a + x
N = functools.partial(g, §1|7§)
= N(x)

partial of a partial
import functools
def g(a, b, x): return a + b + x
N = functools.partial(functools.partial(g, §1|7§), b=2)
= N(x=x)

partialmethod
import functools
class N:
    def g(self, a, x): return a + x
    h = functools.partialmethod(g, §1|7§)
= N().h(x)

lru_cache
import functools
@functools.lru_cache
def N(x): return x + §1|7§
= N(x)

cache on a method
import functools
class N:
    @functools.cache
    def m(self, x): return x + §1|7§
= N().m(x)

singledispatch
import functools
@functools.singledispatch
def N(x): return 0
@N.register
def _(x: int): return x + §1|7§
= N(x)

singledispatchmethod
import functools
class N:
    @functools.singledispatchmethod
    def m(self, x): return 0
    @m.register
    def _(self, x: int): return x + §1|7§
= N().m(x)

wraps
import functools
def deco(k):
    def d(f):
        @functools.wraps(f)
        def w(*a): return f(*a) + k
        return w
    return d
@deco(§1|7§)
def N(x): return x
= N(x)

wraps of the inside
import functools
def deco(f):
    @functools.wraps(f)
    def w(*a): return f(*a)
    return w
@deco
def N(x): return x + §1|7§
= N(x)

decorator without wraps
def deco(f):
    return lambda *a: f(*a) * §1|7§
@deco
def N(x): return x + 1
= N(x)

decorator that is a class
import functools
class D:
    def __init__(self, f): functools.update_wrapper(self, f); self.f = f
    def __call__(self, x): return self.f(x) * §1|7§
@D
def N(x): return x + 1
= N(x)

wraps of a library function
import functools, json
@functools.wraps(json.dumps)
def N(x): return x + §1|7§
= N(x)

wraps above a cached function
import functools
from stet import persistent_cache
@persistent_cache
def inner(x): return x
@functools.wraps(inner)
def N(x): return inner(x) + §1|7§
= N(x)

cached helper
from stet import persistent_cache
K = §1|7§
@persistent_cache
def N(x): return x + K
= N(x)

attribute of a cached helper
from stet import persistent_cache
@persistent_cache
def N(x): return x
N.k = §1|7§
= N(x) + N.k

total ordering
import functools
@functools.total_ordering
class N:
    def __init__(self, k): self.k = k
    def __eq__(self, o): return self.k == o.k
    def __lt__(self, o): return self.k < o.k §+ 0|+ 9§
= (N(3) >= N(2)) + x

context manager
import contextlib
@contextlib.contextmanager
def N(x): yield x + §1|7§
= __enter(N(x))
def __enter(c):
    with c as v: return v

context class
class N:
    def __init__(self, x): self.x = x
    def __enter__(self): return self.x + §1|7§
    def __exit__(self, *a): return False
= __enter(N(x))
def __enter(c):
    with c as v: return v

exit stack
import contextlib
def N(x):
    with contextlib.ExitStack() as s:
        s.callback(lambda: None)
        return x + §1|7§
= N(x)

exception
class N(Exception):
    code = §1|7§
= __catch(N) + x
def __catch(e):
    try: raise e("m")
    except e as got: return got.code

exception instance
N = ValueError(§1|7§)
= N.args[0] + x

attrgetter
import operator
N = operator.attrgetter("§real|imag§")
= int(N(3 + 4j)) + x

itemgetter
import operator
N = operator.itemgetter(§0|1§)
= N([1, 7]) + x

methodcaller
import operator
N = operator.methodcaller("index", §1|7§)
= N([1, 7]) + x

bound method
class C:
    def __init__(self, k): self.k = k
    def m(self, x): return x + self.k
N = C(§1|7§).m
= N(x)

bound slot method
N = (§1|7§).__add__
= N(x)

bound method of a list
N = [§1|7§, 2].index
= N(2) + x

iterator in a closure
import itertools
def N(x): return list(itertools.accumulate([x, §1|7§]))[-1]
= N(x)

reduce
import functools
def N(x): return functools.reduce(lambda a, b: a + b, [x, §1|7§])
= N(x)

dict of lambdas
N = {"k": lambda x: x + §1|7§}
= N["k"](x)

list of functions
def a(x): return x + §1|7§
N = [a]
= N[0](x)

namespace
import types
N = types.SimpleNamespace(k=§1|7§)
= N.k + x

mapping proxy
import types
N = types.MappingProxyType({"k": §1|7§})
= N["k"] + x

ordered and default dicts
import collections
N = collections.defaultdict(lambda: §1|7§)
= N.default_factory() + x

chain map
import collections
N = collections.ChainMap({}, {"k": §1|7§})
= N["k"] + x

counter
import collections
N = collections.Counter(a=§1|7§)
= N["a"] + x

deque
import collections
N = collections.deque([1, §2|7§], maxlen=3)
= N[1] + x

array
import array
N = array.array("i", [1, §2|7§])
= N[1] + x

bytearray
N = bytearray(b"§a|b§")
= N[0] + x

memoryview
N = memoryview(b"§a|b§")
= N[0] + x

weak reference
import weakref
class C: pass
c = C()
c.k = §1|7§
N = weakref.ref(c)
= N().k + x

context variable
import contextvars
N = contextvars.ContextVar("N", default=0)
N.set(§1|7§)
= N.get() + x

thread local
import threading
N = threading.local()
N.k = §1|7§
= N.k + x

decimal
import decimal
N = decimal.Decimal("§1.5|2.5§")
= int(N * 10) + x

fraction
import fractions
N = fractions.Fraction(1, §2|3§)
= N.denominator + x

date
import datetime
N = datetime.date(2024, 1, §1|7§)
= N.day + x

path
import pathlib
N = pathlib.PurePosixPath("§a|bb§")
= len(N.name) + x

pattern
import re
N = re.compile("§a|b§")
= bool(N.match("a")) + x

range and slice
N = slice(0, §1|2§)
= len([1, 2, 3][N]) + x

complex
N = §1|7§j
= int(N.imag) + x

subclass of dict
class D(dict): pass
N = D(k=§1|7§)
= N["k"] + x

subclass of list with attributes
class L(list): pass
N = L([1])
N.k = §1|7§
= N.k + x

subclass of int
class I(int):
    def twice(self): return self * §2|3§
N = I(4)
= N.twice() + x

subclass of str
class S(str): pass
N = S("§a|bb§")
= len(N) + x

subclass of tuple
class T(tuple): pass
N = T((1, §2|7§))
= N[1] + x

subclass of an ordered dict
import collections
class D(collections.OrderedDict): pass
N = D(k=§1|7§)
= N["k"] + x

subclass of partial
import functools
class P(functools.partial): pass
N = P(lambda a, x: a + x, §1|7§)
= N(x)

sentinel by identity
A = object()
B = object()
N = (A, §A|B§)
= (N[0] is N[1]) + x

linked list
class Node:
    def __init__(self, k, n): self.k, self.n = k, n
N = Node(1, Node(2, Node(§3|7§, None)))
= N.n.n.k + x

conditional definition
FLAG = §True|False§
if FLAG:
    def N(x): return x + 1
else:
    def N(x): return x + 2
= N(x)

definition in try
try:
    import nothing_of_this_name
except ImportError:
    def N(x): return x + §1|7§
= N(x)

definition in a loop
for k in (1, §2|7§):
    def N(x, k=k): return x + k
= N(x)

definition with exec
space = {}
exec("def N(x): return x + §1|7§", space)
N = space["N"]
= N(x)

comprehension at the top
N = [i * §2|7§ for i in range(3)]
= N[2] + x

walrus at the top
(N := §1|7§)
= N + x

unpacked
N, *rest = §1|7§, 2, 3
= N + x

augmented
N = 1
N += §1|7§
= N + x

match at the top
match §1|7§:
    case 1: N = 10
    case _: N = 20
= N + x

with at the top
import contextlib
with contextlib.nullcontext(§1|7§) as N: pass
= N + x

global set by a function
N = 0
def init():
    global N
    N = §1|7§
init()
= N + x

format string
K = §1|7§
N = f"{K:03}"
= int(N) + x

lambda default
N = (lambda k=§1|7§: lambda x: x + k)()
= N(x)

star arguments
ARGS = (1, §2|7§)
def N(*a): return sum(a) + sum(ARGS)
= N(*(1, x))

keyword arguments
OPTS = {"k": §1|7§}
def N(x, **o): return x + o["k"]
def call(x): return N(x, **OPTS)
N.call = call
= N.call(x)

positional only
def N(x, /, k=§1|7§, *rest, z=2, **more): return x + k + z
= N(x)

comparison chain
K = §1|7§
def N(x): return 0 < K < 5 < x + 9
= N(x) + x

conditional expression
K = §1|7§
def N(x): return x if K > 3 else -x
= N(x)

try and finally
K = §1|7§
def N(x):
    try: return x // 0
    except ZeroDivisionError as e: return x + K
    else: return 0
    finally: pass
= N(x)

exception group
K = §1|7§
def N(x):
    try: raise ExceptionGroup("g", [ValueError(x)])
    except* ValueError as e: got = e.exceptions[0].args[0] + K
    return got
= N(x)

while and break
K = §1|7§
def N(x):
    while True:
        x += K
        if x > 10: break
    else: x = 0
    return x
= N(x)

assert
K = §1|7§
def N(x):
    try: assert K == 1, "no"
    except AssertionError: return 0
    return x
= N(x)

delete
K = [1, §2|7§]
def N(x):
    k = list(K)
    del k[0]
    return k[0] + x
= N(x)

star in calls and displays
K = [§1|7§]
def N(x): return sum([*K, *(x,), *{**{"a": 1}}.values()])
= N(x)

slices and subscripts
K = [1, 2, 3]
def N(x): return K[§0|1§:][0] + K[-1] + x
= N(x)

set and dict comprehensions
K = §1|7§
def N(x): return sum({i + K for i in range(x)}) + sum({i: i * K for i in range(x)}.values())
= N(x)

nested comprehensions
K = §1|7§
def N(x): return sum(i * j * K for i in range(x) for j in range(i) if j != K)
= N(x)

nested functions and classes
K = §1|7§
def N(x):
    class Z:
        q = K
        def m(self): return [lambda: Z.q + x][0]
    return Z().m()()
= N(x)

class in a function with bases
class B:
    k = §1|7§
def N(x):
    class Z(B): pass
    return Z.k + x
= N(x)

decorator in a function
def deco(f): return lambda x: f(x) + §1|7§
def N(x):
    @deco
    def g(y): return y
    return g(x)
= N(x)

lambda in an argument
K = §1|7§
def N(x): return max([x, 2], key=lambda i: -i * K) + K
= N(x)

global statement
K = §1|7§
def N(x):
    global K
    K = K
    return K + x
= N(x)

match with classes and guards
class P:
    __match_args__ = ("a",)
    def __init__(self, a): self.a = a
K = §1|7§
def N(x):
    match P(x):
        case P(a) if a > K: return 1
        case P(a=2): return 2
        case {"k": v, **rest}: return 3
        case [a, *b]: return 4
        case 5 | 6 as n: return n
        case _: return 7
= N(x)

match with a value
class V: A = §2|3§
def N(x):
    match x:
        case V.A: return 1
        case _: return 0
= N(x)

annotation in a body
K = §1|7§
def N(x):
    y: "int" = K
    return x + y
= N(x)

two in one line
K = §1|7§; J = 2
def N(x): return x + K; return 0
= N(x)

print to a stream
import sys
K = §1|7§
def N(x):
    print("x", file=sys.stderr)
    return x + K
= N(x)

logger
import logging
log = logging.getLogger("a")
K = §1|7§
def N(x):
    log.debug("x")
    return x + K
= N(x)

library function with a callback
import functools
def key(v): return v * §1|-1§
def N(x): return sorted([1, x, 3], key=key)[0]
= N(x)

cmp_to_key
import functools
N = functools.cmp_to_key(lambda a, b: (a - b) * §1|-1§)
= sorted([1, 3], key=N)[0] + x

user list of classes
class A: k = 1
class B: k = §2|7§
N = [A, B]
= N[1]().k + x

subclass hook
class N:
    @classmethod
    def __subclasshook__(cls, c): return True
    k = §1|7§
= N.k + x

set of instances
class C:
    def __init__(self, k): self.k = k
N = {C(1), C(§2|7§)}
= sum(c.k for c in N) + x

set of classes that know the set
class B:
    all = set()
    def __init_subclass__(cls): B.all.add(cls)
class S1(B): k = 1
class S2(B): k = §2|7§
N = B
= sum(c.k for c in N.all) + x

set of functions that use the set
def a(x): return len(N) + x
def b(x): return x * §2|7§
N = {a, b}
= sum(f(x) for f in N)

dict with objects as keys
class C:
    def __init__(self, k): self.k = k
N = {C(§1|7§): 2}
= list(N)[0].k + x

getattribute hook
class N:
    def __getattribute__(self, name): return §1|7§
= N().anything + x

new
class N:
    def __new__(cls, x):
        self = super().__new__(cls)
        self.v = x + §1|7§
        return self
= N(x).v

class of an instance changed
class A: k = 1
class B: k = 2
N = A()
N.__class__ = §A|B§
= N.k + x

property with a setter
class N:
    @property
    def v(self): return self._v
    @v.setter
    def v(self, v): self._v = v + §1|7§
    def __init__(self, x): self.v = x
= N(x).v

abstract property
import abc
class B(abc.ABC):
    @property
    @abc.abstractmethod
    def v(self): ...
class N(B):
    @property
    def v(self): return §1|7§
= N().v + x

NewType and Annotated
import typing
N = typing.Annotated[int, §1|7§]
= N.__metadata__[0] + x

literal
import typing
N = typing.Literal[§1|7§]
= N.__args__[0] + x

generic class
import typing
T = typing.TypeVar("T")
class N(typing.Generic[T]):
    k = §1|7§
    def __init__(self, v: T): self.v = v
= N[int](x).k + x

method type
import types
def m(self, x): return x + self.k
class C: pass
c = C()
c.k = §1|7§
N = types.MethodType(m, c)
= N(x)

function with globals of its own
import types
def t(x): return x + K
N = types.FunctionType(t.__code__, {"K": §1|7§, "__builtins__": {}}, "n")
= N(x)

user dict
import collections
class D(collections.UserDict):
    def __missing__(self, k): return §1|7§
N = D()
= N["a"] + x

encoder subclass
import json
class N(json.JSONEncoder):
    def default(self, o): return §1|7§
= int(json.dumps(object(), cls=N)) + x
import json

template subclass
import string
class N(string.Template):
    delimiter = "§%|#§"
= len(N("%a").safe_substitute(a="xyz")) + x

enum with auto and missing
import enum
class N(enum.Enum):
    A = enum.auto()
    B = §2|7§
    @classmethod
    def _missing_(cls, v): return cls.B
= N(99).value + x

dataclass inheritance
import dataclasses
@dataclasses.dataclass
class B:
    a: int = §1|7§
@dataclasses.dataclass(kw_only=True)
class N(B):
    b: int = 2
= N().a + x

dataclass init var
import dataclasses
@dataclasses.dataclass
class N:
    a: dataclasses.InitVar[int] = §1|7§
    def __post_init__(self, a): self.b = a
= N().b + x

asynchronous context manager
import contextlib
@contextlib.asynccontextmanager
async def cm(): yield §1|7§
async def N(x):
    async with cm() as k: return x + k
= __import_asyncio.run(N(x))

context decorator
import contextlib
class D(contextlib.ContextDecorator):
    k = 0
    def __enter__(self): D.k = §1|7§
    def __exit__(self, *a): return False
def N(x):
    with D(): return x + §1|7§
= N(x)

future annotations
from __future__ import annotations
import dataclasses
@dataclasses.dataclass
class N:
    a: int = §1|7§
= N().a + x

structure of ctypes
import ctypes
class P(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int)]
N = P(§1|7§)
= N.a + x

string buffer
import io
N = io.StringIO("§a|bb§")
= len(N.getvalue()) + x

map object
N = list(map(lambda v: v * §1|7§, [1, 2]))
= N[1] + x

random generator with a seed
import random
N = random.Random(§1|7§)
= int(random.Random(N.getstate()[1][0]).random() * 100) + x
import random

chain of partial and wraps
import functools
def g(a, b): return a + b
@functools.wraps(g)
def h(*a): return functools.partial(g, §1|7§)(*a)
N = functools.lru_cache(maxsize=8)(h)
= N(x)

exception subclass with state
class E1(Exception):
    def __init__(self, k): self.k = k
N = E1(§1|7§)
= N.k + x

subclass of a deque that hides itself
import collections
class D(collections.deque):
    def __reduce__(self): return (D, ())
N = D([§1|7§])
= N[0] + x

decorated class
import functools
def register(cls):
    cls.all = [cls]
    cls.k = §1|7§
    return cls
@register
class N: pass
= N.all[0].k + x

class with a lambda field
class N:
    f = lambda self, x: x + §1|7§
= N().f(x)

module-level loop state
N = []
for i in range(§3|5§): N.append(lambda x, i=i: x + i)
= N[-1](x)

numpy array
import numpy
N = numpy.array([1, §2|7§])
= int(N.sum()) + x

numpy ufunc
import numpy
N = numpy.frompyfunc(lambda v: v + §1|7§, 1, 1)
= int(N(x))

numpy vectorize
import numpy
N = numpy.vectorize(lambda v: v + §1|7§)
= int(N(x))

numpy structured
import numpy
N = numpy.array([(1, §2|7§)], dtype=[("a", "i4"), ("b", "i4")])
= int(N["b"][0]) + x

string annotations of a class
class N:
    a: "§int|str§" = 1
= len(N.__annotations__["a"]) + N.a + (N.__annotations__["a"] == "int") + x

default of a context variable
import contextvars
N = contextvars.ContextVar("N", default=§1|7§)
= N.get() + x

default of a context variable elsewhere
import contextvars
N = contextvars.ContextVar("N", default=§1|7§)
N.set(3)
= __elsewhere(N) + x
import contextvars
def __elsewhere(v): return contextvars.Context().run(v.get)

default dict of one's own
import collections
class D(collections.defaultdict): pass
N = D(lambda: §1|7§)
= N.default_factory() + x

order of an ordered dict of one's own
import collections
class D(collections.OrderedDict): pass
N = D(a=1, b=2, c=3)
N.move_to_end("§a|b§")
= list(N.values())[0] + x

cause of an exception
class E1(OSError): pass
N = E1(1, "x")
N.__cause__ = KeyError(§1|7§)
= N.__cause__.args[0] + x

member of an exception
N = OSError(1, "x")
N.errno = §1|7§
= N.errno + x

note of an exception
N = ValueError()
N.add_note("§a|bb§")
= len(N.__notes__[0]) + x

UUID that hides itself
import uuid
class I(uuid.UUID):
    def __getstate__(self): return {}
N = I(int=§1|7§)
= N.int + x

buffer that hides itself
import io
class B(io.StringIO):
    def __getstate__(self): return ("", None, 0, None)
N = B("§a|bb§")
= len(N.getvalue()) + x

list that iterates otherwise
class L(list):
    def __iter__(self): return iter(())
N = L([§1|7§])
= N[0] + x

dict with items of its own
class D(dict):
    def items(self): return ()
    def __iter__(self): return iter(())
N = D(a=§1|7§)
= N["a"] + x

named tuple that hides itself
import collections
class D(collections.namedtuple("P", "a")):
    def __getnewargs__(self): return (0,)
    def __iter__(self): return iter(())
N = D(§1|7§)
= N.a + x

partial that hides itself
import functools
class P(functools.partial):
    def __reduce__(self): return (P, (int,))
N = P(int, §1|7§)
= N() + x

date that hides itself
import datetime
class D(datetime.date):
    def __reduce__(self): return (D, (1, 1, 1))
N = D(2024, 1, §1|7§)
= N.day + x

thread local of one's own
import threading
class T(threading.local): pass
N = T()
N.k = §1|7§
= N.k + x

array of one's own
import numpy
class A(numpy.ndarray):
    def __reduce__(self): return (A, ())
N = numpy.array([§1|7§]).view(A)
= int(N[0]) + x

sign of NaN
import math
N = §+|-§float("nan")
= int(math.copysign(1, N)) + x
import math

owner of memory
N = memoryview(b"a§b|c§")[:1]
= N.obj[1] + x

writable memory
N = memoryview(§b"a"|bytearray(b"a")§)
= N.readonly + x

NewType
import typing
N = typing.NewType("N", §int|bool§)
= int(N.__supertype__(7)) + x

parameters
import typing
N = typing.ParamSpec("§P|QQ§")
= len(N.__name__) + x

struct
import struct
N = struct.Struct("§<h|<i§")
= N.size + x

decoder with a hook
import json
N = json.JSONDecoder(object_hook=lambda d: §1|7§)
= N.decode("{}") + x

patch of a library's class
import string
string.Formatter.get_value = lambda self, k, a, kw: §1|7§
N = string.Formatter
= N().get_field("a", (), {})[0] + x

patch of a library's module
import fnmatch
fnmatch.fnmatchcase = lambda a, b: §1|7§
N = fnmatch.fnmatch
= N("a", "b") + x

partial in a library
import fnmatch, functools
fnmatch.fnmatchcase = functools.partial(lambda k, a, b: k, §1|7§)
N = fnmatch.fnmatch
= N("a", "b") + x

object in a library
import fnmatch
class C:
    def __init__(self, k): self.k = k
    def __call__(self, a, b): return self.k
fnmatch.fnmatchcase = C(§1|7§)
N = fnmatch.fnmatch
= N("a", "b") + x

class in a library
import textwrap
class W(textwrap.TextWrapper):
    def fill(self, text): return §1|7§
textwrap.TextWrapper = W
N = textwrap.fill
= N("a") + x

patch of a library far away
import fnmatch, posixpath
posixpath.normcase = lambda p: p * §1|7§
fnmatch.fnmatchcase = lambda a, b: len(a)
N = fnmatch.fnmatch
= N("a", "b") + x

weak dictionary
import weakref
class C: pass
c = C()
c.k = §1|7§
N = weakref.WeakValueDictionary(a=c)
= N["a"].k + x

keyword of a class
class B:
    def __init_subclass__(cls, k=0): cls.k = k
class N(B, k=§1|7§): pass
= N.k + x

class of a module
import sys, types
class M(types.ModuleType):
    @property
    def k(self): return §1|7§
N = M("m")
= N.k + x

function in a frozen dataclass
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    f: object
N = C(lambda x: x + §1|7§)
= N.f(x)

order flag of a dataclass
import dataclasses
@dataclasses.dataclass(order=True)
class C:
    a: int = dataclasses.field(compare=§True|False§)
    b: int = 0
N = (C(1, 2), C(2, 1))
= (N[0] < N[1]) + x

enum alias
import enum
class N(enum.Enum):
    A = 1
    B = §1|2§
= len(N) + x
'''.strip().split("\n\n")]

# How the cached code gets at N: files besides main, imports at the top of main, imports inside the cached code, what N is called there, and how the definition is spread.
# {D} is the definition. `where`: the file that holds it.
PATHS = {
    "same file": dict(where="main", n="N"),
    "import": dict(where="b", top="import b", n="b.N"),
    "import as": dict(where="b", top="import b as q", n="q.N"),
    "from import": dict(where="b", top="from b import N", n="N"),
    "from import as": dict(where="b", top="from b import N as q", n="q"),
    "import star": dict(where="b", top="from b import *", n="N"),
    "re-export": dict(where="b", files={"c.py": "from b import N\n"}, top="from c import N", n="N"),
    "re-export by module": dict(where="b", files={"c.py": "import b\n"}, top="import c", n="c.b.N"),
    "re-export by star": dict(where="b", files={"c.py": "from b import *\n"}, top="import c", n="c.N"),
    "inside: import": dict(where="b", inner="import b", n="b.N"),
    "inside: import as": dict(where="b", inner="import b as q", n="q.N"),
    "inside: from import": dict(where="b", inner="from b import N", n="N"),
    "inside: from import as": dict(where="b", inner="from b import N as q", n="q"),
    "inside: re-export": dict(where="b", files={"c.py": "from b import N\n"}, inner="import c", n="c.N"),
    "inside: in try": dict(where="b", inner="try:\n    import b as q\nexcept ImportError:\n    q = None", n="q.N"),
    "inside: used in a lambda": dict(where="b", inner="import b\nget = lambda: b.N", n="get()"),
    "inside: module as a value": dict(where="b", inner="import b\nq = [b][0]", n="q.N"),
    "inside: in a helper": dict(where="b", top="def get():\n    from b import N as q\n    return q", n="get()"),
    "inside: in a helper of another module": dict(where="b", files={"c.py": "def get():\n    import b\n    return b.N\n"}, top="import c", n="c.get()"),
    "package": dict(where="pkg/b", top="import pkg.b", n="pkg.b.N"),
    "package, as": dict(where="pkg/b", top="import pkg.b as q", n="q.N"),
    "package, from": dict(where="pkg/b", top="from pkg import b", n="b.N"),
    "package, from module": dict(where="pkg/b", top="from pkg.b import N", n="N"),
    "package, its init": dict(where="pkg/b", files={"pkg/__init__.py": "from .b import N\n"}, top="import pkg", n="pkg.N"),
    "package, inside": dict(where="pkg/b", inner="import pkg.b", n="pkg.b.N"),
    "package, inside, as": dict(where="pkg/b", inner="import pkg.b as q", n="q.N"),
    "package, inside, from": dict(where="pkg/b", inner="from pkg import b", n="b.N"),
    "relative at the top": dict(where="pkg/b", files={"pkg/m.py": "from . import b\ndef get(): return b.N\n"}, top="from pkg.m import get", n="get()"),
    "relative inside": dict(where="pkg/b", files={"pkg/m.py": "def get():\n    from .b import N\n    return N\n"}, top="from pkg import m", n="m.get()"),
    "relative inside, module": dict(where="pkg/b", files={"pkg/m.py": "def get():\n    from . import b\n    return b.N\n"}, top="from pkg import m", n="m.get()"),
    "relative, two up": dict(where="pkg/b", files={"pkg/s/__init__.py": "", "pkg/s/m.py": "def get():\n    from ..b import N as q\n    return q\n"}, top="import pkg.s.m", n="pkg.s.m.get()"),
    "namespace package": dict(where="ns/b", top="import ns.b", n="ns.b.N"),
    "lazy module attribute": dict(where="b", files={"c.py": "def __getattr__(name):\n    import b\n    return getattr(b, name)\n"}, top="import c", n="c.N"),
    "getattr of a module": dict(where="b", top="import b", n='getattr(b, "N")'),
    "vars of a module": dict(where="b", top="import b", n='vars(b)["N"]'),
    "module as a value": dict(where="b", top="import b", inner="q = b", n="q.N"),
    "module in a dict": dict(where="b", top='import b\nMODULES = {"b": b}', n='MODULES["b"].N'),
    "module as a default": dict(where="b", top="import b\ndef get(m=b): return m.N", n="get()"),
    "module in a closure": dict(where="b", top="def outer():\n    import b\n    def get(): return b.N\n    return get\nget = outer()", n="get()"),
    "module in a class": dict(where="b", top="import b\nclass H: m = b", n="H.m.N"),
    "module, chosen": dict(where="b", top="import b, math", n="(b if x else math).N"),
    "module with star-import, two away": dict(where="b", files={"c.py": "from b import *\nfrom b import N as M\n"}, top="import c", n="c.M"),
    "in a dict": dict(where="main", top_after='D_ = {"k": N}', n='D_["k"]'),
    "in a list of another module": dict(where="b", files={"c.py": "import b\nL = [b.N]\n"}, top="import c", n="c.L[0]"),
    "in an instance": dict(where="b", top="import b\nclass H: pass\nheld_ = H()\nheld_.n = b.N", n="held_.n"),
    "in a class": dict(where="main", top_after="class H_:\n    n = [N]", n="H_.n[0]"),
    "in a closure": dict(where="main", top_after="def outer_(n):\n    return lambda: n\nget_ = outer_(N)", n="get_()"),
    "as a default": dict(where="main", top_after="def get_(n=N): return n", n="get_()"),
    "as a keyword default": dict(where="b", top="import b\ndef get_(*, n=b.N): return n", n="get_()"),
    "in a partial": dict(where="main", top_after="import functools\nget_ = functools.partial(lambda n: n, N)", n="get_()"),
    "through a property": dict(where="main", top_after="class H_:\n    @property\n    def n(self): return N", n="H_().n"),
    "through a chain of modules": dict(where="b", files={"c.py": "import d\ndef get(): return d.get()\n", "d.py": "from b import N\ndef get(): return N\n"}, top="from c import get", n="get()"),
    "monkey patch of a module": dict(where="b", files={"c.py": "N = None\n"}, top="import b, c\nc.N = b.N", n="c.N"),
    "monkey patch of a library": dict(where="b", top="import b, json\njson.N_ = b.N", n="json.N_"),
    "object in place of a module": dict(where="b", files={"c.py": "import sys, b\nclass O:\n    n = [b.N]\nsys.modules[__name__] = O()\n"}, top="import c", n="c.n[0]"),
    "object in place of a module, inside": dict(where="b", files={"c.py": "import sys, b\nclass O:\n    n = [b.N]\nsys.modules[__name__] = O()\n"}, inner="from c import n as q", n="q[0]"),
    "in a class of a library": dict(where="b", top="import b, string\nstring.Formatter.get_value = lambda self, k, a, kw: b.N\ndef ask_(): return string.Formatter().get_field('a', (), {})[0]", n="ask_()"),
    "in a module of a library": dict(where="main", top_after="import fnmatch, functools\nfnmatch.fnmatchcase = functools.partial(lambda n, a, b: n, N)\ndef ask_(): return fnmatch.fnmatch('a', 'b')", n="ask_()"),
    "in a default dict": dict(where="b", top="import b, collections\nclass D_(collections.defaultdict): pass\nheld_ = D_(lambda: b.N)", n="held_.default_factory()"),
    "in an exception": dict(where="main", top_after="held_ = ValueError()\nheld_.__context__ = KeyError(N)", n="held_.__context__.args[0]"),
    "in a context variable": dict(where="main", top_after="import contextvars\nheld_ = contextvars.ContextVar('v', default=N)", n="held_.get()"),
    "in what is given out": dict(where="b", top="import b\n@persistent_cache\ndef give_(n): return [n]", n="give_(b.N)[0]"),
    "argument": dict(where="b", top="import b", argument="b.N", n="n_"),
    "argument in a list": dict(where="b", top="import b", argument="[b.N]", n="n_[0]"),
    "module as an argument": dict(where="b", top="import b", argument="b", n="n_.N"),
    "function as an argument": dict(where="b", top="import b\ndef get(): return b.N", argument="get", n="n_()"),
    "object as an argument": dict(where="b", top="import b\nclass H:\n    def get(self): return b.N", argument="H()", n="n_.get()"),
}

# A statement that turns E, a number that depends on N, into r. Everything that carries a value from one place of the grammar to another.
USES = {
    "assignment": "r = E", "chained": "r = s = E", "unpacking": "r, *s = [E, 1]", "augmented": "r = 0\nr += E", "annotated": "r: int = E", "walrus": "(r := E)",
    "if": "if E > 4: r = 1\nelse: r = E", "while": "r = 0\nwhile r < E: r += 3", "for": "r = 0\nfor i in range(E): r += i", "for else": "for i in (): pass\nelse: r = E",
    "try": "try: r = E\nfinally: pass", "except": "try: raise ValueError(E)\nexcept ValueError as e_: r = e_.args[0]", "with": "import contextlib\nwith contextlib.nullcontext(E) as r: pass",
    "assert": "r = E\nassert r is not None", "delete": "d = [0, E]\ndel d[0]\nr = d[0]", "match": "match E:\n    case 3: r = 30\n    case k: r = k",
    "match guard": "match 1:\n    case _ if E > 5: r = 1\n    case _: r = E", "list": "r = [E][0]", "tuple": "r = (E,)[0]", "dict": 'r = {"k": E}["k"]', "set": "r = sorted({E})[0]",
    "list comprehension": "r = [E for _ in range(1)][0]", "filter of a comprehension": "r = len([i for i in range(20) if i < E])", "set comprehension": "r = max({E + i for i in range(2)})",
    "dict comprehension": "r = {i: E for i in range(1)}[0]", "generator expression": "r = sum(E for _ in range(2))", "iterable of a comprehension": "r = sum(i for i in [E])",
    "lambda": "r = (lambda: E)()", "lambda default": "r = (lambda v=E: v)()", "nested function": "def g_(): return E\nr = g_()", "nested generator": "def g_(): yield E\nr = next(g_())",
    "default of a nested function": "def g_(v=E): return v\nr = g_()", "decorator of a nested function": "def deco_(f): return lambda: f() + E\n@deco_\ndef g_(): return 1\nr = g_()",
    "class body": "class Z_:\n    v_ = E\nr = Z_.v_", "method of a nested class": "class Z_:\n    def m(self): return E\nr = Z_().m()",
    "format string": 'r = int(f"""{E}""")', "nested format": 'r = len(f"""{1:{E}}""")', "call": "r = int(E)", "star arguments": "r = max(*[E, 0])", "keyword arguments": 'r = dict(**{"k": E})["k"]',
    "conditional": "r = E if E else 0", "boolean": "r = 0 or E", "comparison": "r = int(0 < E < 5)", "subscript": "r = list(range(400))[E]", "slice": "r = len(list(range(400))[E:])",
    "operator": "r = -E + 2 * E", "attribute": "r = (E).real", "global chain": "r = [*[E]][0]", "ternary in a call": "r = abs(E if E else -E)",
}

# What is cached. {inner} are imports inside, {use} the statements that leave r, {arg} the argument for N, {param} its parameter.
ROOTS = {
    "function": "@persistent_cache\ndef f(x{param}):\n    say('COMPUTE')\n{body}\n    return r\nprint(f(2{arg}))\n",
    "function with a name": "@persistent_cache('n')\ndef f(x{param}):\n    say('COMPUTE')\n{body}\n    return r\nprint(f(x=2{arg}))\n",
    "through a helper": "def h_(x{param}):\n{body}\n    return r\n@persistent_cache\ndef f(x{param}):\n    say('COMPUTE')\n    return h_(x{pass_})\nprint(f(2{arg}))\n",
    "method": "class A_:\n    @persistent_cache\n    def f(self, x{param}):\n        say('COMPUTE')\n{body8}\n        return r\nprint(A_().f(2{arg}))\n",
    "static method": "class A_:\n    @staticmethod\n    @persistent_cache\n    def f(x{param}):\n        say('COMPUTE')\n{body8}\n        return r\nprint(A_.f(2{arg}))\n",
    "class method": "class A_:\n    @classmethod\n    @persistent_cache\n    def f(cls, x{param}):\n        say('COMPUTE')\n{body8}\n        return r\nprint(A_.f(2{arg}))\n",
    "method of an instance": "class A_:\n    def h(self, x{param}):\n{body8}\n        return r\n@persistent_cache\ndef f(a, x{param}):\n    say('COMPUTE')\n    return a.h(x{pass_})\nprint(f(A_(), 2{arg}))\n",
    "asynchronous": "import asyncio as asyncio_\n@persistent_cache\nasync def f(x{param}):\n    say('COMPUTE')\n{body}\n    return r\nprint(asyncio_.run(f(2{arg})))\n",
    "closure": "def outer_():\n    y_ = 2\n    @persistent_cache\n    def f(x{param}):\n        say('COMPUTE', y_)\n{body8}\n        return r\n    return f\nprint(outer_()(2{arg}))\n",
    "cached by a cached": "@persistent_cache\ndef g_0(x{param}):\n    say('INNER')\n{body}\n    return r\n@persistent_cache\ndef f(x{param}):\n    say('COMPUTE')\n    return g_0(x{pass_})\nprint(f(2{arg}))\n",
    "block with as on its own line": "x = 2\n{bind}with (\n    persistent_cache('b')\n    as cache_\n):\n    say('COMPUTE')\n{body}\nprint(r, type(cache_).__name__)\n",
    "called twice": "@persistent_cache\ndef f(x{param}):\n    say('COMPUTE')\n{body}\n    return r\nf(2{arg})\nf(3{arg})\nprint(f(2{arg}))\n",
    "block": "x = 2\n{bind}with persistent_cache('b') as cache_:\n    say('COMPUTE')\n{body}\nprint(r)\n",
    "block without a name": "x = 2\n{bind}with persistent_cache():\n    say('COMPUTE')\n{body}\nprint(r)\n",
    "block in a function": "def f(x{param}):\n    with persistent_cache('b') as cache_:\n        say('COMPUTE')\n{body8}\n    return r\nprint(f(2{arg}))\n",
    "block in a coroutine": "import asyncio as asyncio_\nasync def f(x{param}):\n    with persistent_cache('b') as cache_:\n        say('COMPUTE')\n{body8}\n    return r\nprint(asyncio_.run(f(2{arg})))\n",
    "block that calls": "def h_(x{param}):\n{body}\n    return r\n{bind}with persistent_cache('b'):\n    say('COMPUTE')\n    z = h_(2{argn})\nprint(z)\n",
}

HEAD = "from stet import persistent_cache\ndef say(*words):\n    print(*words)\n"
EDIT = re.compile(r"§(.*?)\|(.*?)§", re.S)


def parse(lines):
    name, rest = lines[0], lines[1:]
    at = next(i for i, l in enumerate(rest) if l.startswith("= "))
    extra = rest[at + 1:]
    both = "* both" in extra
    return name, "\n".join(rest[:at]) + "\n", rest[at][2:], "\n".join(l for l in extra if l != "* both"), both


def sources():
    found = []
    for lines in SOURCES:
        name, text, expression, extra, both = parse(lines)
        if "__import_asyncio" in expression:
            expression, extra = expression.replace("__import_asyncio", "asyncio_r"), "import asyncio as asyncio_r\n" + extra
        found.append((name, text, expression, extra, both))
    return found


def render(text, which, both):
    """The text with its edits undone, but the one numbered `which`."""
    count = -1

    def one(m):
        nonlocal count
        count += 1
        return m.group(2) if which is not None and (both or count == which) else m.group(1)

    return EDIT.sub(one, text)


def indent(text, by):
    return textwrap.indent(text, " " * by)


def program(source, path, use, root):
    """(files with their edits still marked), or None where the parts do not go together."""
    name, text, expression, extra, both = source
    p = PATHS[path]
    expression = "(" + re.sub(r"\bN\b", lambda m: p["n"], expression) + ")"
    if extra:
        expression, extra = expression.replace("__match", "match_").replace("__enter(", "enter_(").replace("__catch", "catch_").replace("__elsewhere", "elsewhere_"), extra.replace("__match", "match_").replace("__enter(", "enter_(").replace("__catch", "catch_").replace("__elsewhere", "elsewhere_")
    if text.startswith("from __future__") and p["where"] == "main":
        return None
    if root in ("asynchronous", "block in a coroutine") and "asyncio_r" in expression:
        return None
    files = dict(p.get("files", {}))
    top = p.get("top", "")
    body = (p["inner"] + "\n" if "inner" in p else "") + re.sub(r"\bE\b", lambda m: expression, USES[use])
    if "block" in root and "calls" not in root and re.search(r"^(def|class|@)", body, re.M):
        return None
    if p["where"] == "main":
        main = HEAD + text + p.get("top_after", "") + "\n"
    else:
        files[p["where"] + ".py"] = text
        if p["where"].startswith("pkg/"):
            files.setdefault("pkg/__init__.py", "")
        main = HEAD + top + "\n"
    main += extra + "\n"
    argument = p.get("argument")
    main += ROOTS[root].format(body=indent(body, 4), body8=indent(body, 8), param=", n_" if argument else "", arg=", n_=" + argument if argument else "", pass_=", n_" if argument else "",
                               bind=f"n_ = {argument}\n" if argument else "", argn=", n_" if argument else "")
    files["main.py"] = main
    return files


class Runner:
    """Runs main.py of a directory in a process of its own: a fork of this one, which has loaded the package and nothing else, or (spawn) a new interpreter."""

    def __init__(self, spawn):
        self.spawn = spawn

    def __call__(self, directory, cached, seed="0"):
        out, err = directory + ".out", directory + ".err"
        if self.spawn:
            here = FAKE if not cached else None
            environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": seed}
            if here:
                environment["PYTHONPATH"] = here
            with open(out, "w") as o, open(err, "w") as e:
                status = subprocess.run([sys.executable, "main.py"], cwd=directory, env=environment, stdout=o, stderr=e, timeout=300).returncode
        else:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    status = self._child(directory, cached, out, err)
                finally:
                    os._exit(status)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return status, pathlib.Path(out).read_text(), pathlib.Path(err).read_text()

    def _child(self, directory, cached, out, err):
        for fd, file in ((1, out), (2, err)):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fd)
        os.chdir(directory)
        sys.dont_write_bytecode = True
        sys.path[:] = [directory, *sys.path[1:]]
        if not cached:
            fake = types.ModuleType("stet")
            exec(FAKE_TEXT, fake.__dict__)
            sys.modules["stet"] = fake
        module = types.ModuleType("__main__")
        module.__file__ = os.path.join(directory, "main.py")
        sys.modules["__main__"] = module
        status = 0
        try:
            exec(compile(pathlib.Path(module.__file__).read_text(), module.__file__, "exec"), module.__dict__)
        except BaseException:
            import traceback
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        return status


FAKE_TEXT = '''
class persistent_cache:
    def __new__(cls, name=None, *a, **k): return name if callable(name) else super().__new__(cls)
    def __init__(self, *a, **k): self.hit = False
    def __call__(self, f): return f
    def __enter__(self): return self
    def __exit__(self, *a): return False
'''
FAKE = None


def write(directory, files, which, both):
    for name, text in files.items():
        path = pathlib.Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(text, which, both))


def result(text):
    return [l for l in text.splitlines() if not l.startswith(("COMPUTE", "INNER"))]


def main():
    global FAKE
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=1000, help="edits to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only programs whose description contains this")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    parser.add_argument("--spawn", action="store_true", help="new interpreters instead of forks")
    options = parser.parse_args()
    work = tempfile.mkdtemp(prefix="stet-edits-", dir=os.environ.get("TMPDIR"))
    FAKE = os.path.join(work, "fake")
    os.mkdir(FAKE)
    pathlib.Path(FAKE, "stet.py").write_text(FAKE_TEXT)
    sys.argv = ["main.py"]
    import asyncio, stet  # noqa: F401 what every child would load again
    stet.Project.init(os.path.join(work, "project")).close()
    run = Runner(options.spawn)
    choose = random.Random(options.seed)
    all_sources = sources()
    counts, missed, refused, stale, broken, inert = collections.Counter(), [], [], [], [], []
    decks = {}

    def deal(kind, items):
        """Each in turn before any comes again."""
        if not decks.get(kind):
            decks[kind] = choose.sample(list(items), len(items))
        return decks[kind].pop()

    tries = 0
    while counts["edits"] < options.count and tries < 50 * options.count:
        tries += 1
        source, path, use, root = deal("source", all_sources), deal("path", PATHS), deal("use", USES), deal("root", ROOTS)
        what = f"{source[0]} / {path} / {use} / {root}"
        if options.only not in what:
            continue
        files = program(source, path, use, root)
        if files is None:
            continue
        directory = os.path.join(work, f"p{tries}")
        both = source[4]
        edits = 1 if both else len(EDIT.findall("".join(files.values())))
        write(directory, files, None, both)
        shutil.copytree(os.path.join(work, "project", ".stet"), os.path.join(directory, ".stet"))
        plain = run(directory, False)
        if plain[0]:
            broken.append((what, plain[2].strip().splitlines()[-1]))
            continue
        counts["programs"] += 1
        first, second = run(directory, True), run(directory, True, seed="77")
        if first[0]:
            good = "stet" in first[2].strip().splitlines()[-1] or "persistent_cache" in first[2].strip().splitlines()[-1]
            (refused if good else stale).append((what, first[2].strip().splitlines()[-1]))
            counts["edits"] += edits  # nothing of it can be stale
            continue
        for one in (first, second):
            if one[0] or result(one[1]) != result(plain[1]):
                stale.append((what, f"unedited: {result(one[1])} {one[2][-300:]}, right is {result(plain[1])}"))
        if "COMPUTE" in second[1]:
            missed.append((what, "second run: " + next((l for l in second[2].splitlines() if "Warning" in l), "")[-300:]))
        for which in range(edits):
            counts["edits"] += 1
            write(directory, files, which, both)
            right, got = run(directory, False), run(directory, True)
            if right[0]:
                broken.append((what, right[2].strip().splitlines()[-1]))
            elif got[0]:
                (refused if "stet" in got[2].strip().splitlines()[-1] else stale).append((what, got[2].strip().splitlines()[-1]))
            elif result(got[1]) != result(right[1]):
                stale.append((what, f"edit {which}: {result(got[1])}, right is {result(right[1])} in {directory}"))
            elif result(right[1]) == result(plain[1]):
                inert.append(what)
            else:
                counts["noticed"] += 1
        # An edit that nothing depends on.
        write(directory, files, None, both)
        target = next((n for n in files if n == PATHS[path]["where"] + ".py"), "main.py")
        with open(os.path.join(directory, target), "a") as f:
            f.write("\n\n# a comment\nunused_ = 5\ndef unused_function_(): return unused_\n")
        aside = run(directory, True)
        if result(aside[1]) != result(plain[1]):
            stale.append((what, f"edit aside: {result(aside[1])}, right is {result(plain[1])}"))
        elif "COMPUTE" in aside[1] and "COMPUTE" not in second[1]:
            counts["missed after an edit aside"] += 1
            missed.append((what, "edit aside"))
        if counts["programs"] % 20 == 1:
            checked = subprocess.run([os.environ.get("STET", "stet"), "-C", directory, "check"], capture_output=True, text=True)
            if checked.returncode:
                broken.append((what, "stet check: " + checked.stdout + checked.stderr))
        if not options.keep:
            shutil.rmtree(directory, ignore_errors=True)
    for title, found in (("STALE", stale), ("broken program", broken), ("refused", refused), ("needless miss", missed)):
        for what, why in found:
            print(f"{title}: {what}: {why}")
    print(f"{dict(counts)}, {len(stale)} stale, {len(refused)} refused, {len(missed)} needless misses, {len(inert)} edits without effect, {len(broken)} broken programs")
    if not options.keep and not stale:
        shutil.rmtree(work, ignore_errors=True)
    return 1 if stale or broken else 0


if __name__ == "__main__":
    sys.exit(main())
