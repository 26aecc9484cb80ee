"""Everyday functions: classes that do things when they are made, read, written, entered, called or counted."""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import operator
import weakref
from typing import Generic, Protocol, TypeVar, runtime_checkable

from tests.unit.bytecode.everyday.program import everyday, random_tensor

REGISTRY: dict[str, object] = {}


def register(name):
    def add(f):
        REGISTRY[name] = f
        return f

    return add


@register("double")
def double(x):
    return x * 2


@register("shift")
def shift(x, by=1):
    return x + by


@everyday((random_tensor(0, 3), ["double", "shift"]), (random_tensor(1, 3), ["shift", "none", "double"]))
def registered(x, names):
    @register("local")
    def local(y):
        return y - y.mean().item()

    for name in [*names, "local"]:
        try:
            x = REGISTRY[name](x)
        except KeyError as error:
            print("no", error, sorted(REGISTRY))
        else:
            print(name, round(x.sum().item(), 4))
    del REGISTRY["local"]
    return x, len(REGISTRY)


class Plugin:
    plugins: list[type] = []  # noqa: RUF012  # what is tested
    priority = 0

    def __init_subclass__(cls, priority=1, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.priority = priority
        Plugin.plugins.append(cls)


class Adding(Plugin, priority=3):
    def run(s, x):
        return x + 1


class Scaling(Plugin):
    def run(s, x):
        return x * (2 if x.sum() > 0 else 3)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def plugins(x):
    class Negating(Plugin, priority=2):
        def run(s, x):
            return -x

    for kind in sorted(Plugin.plugins, key=operator.attrgetter("priority"), reverse=True):
        x = kind().run(x)
        print(kind.__name__, x.sum().item())
    Plugin.plugins.remove(Negating)
    return x, len(Plugin.plugins)


class Counting(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        cls.made = getattr(cls, "made", 0) + 1
        return made

    @property
    def label(cls):
        return f"<{cls.__name__} {cls.made}>"


class Counted(metaclass=Counting):
    def __init__(s, v):
        s.v = v


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),), (random_tensor(2, 3),))
def metaclasses(x):
    a, b = Counted(x), Counted(x.sum().item())
    print(Counted.label)
    c = Counted(3)
    return a.v * b.v + c.v, Counted.made


class Clamped:
    def __set_name__(s, owner, name):
        s.name = "_" + name

    def __init__(s, low, high):
        s.low, s.high = low, high

    def __get__(s, owner, kind=None):
        return s if owner is None else getattr(owner, s.name)

    def __set__(s, owner, value):
        if not s.low <= value <= s.high:
            print("clamped", value)
        setattr(owner, s.name, min(max(value, s.low), s.high))
        owner.writes = getattr(owner, "writes", 0) + 1


class Settings:
    rate = Clamped(0.0, 1.0)
    steps = Clamped(1, 5)

    def __init__(s, rate, steps):
        s.rate = rate
        s.steps = steps


@everyday((random_tensor(0, 3), 2), (random_tensor(1, 3), 9))
def descriptors(x, n):
    s = Settings(x.max().item(), n)
    for _ in range(s.steps):
        x = x * (1 - s.rate)
        s.rate /= 2
    s.rate = x.sum().item()
    return x, s.writes, s.rate, type(s).steps.high


class Shape(abc.ABC, Generic[T := TypeVar("T")]):
    count = 0

    @abc.abstractmethod
    def area(s): ...

    def __str__(s):
        Shape.count += 1
        return f"{type(s).__name__}:{s.area():.3f}"


class Square(Shape[float]):
    def __init__(s, side):
        s.side = side

    def area(s):
        return s.side**2


@runtime_checkable
class HasArea(Protocol):
    def area(s): ...


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def abstract(x):
    s = Square(x[0].item())
    print(s, isinstance(s, HasArea), isinstance(x, HasArea))
    try:
        Shape()
    except TypeError as e:
        print(type(e).__name__)
    return x * s.area(), Shape.count


@functools.total_ordering
class Scored:
    compared = 0

    def __init__(s, name, score):
        s.name, s.score = name, score

    def __eq__(s, o):
        return s.score == o.score

    def __lt__(s, o):
        Scored.compared += 1
        return s.score < o.score


@everyday((random_tensor(0, 5),), (random_tensor(1, 5),))
def ordering(x):
    items = [Scored(f"n{i}", v.item()) for i, v in enumerate(x)]
    best = max(items)
    ranked = sorted(items)
    print(best.name, [i.name for i in ranked], items[0] >= items[1])
    return x * best.score, Scored.compared


