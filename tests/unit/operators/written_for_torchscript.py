# ruff: noqa (the functions are as people write them for TorchScript)
"""Functions and modules as people write them for TorchScript, one idiom each, with calls that take both branches."""

import enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor, nn


class Lists(nn.Module):
    def forward(self, xs: List[Tensor], flag: Tensor) -> List[Tensor]:
        out = torch.jit.annotate(List[Tensor], [])
        for x in xs:
            if flag.sum() > 0:
                out.append(x + 1)
            else:
                out.append(x - 1)
        return out


class Dicts(nn.Module):
    def forward(self, d: Dict[str, Tensor]) -> Dict[str, Tensor]:
        res: Dict[str, Tensor] = {}
        for k, v in d.items():
            if v.sum() > 0:
                res[k] = v * 2
            else:
                res[k] = -v
        return res


class Opt(nn.Module):
    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None) -> Tuple[Tensor, Tensor]:
        if state is None:
            z = torch.zeros(x.shape)
            state = (z, z)
        assert state is not None
        h, c = state
        if x.sum() > 0:
            h = h + x
        return h, c + 1


class Attr(nn.Module):
    __constants__ = ["k"]
    n: torch.jit.Final[int]
    table: Dict[str, int]
    def __init__(self):
        super().__init__()
        self.k = 3
        self.n = 2
        self.table = torch.jit.Attribute({"a": 4}, Dict[str, int])
        self.hidden: Optional[Tensor] = None
        self.scale = torch.jit.Attribute(2.0, float)
    def forward(self, x: Tensor) -> Tensor:
        while x.sum() < self.k * 10:
            x = x + self.n
        return x


def scripting(x: Tensor) -> Tensor:
    if torch.jit.is_scripting():
        return x * 100
    else:
        if x.sum() > 0:
            return x + 1
    return x - 1


def tracing(x: Tensor) -> Tensor:
    if torch.jit.is_tracing():
        return x * 100
    if not torch.jit.is_scripting() and x.sum() > 0:
        return x + 1
    return x - 1


