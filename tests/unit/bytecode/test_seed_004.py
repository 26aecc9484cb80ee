"""What was missing when BERT first ran through Paddle's symbolic trace (seed 004), each by itself and unbroken."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.compare import assert_same

X = torch.arange(12.0).reshape(3, 4) - 5


def check(function: Callable[..., Any], *args: Any) -> None:
    """Two calls give what eager gives, and are one program with nothing left to Python."""
    traced = sg.to_static(function, full_graph=False, backend="eager", strict=True)
    for _ in range(2):
        assert_same(function(*args), traced(*args))
    assert not any(traced.plan.breaks.residual.values())
    assert len(traced.plan.segments) == 1
    assert traced.cache_info()[:3] == (1, 1, 1)


# ---- 2.1 COMPARE_OP: attributes of tensors are no methods
def convert_attention_mask(mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """The function of Paddle's in which the trace ended."""
    if mask is not None and mask.dtype != dtype:
        name = str(mask.dtype).removeprefix("torch.")
        if name == "bool" or "int" in name:
            return (mask.to(dtype) - 1.0) * 1e9
        return mask.to(dtype)
    return mask


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float64, torch.float32])
def test_a_mask_is_converted(dtype: torch.dtype) -> None:
    check(convert_attention_mask, (X > 0).to(dtype), torch.float32)


def test_no_mask() -> None:
    check(lambda x, mask: x if convert_attention_mask(mask, x.dtype) is None else x + 1, X, None)


COMPARISONS: dict[str, Callable[[Tensor], Any]] = {
    "dtype ==": lambda x: x + 1 if x.dtype == torch.float32 else x,
    "dtype !=": lambda x: x + 1 if x.dtype != torch.float32 else x,
    "dtype is": lambda x: x + 1 if x.dtype is torch.float32 else x,
    "dtype is not": lambda x: x + 1 if x.dtype is not torch.float32 else x,
    "dtype in": lambda x: x + 1 if x.dtype in (torch.float16, torch.float32) else x,
    "dtype of two": lambda x: x + 1 if x.dtype == (x > 0).dtype else x - 1,
    "tensor != None": lambda x: x + 1 if x != None else x,  # noqa: E711  # what is tested
    "tensor is None": lambda x: x + 1 if x is None else x * 2,
    "tensor is not None": lambda x: x + 1 if x is not None else x * 2,
    "is itself": lambda x: (x is x, x + 1),  # what is tested
    "is not another": lambda x: (x is not x.clone(), x + 1),
    "shape ==": lambda x: x + 1 if x.shape == (3, 4) else x,
    "shape of two": lambda x: x + 1 if x.shape != x.T.shape else x,
    "a size <": lambda x: x + 1 if x.shape[0] < x.shape[1] else x,
    "chained": lambda x: x + 1 if 2 < x.shape[0] <= x.ndim + 1 else x,
    "ndim": lambda x: x + 1 if x.ndim == 2 and x.dim() == x.ndim else x,
    "device": lambda x: x + 1 if x.device == torch.device("cpu") and x.device.type != "cuda" else x,
    "requires_grad": lambda x: x + 1 if not x.requires_grad and x.is_leaf else x,
    "values": lambda x: torch.where(x != x.T.T, x, -x) + (x == x).float() + (x >= 0).float(),
}


@pytest.mark.parametrize("name", list(COMPARISONS))
def test_comparison(name: str) -> None:
    check(COMPARISONS[name], X)


def test_attributes_are_values_and_methods_are_called() -> None:
    def function(x: Tensor) -> Any:
        method = x.sum
        shape, size, dtype = x.shape, x.size, x.dtype
        return method(), list(shape), list(size()), size(0), dtype, x.ndim, x.is_cuda, x.itemsize, x.T.mT, x.numel()

    check(function, X)


# ---- 2.2 BINARY_SUBSCR
SUBSCRIPTS: dict[str, Callable[[Tensor], Any]] = {
    "the first token": lambda x: x[:, 0],
    "a number": lambda x: x[1],
    "from the end": lambda x: x[-1, -2],
    "slices": lambda x: x[1:, ::2],
    "a computed slice": lambda x: x[: x.shape[0] - 1, slice(0, 2)],
    "ellipsis": lambda x: x[..., 1],
    "None": lambda x: x[:, None, :, None],
    "a mask of its shape": lambda x: torch.where(x > 0, x, 0)[(torch.ones(3, 4) > 0).nonzero(as_tuple=True)],
    "a tensor": lambda x: x[torch.tensor([2, 0])],
    "two tensors": lambda x: x[torch.tensor([2, 0]), torch.tensor([1, 1])],
    "a list": lambda x: x[[0, 2], 1:],
    "of a shape": lambda x: x * x.shape[-1] * x.size()[0],
    "of a list": lambda x: [x, x + 1, x + 2][-1],
    "of a dict": lambda x: {"a": x, "b": x + 1}["b"],
    "of a split": lambda x: x.split(2, dim=1)[1],
    "of a shape sliced": lambda x: x.reshape(*x.shape[:-1], 2, -1),
    "of an unbind": lambda x: x.unbind(0)[1] + x[0],
}