class Formatter:
    def __init__(s, digits):
        s.digits = digits
        s.seen = []

    @functools.singledispatchmethod
    def show(s, v):
        return repr(v)

    @show.register
    def _(s, v: float):
        s.seen.append("f")
        return f"{v:.{s.digits}f}"

    @show.register
    def _(s, v: list):
        s.seen.append("l")
        return "[" + ", ".join(s.show(e) for e in v) + "]"

    short = functools.partialmethod(show, 0.5)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def dispatched(x):
    f = Formatter(2)
    text = f.show([x.sum().item(), "a", [1.5]])
    print(text, f.short())
    return x * len(text), f.seen


class Observed:
    def __init__(s, **values):
        object.__setattr__(s, "_values", dict(values))
        object.__setattr__(s, "_log", [])

    def __getattr__(s, name):
        try:
            value = s._values[name]
        except KeyError:
            raise AttributeError(f"no {name}") from None
        s._log.append(f"get {name}")
        return value

    def __setattr__(s, name, value):
        s._log.append(f"set {name}")
        s._values[name] = value

    def __delattr__(s, name):
        del s._values[name]

    def __dir__(s):
        return sorted(s._values)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def observed(x):
    o = Observed(x=x, n=1)
    o.y = o.x.sum().item()
    o.n += 2
    if o.y > 0:
        del o.x
    print(dir(o), hasattr(o, "x"), hasattr(o, "y"))
    try:
        z = o.x
    except AttributeError as e:
        print(e, e.__cause__, e.__suppress_context__)
        z = x * 10
    return z * o.n, o._log


class Slotted:
    __slots__ = ("__weakref__", "n", "x")

    def __init__(s, x):
        s.x = x
        s.n = 0

    def bump(s):
        s.n += 1
        s.x = s.x + s.n
        return s


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def slotted(x):
    s = Slotted(x).bump()
    print(s.n, s.x.sum().item())
    r = weakref.ref(s)
    s.bump().bump()
    try:
        s.other = 1
    except AttributeError:
        print("no other")
    t = copy.copy(s)
    t.bump()
    return s.x, t.x, s.n, t.n, r() is s


@dataclasses.dataclass(frozen=True, order=True, slots=True)
class Point:
    score: float
    tag: str = dataclasses.field(compare=False)
    extra: tuple = ()


@dataclasses.dataclass(kw_only=True)
class Job:
    name: str
    data: dict = dataclasses.field(default_factory=dict)
    total: float = dataclasses.field(init=False, default=0.0)
    scale: dataclasses.InitVar[float] = 1.0

    def __post_init__(s, scale):
        s.total = sum(v.sum().item() for v in s.data.values()) * scale


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def dataclasses_of_kinds(x):
    points = sorted(Point(v.item(), f"t{i}") for i, v in enumerate(x))
    try:
        points[0].score = 3.0
    except dataclasses.FrozenInstanceError as e:
        print("frozen", e)
    top = dataclasses.replace(points[-1], tag="top")
    job = Job(name="j", data={"x": x, "y": x * 2}, scale=0.5)
    print(top.tag, top == points[-1], hash(top) == hash(points[-1]), job.total)
    return x * job.total, [p.tag for p in points], dataclasses.asdict(job), len({*points, top})


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    X = R | W


class Phase(enum.IntEnum):
    WARM = 0
    TRAIN = 1
    DONE = 2

    @property
    def next(s):
        return Phase((s + 1) % len(Phase))


@everyday(
    (random_tensor(0, 4), Phase.WARM),
    (random_tensor(1, 4), Phase.TRAIN),
    (-random_tensor(1, 4).abs(), Phase.DONE),
)
def phases(x, phase):
    perms = Perm(0)
    for v in x:
        match phase, v.item() > 0:
            case Phase.WARM, True:
                x, perms = x + 1, perms | Perm.R
            case (Phase.TRAIN, True):
                x, perms = x * 2, perms | Perm.W
            case Phase.DONE, _:
                print("done", perms)
                break
            case p, False:
                x = x - int(p)
        phase = phase.next
    return x, perms == Perm.X, Perm.R in perms, phase, phase.name


class Count:
    entered = 0

    def __init__(s, name, swallow=()):
        s.name, s.swallow, s.log = name, swallow, []

    def __enter__(s):
        type(s).entered += 1
        s.log.append("in")
        return s

    def __exit__(s, kind, error, trace):
        s.log.append(kind.__name__ if kind else "out")
        print("exit", s.name, error)
        return kind is not None and issubclass(kind, s.swallow)