class Exported(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)
    def forward(self, x: Tensor) -> Tensor:
        return self.encode(x) + 1
    @torch.jit.export
    def encode(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.lin(x)
        return x


class Unused(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return self.extra(x)
        return self.other(x)
    @torch.jit.unused
    def extra(self, x: Tensor) -> Tensor:
        return x * 3
    @torch.jit.ignore
    def other(self, x: Tensor) -> Tensor:
        if x.max() > -1:
            return x * 4
        return x * 5


@torch.jit.ignore(drop=True)
def dropped(x: Tensor) -> Tensor:
    return x + 5


def uses_dropped(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return dropped(x)
    return x


@torch.jit.ignore
def pythonic(x: Tensor) -> Tensor:
    return x + float(x.sum().item())


def uses_pythonic(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return pythonic(x)
    return x


@torch.jit.script
def scripted(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if bool(x.sum() > 0):
            x = x - 1
        else:
            x = x + 2
    return x


def calls_scripted(x: Tensor) -> Tensor:
    y = scripted(x, 3)
    if y.sum() > 0:
        return y
    return -y


class Inner(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x - 2
scripted_module = torch.jit.script(Inner())


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.script(Inner())
    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        if y.sum() > 0:
            return y
        return -y


class TracedOuter(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.jit.trace(nn.Linear(3, 3), torch.ones(2, 3))
    def forward(self, x: Tensor) -> Tensor:
        y = self.inner(x)
        if y.sum() > 0:
            return y
        return -y

traced_fn = torch.jit.trace(lambda x: x * 2 + 1, torch.ones(2, 3))


def calls_traced(x):
    y = traced_fn(x)
    if y.sum() > 0:
        return y
    return -y


class OldStyle(torch.jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
    @torch.jit.script_method
    def forward(self, x):
        y = x * self.w
        if bool(y.sum() > 0):
            y = y * 2
        return y


class OuterOld(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = OldStyle()
    def forward(self, x):
        return self.inner(x) + 1


def part(x: Tensor, y: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return x * y
    return x + y


def forks(x: Tensor) -> Tensor:
    f = torch.jit.fork(part, x, x)
    g = torch.jit.fork(part, x, y=x + 1)
    return torch.jit.wait(f) + torch.jit.wait(g)


class ForksModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.b = Inner()
    def forward(self, x):
        futures: List[torch.jit.Future[Tensor]] = []
        futures.append(torch.jit.fork(self.a, x))
        futures.append(torch.jit.fork(self.b, x + 1))
        return torch.stack([torch.jit.wait(f) for f in futures])


def future_wait(x):
    f = torch.jit.fork(part, x, x)
    return f.wait()


@torch.jit.script_if_tracing
def sit(x: Tensor, n: int) -> Tensor:
    for i in range(n):
        if bool(x.sum() > 0):
            x = x - 1
    return x


def calls_sit(x: Tensor) -> Tensor:
    y = sit(x, 2)
    if y.sum() > 0:
        y = y * 2
    return y


def jisinstance(x: Any, y: Tensor) -> Tensor:
    if torch.jit.isinstance(x, List[Tensor]):
        y = y + x[0]
    elif torch.jit.isinstance(x, Dict[str, Tensor]):
        y = y - x["a"]
    if y.sum() > 0:
        return y
    return -y


def unionarg(x: Union[Tensor, List[Tensor]]) -> Tensor:
    if isinstance(x, Tensor):
        x = [x]
    y = x[0]
    if y.sum() > 0:
        y = y * 2
    return y


class Color(enum.Enum):
    RED = 1
    BLUE = 2


def enums(x: Tensor, c: Color) -> Tensor:
    if c == Color.RED:
        if x.sum() > 0:
            return x + c.value
    return x - 1


class Pair(NamedTuple):
    a: Tensor
    b: Optional[Tensor]


def namedtuples(x: Tensor) -> Pair:
    if x.sum() > 0:
        p = Pair(x, x + 1)
    else:
        p = Pair(x - 1, x)
    return p


@torch.jit.interface
class Iface:
    def forward(self, x: Tensor) -> Tensor:
        pass


class UsesIface(nn.Module):
    proxy: Iface
    __exhaustive_ignore__ = []
    __jit_unused_properties__ = ["weird"]
    __jit_ignored_attributes__ = ["nope"]
    def __init__(self):
        super().__init__()
        self.proxy = Inner()
    @property
    def weird(self):
        return 3
    def forward(self, x: Tensor) -> Tensor:
        return self.proxy.forward(x) + 1


def optional_refine(x: Tensor, y: Optional[Tensor]) -> Tensor:
    if y is None:
        y = x
    if x.sum() > 0:
        z: Optional[Tensor] = y * 2
    else:
        z = None
    if z is not None:
        return z
    return torch.jit._unwrap_optional(y)


def unchecked_unwrap(x: Tensor, y: Optional[Tensor]) -> Tensor:
    a = torch.jit._unwrap_optional(y)
    if a.sum() > 0:
        return a
    return x


def refine(x: Tensor) -> Tensor:
    z = None
    if x.sum() > 0:
        z = x * 2
    assert z is not None
    return z


@torch.jit.script
class ScriptClass:
    def __init__(self, x: Tensor):
        self.x = x
    def double(self) -> Tensor:
        if bool(self.x.sum() > 0):
            return self.x * 2
        return self.x


def uses_class(x: Tensor) -> Tensor:
    c = ScriptClass(x)
    if x.sum() > 0:
        return c.double() + 1
    return c.double()


def empties(x: Tensor) -> Tensor:
    acc: List[Tensor] = []
    i = 0
    while bool(x.sum() > 0):
        acc.append(x)
        x = x - 1
        i += 1
    return torch.stack(acc) if len(acc) > 0 else x


def annotations_optional(x: Tensor) -> Tensor:
    s = torch.jit.annotate(Optional[Tensor], None)
    if x.sum() > 0:
        s = x
    if s is None:
        return x
    return s


def intlist(x: Tensor) -> List[int]:
    out = torch.jit.annotate(List[int], [])
    for i in range(x.size(0)):
        if bool(x[i].sum() > 0):
            out.append(i)
    return out


@torch.jit._overload
def ov(x: int) -> int: ...


@torch.jit._overload
def ov(x: float) -> float: ...


def ov(x):
    return x + 1


def uses_ov(x: Tensor) -> Tensor:
    if x.sum() > 0:
        return x + ov(1)
    return x + ov(1.5)


def strict(x: Tensor) -> Tensor:
    with torch.jit.strict_fusion():
        y = x + 1
    if y.sum() > 0:
        return y
    return -y


def opt_exec(x: Tensor) -> Tensor:
    with torch.jit.optimized_execution(False):
        y = x + 1
    if y.sum() > 0:
        return y
    return -y


def profiled(x: Tensor) -> Tensor:
    with torch.autograd.profiler.record_function("hello"):
        y = x + 1
    if y.sum() > 0:
        return y
    return -y


def ops_annotation(x: Tensor, scale: float = 2.0) -> Tuple[Tensor, int]:
    n = int(x.sum())
    if n > 0:
        return x * scale, n
    return x, n

P, N = torch.ones(2, 3), -torch.ones(2, 3)
WHOLE = torch.arange(3)


@torch.jit.script
def scaled(x: Tensor, by: float, also: Optional[float] = None, times: float = 1) -> Tensor:
    if bool(x.sum() > 0):
        x = x * by
    if also is not None:
        x = x + also
    return x * times


def gives_ints(x: Tensor) -> Tuple[Tensor, Tensor]:
    n = int(x.sum())
    return scaled(x, 2, 3), scaled(x, n)


@torch.jit.script
def grows(x: Tensor, xs: List[Tensor], table: Dict[str, List[Tensor]]) -> int:
    if bool(x.sum() > 0):
        xs.append(x)
    table["a"] = xs
    return len(xs)


def keeps_its_own(x: Tensor) -> Tuple[int, int, int]:
    xs, table = [x], {"b": [x]}
    return grows(x, xs, table), len(xs), len(table)


@torch.jit.script
def knows_where_it_is(x: Tensor) -> Tensor:
    if torch.jit.is_scripting():
        return x + 1
    return x + 2


def asks_inside_and_out(x: Tensor) -> Tensor:
    if torch.jit.is_scripting():
        return x
    return knows_where_it_is(x) * (2 if x.sum() > 0 else 3)


@torch.jit.ignore
def left_alone(x: Tensor) -> Tensor:
    return x * 5 if torch.jit.is_scripting() else x * 7


@torch.jit.script
def calls_what_is_ignored(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        return left_alone(x)
    return x


@torch.jit.script
def appends(x: Tensor, xs: List[Tensor], times: float = 1) -> Tensor:
    xs.append(x * times)
    return x


@torch.jit.ignore
def appends_in_python(x: Tensor, xs: List[Tensor]) -> Tensor:
    xs.append(x)
    return x * len(xs)


@torch.jit.script
def hands_on(x: Tensor, xs: List[Tensor]) -> Tuple[Tensor, int]:
    if bool(x.sum() > 0):
        x = appends_in_python(x, xs)
    appends(x, xs)
    return xs[-1], len(xs)


def calls_what_hands_on(x: Tensor) -> Tuple[Tensor, int, int]:
    xs = [x]
    last, count = hands_on(x, xs)
    return last, count, len(xs)


def by_default(x: Tensor, times: float = 1) -> Tensor:
    return x * times


@torch.jit.script
def leaves_out(x: Tensor) -> Tensor:
    return by_default(x) if bool(x.sum() > 0) else by_default(x, 2.0)


CASES: List[Tuple[str, Any, List[Tuple[Any, ...]]]] = [
    ("gives_ints", lambda: gives_ints, [(WHOLE,), (-WHOLE,)]),
    ("keeps_its_own", lambda: keeps_its_own, [(P,), (N,)]),
    ("asks_inside_and_out", lambda: asks_inside_and_out, [(P,), (N,)]),
    ("calls_what_is_ignored", lambda: calls_what_is_ignored, [(P,), (N,)]),
    ("calls_what_hands_on", lambda: calls_what_hands_on, [(WHOLE,), (-WHOLE,)]),
    ("leaves_out", lambda: leaves_out, [(WHOLE,), (-WHOLE,)]),
    ("calls_ignored", lambda: left_alone, [(P,), (N,)]),
    ("Lists", lambda: Lists(), [(([P, N], P)), (([P, N], N))]),
    ("Dicts", lambda: Dicts(), [({"a": P, "b": N},), ({"a": N, "b": N},)]),
    ("Opt", lambda: Opt(), [(P,), (N,), (P, (P, N)), (N, (P, N))]),
    ("Attr", lambda: Attr(), [(P,), (N,)]),
    ("scripting", lambda: scripting, [(P,), (N,)]),
    ("tracing", lambda: tracing, [(P,), (N,)]),
    ("Exported", lambda: Exported(), [(P,), (N,)]),
    ("Exported.encode", lambda: Exported().encode, [(P,), (N,)]),
    ("Unused", lambda: Unused(), [(P,), (N,)]),
    ("uses_dropped", lambda: uses_dropped, [(P,), (N,)]),
    ("uses_pythonic", lambda: uses_pythonic, [(P,), (N,)]),
    ("scripted", lambda: scripted, [(P, 3), (N, 3)]),
    ("calls_scripted", lambda: calls_scripted, [(P,), (N,)]),
    ("calls_traced", lambda: calls_traced, [(P,), (N,)]),
    ("forks", lambda: forks, [(P,), (N,)]),
    ("ForksModule", lambda: ForksModule(), [(P,), (N,)]),
    ("future_wait", lambda: future_wait, [(P,), (N,)]),
    ("calls_sit", lambda: calls_sit, [(P,), (N,)]),
    ("sit", lambda: sit, [(P, 2), (N, 2)]),
    ("jisinstance", lambda: jisinstance, [([P], P), ({"a": P}, N), ([N], N)]),
    ("unionarg", lambda: unionarg, [(P,), ([N],)]),
    ("enums", lambda: enums, [(P, Color.RED), (N, Color.RED), (P, Color.BLUE)]),
    ("namedtuples", lambda: namedtuples, [(P,), (N,)]),
    ("UsesIface", lambda: UsesIface(), [(P,), (N,)]),
    ("optional_refine", lambda: optional_refine, [(P, None), (N, None), (N, P)]),
    ("unchecked_unwrap", lambda: unchecked_unwrap, [(P, P), (N, N)]),
    ("refine", lambda: refine, [(P,)]),
    ("uses_class", lambda: uses_class, [(P,), (N,)]),
    ("empties", lambda: empties, [(P,), (N,)]),
    ("annotations_optional", lambda: annotations_optional, [(P,), (N,)]),
    ("intlist", lambda: intlist, [(P,), (N,)]),
    ("uses_ov", lambda: uses_ov, [(P,), (N,)]),
    ("strict", lambda: strict, [(P,), (N,)]),
    ("opt_exec", lambda: opt_exec, [(P,), (N,)]),
    ("profiled", lambda: profiled, [(P,), (N,)]),
    ("ops_annotation", lambda: ops_annotation, [(P,), (N,)]),
]