@pytest.mark.parametrize("name", list(SUBSCRIPTS))
def test_subscript(name: str) -> None:
    check(SUBSCRIPTS[name], X)


def test_items_are_stored() -> None:
    def function(x: Tensor) -> Any:
        y, kept, known = x.clone(), [x, x], {"a": x}
        y[:, 0] = 1
        y[1] += 2
        y[y.shape[0] - 1, 1:] = x[0, 1:]
        kept[0] = y
        known["b"] = kept[0] + 1
        del known["a"]
        return y, kept, known

    check(function, X)


# ---- 2.3 transposition
class TiedHead(nn.Module):
    """BERT's decoder: the embeddings' weight, transposed, and a bias of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(7, 4)
        self.bias = nn.Parameter(torch.zeros(7))

    def forward(self, x: Tensor) -> Tensor:
        weight = self.embeddings.weight
        return torch.matmul(x, weight.T) + F.linear(x, weight.transpose(1, 0).t(), self.bias)


def test_the_tied_head() -> None:
    eager, model = TiedHead(), TiedHead()
    model.load_state_dict(eager.state_dict())
    traced = sg.symbolic_trace(model, strict=True)
    for x in (X, X + 1):  # the pioneers' `x.T` was stale in the second call
        assert_same(eager(x), traced(x))
        with torch.no_grad():
            for each in (eager, model):
                each.embeddings.weight += 1
    assert len(traced.forward.plan.segments) == 1
    assert traced.forward.cache_info()[:3] == (1, 1, 1)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.T,
        lambda x: x.t() @ x,
        lambda x: x.mT,
        lambda x: x.transpose(0, 1).transpose(-1, -2),
        lambda x: x.permute(1, 0) + torch.transpose(x, 0, 1),
        lambda x: getattr(x, "T").shape,  # noqa: B009  # what is tested
        lambda x: x.T.T.T.contiguous(),
    ],
)
def test_transposition(function: Callable[[Tensor], Any]) -> None:
    check(function, X)


# ---- 2.4 memory: tests/e2e/test_bert_symbolic_trace.py
# ---- 4.1 COMPARE_OP with `is`
@dataclass
class Config:
    activation: str = "gelu"
    mask: Tensor | None = None
    options: dict[str, Any] = field(default_factory=dict)


def test_is_on_objects() -> None:
    first, second = Config(), Config(mask=X)

    def function(x: Tensor, config: Config, other: Config | None) -> Any:
        if config is second:
            return x
        if config is not first or other is None:
            return x - 1
        if config.mask is None and other.mask is not None and type(x) is Tensor:
            return x + other.mask
        return x * 2

    check(function, X, first, second)
    check(function, X, second, None)
    check(function, X, first, None)


# ---- 4.2 getattr
def test_getattr() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer_0, self.layer_1 = nn.Linear(4, 4), nn.Linear(4, 4)
            self.activation = "relu"

        def forward(self, x: Tensor) -> Any:
            for number in range(2):
                x = getattr(self, f"layer_{number}")(x)
            x = getattr(F, self.activation)(x)
            missing = getattr(self, "missing", None)
            total = getattr(x, "sum")()  # noqa: B009  # what is tested
            return x, missing, total, getattr(x, "dtype"), getattr(x, "no_such_thing", 3)  # noqa: B009

    torch.manual_seed(0)
    eager = Layer()
    torch.manual_seed(0)
    traced = sg.symbolic_trace(Layer(), strict=True)
    assert_same(eager(X), traced(X))
    assert len(traced.forward.plan.segments) == traced.forward.cache_info().programs == 1


def test_attributes_that_are_missing() -> None:
    def function(x: Tensor) -> Any:
        try:
            return x.no_such_thing  # type: ignore[attr-defined]  # what is tested
        except AttributeError as error:
            return x + 1, hasattr(x, "no_such_thing"), type(error).__name__

    check(function, X)


# ---- 4.3 gather
@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: torch.gather(x, 1, i.expand(3, -1)),
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: torch.index_select(x, 0, i),
        lambda x, i: x.reshape(-1, 2).index_select(0, i.flatten()),
        lambda x, i: torch.take_along_dim(x, i[None], dim=1),
        lambda x, i: F.embedding(i, x),
        lambda x, i: x[i],
    ],
)
def test_gather(function: Callable[[Tensor, Tensor], Tensor]) -> None:
    check(function, X, torch.tensor([2, 0, 1]))


def test_the_positions_that_are_masked() -> None:
    def function(hidden: Tensor, positions: Tensor) -> Tensor:
        flat = torch.reshape(hidden, [-1, hidden.shape[-1]])
        return F.layer_norm(F.gelu(torch.index_select(flat, 0, positions)), [4])

    check(function, X.reshape(1, 3, 4), torch.tensor([0, 2]))


# ---- 5.1 context managers
@contextlib.contextmanager
def fp16_guard() -> Iterator[None]:
    """Paddle's: a generator that the standard library makes a context manager."""
    LEVELS.append(len(LEVELS))
    try:
        yield
    finally:
        LEVELS.pop()