@everyday((random_tensor(0, 3), 0), (random_tensor(1, 3), 1), (random_tensor(1, 3), 2))
def managers(x, k):
    with Count("outer", ValueError) as o, Count("inner") as i:
        x = x + 1
        print("body", x.sum().item())
        if k == 1:
            raise ValueError("one")
        if k == 2:
            raise KeyError("two")
        x = x * 2
    return x, o.log, i.log, Count.entered


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def stacked(x):
    order = []
    with contextlib.ExitStack() as stack:
        counts = [stack.enter_context(Count(n, (ZeroDivisionError,))) for n in "ab"]
        stack.push(lambda *e: order.append("pushed"))
        stack.callback(order.append, x[0].item())
        y = x * 2
        print(len(counts), y.sum().item())
        1 / (len(counts) - 2)
    return y, order, [c.log for c in counts]


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def suppressed(x):
    class Res:
        closed = 0

        def close(s):
            s.closed += 1
            print("closed", s.closed)

    r = Res()
    with contextlib.suppress(KeyError, IndexError):
        with contextlib.closing(r) as inner:
            y = x + inner.closed
            print(y.sum().item())
            [][3]
        y = y * 100
    with contextlib.suppress(ZeroDivisionError):
        y = y + 1
    return y, r.closed


class Temperature:
    def __init__(s):
        s._value, s.changes = 1.0, []

    @property
    def value(s):
        return s._value

    @value.setter
    def value(s, v):
        s.changes.append((s._value, v))
        s._value = v

    @value.deleter
    def value(s):
        s._value = 1.0


TEMPERATURE = Temperature()


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),), (random_tensor(2, 3),))
def properties(x):
    TEMPERATURE.value = round(x.sum().item(), 3)
    y = x / TEMPERATURE.value
    TEMPERATURE.value *= 2
    print(TEMPERATURE.value, len(TEMPERATURE.changes))
    if len(TEMPERATURE.changes) > 5:
        del TEMPERATURE.value
    return y * TEMPERATURE.value, list(TEMPERATURE.changes)


class Steps:
    def __init__(s, x, n):
        s.x, s.n = x, n

    def __iter__(s):
        return s

    def __next__(s):
        if s.n == 0 or s.x.abs().max().item() < 0.2:
            raise StopIteration
        s.n -= 1
        s.x = s.x / 2
        return s.x

    def __reversed__(s):
        return iter([s.x] * s.n)


@everyday((random_tensor(0, 3), 9), (random_tensor(1, 3), 2))
def iterators(x, n):
    steps = Steps(x, n)
    first = next(steps)
    total = first * 0
    for i, y in enumerate(steps):
        total = total + y
        print(i, y.sum().item())
    rest = next(steps, None)
    return total, steps.n, rest is None, len(list(reversed(Steps(x, 2))))


class Default(dict):
    misses = 0

    def __missing__(s, key):
        s.misses += 1
        s[key] = key * 2
        return s[key]


@everyday((random_tensor(0, 4),), (random_tensor(1, 4),))
def missing(x):
    d = Default({1: 1})
    chain = collections.ChainMap({}, d)
    for v in x:
        k = int(v * 2)
        x = x + d[k]
        chain[k] = chain.get(k, 0) + 1
    print(d, d.misses, dict(chain))
    return x, d, d.misses


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def late_closures(x):
    fs, gs, hs = [], [], []
    for i, v in enumerate(x):
        fs.append(lambda y: y * i)  # noqa: B023  # what is tested
        gs.append(lambda y, i=i, v=v: y * i + v.item())
        hs.append(functools.partial(operator.mul, v))
    print([f(2) for f in fs])
    adds = operator.itemgetter(0, 2)(gs)
    return [f(x) for f in fs], [g(x) for g in adds], [h(3) for h in hs], operator.methodcaller("sum")(x)


class Money:
    def __init__(s, v, log):
        s.v, s.log = v, log

    def __iadd__(s, o):
        s.log.append("iadd")
        s.v = s.v + o
        return s

    def __radd__(s, o):
        s.log.append("radd")
        return Money(s.v + o, s.log)

    def __neg__(s):
        return Money(-s.v, s.log)

    def __matmul__(s, o):
        return s.v @ o

    def __float__(s):
        return float(s.v.sum())

    def __index__(s):
        return int(s.v.abs().sum())

    def __format__(s, spec):
        return format(float(s), spec or ".1f")

    def __getattribute__(s, name):
        if name == "double":
            return object.__getattribute__(s, "v") * 2
        return object.__getattribute__(s, name)


@everyday((random_tensor(0, 3),), (random_tensor(1, 3),))
def operators(x):
    log = []
    m = n = Money(x, log)
    m += 1
    print(f"{m} {m:+.3f}", m is n)
    k = sum([m, -m], 5)
    print(float(k.v.sum()), list(range(10))[m : None : 3])
    return m.double, m @ x, (1 + m).v, log


def reset() -> None:
    """Make the state as it was in the beginning."""
    Counted.made = 0
    Shape.count = Scored.compared = Count.entered = 0
    TEMPERATURE.__init__()