LEVELS: list[int] = []


class Scale:
    """A context manager with a state."""

    def __init__(self, factor: float) -> None:
        self.factor, self.depth = factor, 0

    def __enter__(self) -> Scale:
        self.depth += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.depth -= 1


def with_guard(x: Tensor) -> Tensor:
    with fp16_guard():
        out = x + len(LEVELS)
    return out


def with_return(x: Tensor) -> Tensor:
    with Scale(2.0) as outer, Scale(3.0) as inner:
        return x * outer.factor * inner.factor * outer.depth


def with_no_grad(x: Tensor) -> Any:
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad(), contextlib.nullcontext(3) as three:
        return y * three, torch.is_grad_enabled()


def with_autocast(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=x.dtype == torch.float32):
        y = x @ x.T
    return y.float()


def with_suppress(x: Tensor) -> Tensor:
    with contextlib.suppress(KeyError):
        x = x + 1
        raise KeyError
    return x * 2


def with_stack(x: Tensor) -> Tensor:
    with contextlib.ExitStack() as stack:
        scale = stack.enter_context(Scale(2.0))
        return x * scale.factor


@pytest.mark.parametrize("function", [with_guard, with_return, with_no_grad, with_autocast, with_suppress])
def test_with(function: Callable[[Tensor], Any]) -> None:
    check(function, X)
    assert LEVELS == []


def test_a_stack_of_managers_is_made_by_python() -> None:
    static = sg.to_static(with_stack, full_graph=False, strict=True, backend="eager")
    for number in (1, 2, 3):
        torch.testing.assert_close(static(X * number), with_stack(X * number))
        assert LEVELS == []


# ---- 5.2 STORE_ATTR
class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps, self.config = 0, Config()
        self.last: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.last = x.detach() * self.steps
        self.config.options["last"] = self.last.sum()
        self.config.activation = "tanh"
        made = Config("relu")
        made.mask = x > 0
        return F.relu(x * made.mask) + self.steps


def test_attributes_are_stored() -> None:
    eager, model = Counting(), sg.symbolic_trace(Counting(), strict=True)
    for number in range(4):
        assert_same(eager(X + number), model(X + number))
        assert_same(vars(eager)["last"], vars(model)["last"])
        assert (model.steps, model.config.activation) == (eager.steps, "tanh")
        assert_same(eager.config.options, model.config.options)
    assert len(model.forward.plan.segments) == 1
    assert model.forward.cache_info()[:3] == (2, 2, 2)  # at first there is nothing in `last`, nor in the dict


# ---- 5.3 super
class Base(nn.Module):
    factor = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        return self.linear(x) * scale

    @property
    def doubled(self) -> float:
        return 2 * self.factor


class Derived(Base):
    factor = 3.0

    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        inside = super().forward(x, scale=self.factor)
        return inside + super().forward(x) + super().doubled


class Mixed(Derived):
    def forward(self, x: Tensor, scale: float = 1.0) -> Tensor:
        def inner() -> Tensor:
            return super(Mixed, self).forward(x)

        return inner() + super().forward(x) * len([super(Mixed, self).doubled for _ in range(2)])


@pytest.mark.parametrize("kind", [Derived, Mixed])
def test_super(kind: type[nn.Module]) -> None:
    torch.manual_seed(0)
    eager = kind()
    torch.manual_seed(0)
    model = sg.symbolic_trace(kind(), strict=True)
    for number in range(2):
        assert_same(eager(X + number), model(X + number))
    assert len(model.forward.plan.segments) == model.forward.cache_info().programs == 1


# ---- 5.4 LOAD_DEREF
def scaled_by(factor: float, weight: Tensor) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        def inner(y: Tensor) -> Tensor:
            return y * factor + weight.sum() + x.shape[0]

        return inner(x) + sum(inner(row).sum() for row in (x, -x))

    return function


def test_closures() -> None:
    check(scaled_by(2.0, X), X)


def counted() -> Callable[[Tensor], Tensor]:
    count = 0

    def function(x: Tensor) -> Tensor:
        nonlocal count
        count += 1

        def again(y: Tensor) -> Tensor:
            nonlocal count
            count += 10
            return y * count

        return again(x) + again(x)

    return function


def test_closures_that_write() -> None:
    eager, traced = counted(), sg.symbolic_trace(counted(), strict=True)
    for _ in range(3):
        assert_same(eager(X), traced(X))
    assert len(traced.plan.segments) == traced.cache_info().programs == 1


def decorated(scale: float) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Like the `decorator` package's: what is called stands in a cell."""

    def decorate(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def wrapper(*args: Any, **kwargs: Any) -> Tensor:
            return function(*args, **kwargs) * scale

        return wrapper

    return decorate


@decorated(3.0)
def net(x: Tensor, *, bias: float = 1.0) -> Tensor:
    return x + bias


def test_decorators() -> None:
    check(net, X)
    check(lambda x: net(x, bias=2.0), X)


# ---- 5.5 predicates on objects that are neither constants nor tensors
class Sized:
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


class Told(Sized):
    def __bool__(self) -> bool:
        return self.count > 1

    def __call__(self, x: Tensor) -> Tensor:
        return x * self.count


PREDICATES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a list": (lambda x, o: x + 1 if o else x, ([],)),
    "a full list": (lambda x, o: x + 1 if not o else x, ([1],)),
    "a dict": (lambda x, o: x + 1 if o else x, ({"a": 1},)),
    "an empty tuple": (lambda x, o: x + 1 if o else x, ((),)),
    "a set": (lambda x, o: x + 1 if o and 2 in o else x, ({2},)),
    "a text": (lambda x, o: x + 1 if o else x, ("",)),
    "None or": (lambda x, o: (o or (lambda y: y - 1))(x), (None,)),
    "an object": (lambda x, o: x + 1 if o else x, (Config(),)),
    "a module": (lambda x, o: o(x) if o else x, (nn.ReLU(),)),
    "an empty container of modules": (lambda x, o: x + 1 if o else x, (nn.ModuleList(),)),
    "a function": (lambda x, o: o(x) if o else x, (torch.sin,)),
    "a class": (lambda x, o: x + 1 if o and issubclass(o, Sized) else x, (Told,)),
    "by __len__": (lambda x, o: x + 1 if o else x, (Sized(0),)),
    "by __bool__": (lambda x, o: o(x) if o else x, (Told(2),)),
    "by __bool__, false": (lambda x, o: o(x) if o else x, (Told(1),)),
    "while": (lambda x, o: [x + o.pop() for _ in range(2) if o], ([1, 2, 3],)),
    "isinstance": (lambda x, o: x + 1 if isinstance(o, (Sized, list)) else x, (Told(1),)),
    "isinstance of a tensor": (lambda x: x + 1 if isinstance(x, Tensor) and not isinstance(x, nn.Parameter) else x, ()),
    "hasattr": (lambda x, o: x + o.count if hasattr(o, "count") else x, (Told(3),)),
    "callable": (lambda x, o: o(x) if callable(o) else x, (Told(3),)),
    "any and all": (lambda x, o: x + 1 if any(o) and not all(o) else x, ([0, 1, ()],)),
    "a list of tensors": (lambda x: x + 1 if [x] else x, ()),
    "a shape": (lambda x: x + 1 if x.shape else x, ()),
}


@pytest.mark.parametrize("name", list(PREDICATES))
def test_predicate(name: str) -> None:
    function, args = PREDICATES[name]
    if name == "while":
        expected, found = list(args[0]), list(args[0])
        traced = sg.symbolic_trace(function, strict=True)
        assert_same(function(X, expected), traced(X, found))
        assert expected == found
        assert len(traced.plan.segments) == 1
        return
    check(function, X, *args)


def test_a_tensors_truth_is_a_branch() -> None:
    def function(x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 and x.ndim == 2 else -x

    traced = sg.symbolic_trace(function, strict=True)
    for x in (X, -X, X + 9):
        assert_same(function(x), traced(x))
    assert len(traced.plan.segments) == traced.cache_info().programs == 1
