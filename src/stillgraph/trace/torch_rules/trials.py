"""What a torch function gives for sizes that only the run knows, told by what it gives for many known ones.

Torch's code asks for sizes, to choose a kernel or to check them, and often gives one form of result whatever they are.
It is called on tensors without data, of one set of sizes after the other. What all results agree in is taken to be so
for every size. A size of the result is a constant, or a multiple of one that goes in plus a constant, or else one that
the run alone knows. So two sizes that go in must differ in some call, unless the function refuses all such calls.

Where torch has no form of a function without data, the kernel itself is called, on small tensors of made-up numbers.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from stillgraph.program.facts.info import mark
from stillgraph.trace.fakes.symbolic import DATA_DEPENDENT, Symbolic, without_dispatch_modes
from stillgraph.trace.fakes.trial_sizes import are_told_apart, sizes_to_try

_FLOATS = (0.5, -1.0, 2.0, 0.0, 1.0, 7.25)  # on each side of what functions have shortcuts and limits for
_MOST_ELEMENTS = 20_000  # of a made-up tensor
_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_NUMBERS = (int, float, complex, bool, str, type(None), *_OF_TORCH)


class NoForm(Exception):
    """The results for several sizes have no form in common."""


@dataclass(frozen=True)
class _Trial:
    """One call on known sizes: by symbol the size, what was given, what came back."""

    sizes: dict[Any, int]
    given: tuple[Any, ...]
    result: Any
    on_data: bool


def by_trial(symbolic: Symbolic, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """What a torch function gives on fakes with symbols for sizes.

    Raises:
        NoForm: it is not to be told.
    """
    leaves, form = tree_flatten((args, kwargs))
    symbols = _symbols_of(leaves)
    if not _is_of_torch(func) or kwargs.get("out") is not None or any(map(callable, leaves)):
        raise NoForm
    with warnings.catch_warnings(), symbolic.unremembered(), symbolic.learned_inside():
        warnings.simplefilter("ignore")
        to_try = list(sizes_to_try(symbolic, symbols, list(_values(leaves)), _symbols_in_numbers(leaves)))
        trials = _trials(func, leaves, form, to_try)
    results = [tree_flatten(trial.result) for trial in trials]
    spec = results[0][1] if results else None
    if spec is None or any(each != spec for _, each in results):
        raise NoForm
    _require_varied(trials, to_try)
    known = _Known.of(leaves, trials, are_told_apart(symbols, to_try))
    made = [_one(symbolic, known, leaves, trials, found) for found in zip(*(found for found, _ in results))]
    if _writes(func) and (not made or made[0] is not leaves[0]):
        raise NoForm
    return tree_unflatten(made, spec)


def _is_of_torch(func: Any) -> bool:
    """Whether a function is torch's own, which does nothing but give a result."""
    if isinstance(func, (OpOverload, OpOverloadPacket)):
        return str(func).startswith("aten.")
    owner = getattr(func, "__module__", None) or "torch"  # methods of C's have none
    return str(owner).split(".")[0] == "torch" and not hasattr(func, "apply")


def _writes(func: Any) -> bool:
    name = getattr(func, "__name__", "")
    return name.startswith("__i") or (name.endswith("_") and not name.endswith("__"))


# ---- the calls
def _trials(func: Any, leaves: list[Any], form: TreeSpec, to_try: list[dict[Any, int]]) -> list[_Trial]:
    found: list[_Trial] = []
    on_data = False
    for sizes, floats in itertools.product(to_try, _floats(leaves)):
        for filling in (0, 1) if on_data else (0,):
            try:
                given = tuple(_with(sizes, floats, leaf) for leaf in leaves)
                on_data = _call(func, given, form, sizes, filling, on_data, found)
            except NoForm:
                raise
            except Exception:  # of any kind: it wants other sizes, in the run as well
                continue
    return found


def _call(
    func: Any,
    given: tuple[Any, ...],
    form: TreeSpec,
    sizes: dict[Any, int],
    filling: int,
    on_data: bool,
    found: list[_Trial],
) -> bool:
    """Call a function once; gives back whether it is to be called on data."""
    if not on_data:
        try:
            args, kwargs = tree_unflatten(given, form)
            found.append(_Trial(sizes, given, func(*args, **kwargs), False))
            return False
        except DATA_DEPENDENT:
            found.clear()
    with _apart():
        given = tuple(_with_data(each, filling) if isinstance(each, torch.Tensor) else each for each in given)
        args, kwargs = tree_unflatten(given, form)
        found.append(_Trial(sizes, given, func(*args, **kwargs), True))
    return True


@contextlib.contextmanager
def _apart() -> Iterator[None]:
    """In the body torch computes, and draws no random numbers that anybody misses."""
    state = torch.random.get_rng_state()
    try:
        with without_dispatch_modes():
            yield
    finally:
        torch.random.set_rng_state(state)


def _floats(leaves: Sequence[Any]) -> list[dict[str, float]]:
    """Numbers with a fraction to try, by the text of those that go in: equal ones, and each with the next."""
    given = {str(leaf): None for leaf in leaves if isinstance(leaf, torch.SymFloat)}
    count = len(_FLOATS) if given else 1
    apart = range(2) if len(given) > 1 else range(1)
    return [
        {text: _FLOATS[(start + step * place) % len(_FLOATS)] for place, text in enumerate(given)}
        for step in apart
        for start in range(count)
    ]


def _symbols_of(leaves: Sequence[Any]) -> list[Any]:
    """The symbols in sizes and numbers that go in."""
    found: dict[Any, None] = {}
    for value in _values(leaves):
        found.update(dict.fromkeys(sorted(value.node.expr.free_symbols, key=str)))
    return list(found)


def _symbols_in_numbers(leaves: Sequence[Any]) -> set[Any]:
    numbers = [leaf for leaf in leaves if isinstance(leaf, torch.SymInt)]
    return {symbol for number in numbers for symbol in number.node.expr.free_symbols}


def _values(leaves: Sequence[Any]) -> Iterator[Any]:
    for leaf in leaves:
        inside = (*leaf.shape, *leaf.stride()) if isinstance(leaf, torch.Tensor) else (leaf,)
        yield from (value for value in inside if isinstance(value, torch.SymInt))


def _number(sizes: dict[Any, int], value: Any) -> int:
    return int(value.node.expr.xreplace(sizes)) if isinstance(value, torch.SymInt) else value


def _with(sizes: dict[Any, int], floats: dict[str, float], leaf: Any) -> Any:
    """What goes in, for known sizes and numbers."""
    if isinstance(leaf, torch.Tensor):
        if leaf.layout is not torch.strided or leaf.is_quantized:
            raise NoForm
        shape = [_number(sizes, size) for size in leaf.shape]
        if min(shape, default=0) < 0:
            raise ValueError(shape)
        strides = [_number(sizes, stride) for stride in leaf.stride()]
        made = torch.empty_strided(shape, strides, dtype=leaf.dtype, device=leaf.device)
        return made.requires_grad_().clone() if leaf.requires_grad else made  # no leaf, which could not be written to
    if isinstance(leaf, torch.SymInt):
        return _number(sizes, leaf)
    if isinstance(leaf, torch.SymFloat):
        return floats[str(leaf)]
    if not isinstance(leaf, _NUMBERS):
        raise NoForm
    return leaf


def _with_data(fake: torch.Tensor, filling: int) -> torch.Tensor:
    """A tensor with made-up elements: square matrices are symmetric and have inverses."""
    if fake.numel() > _MOST_ELEMENTS:
        raise ValueError
    shape = tuple(fake.shape)
    placed = torch.empty_strided(shape, fake.stride(), dtype=fake.dtype)
    if not fake.dtype.is_floating_point and not fake.dtype.is_complex:
        return placed.fill_(filling)
    made = torch.rand(shape, dtype=torch.float64)
    if len(shape) > 1 and shape[-1] == shape[-2]:
        made = made @ made.mT + torch.eye(shape[-1], dtype=torch.float64)
    leaf = placed.copy_(made).requires_grad_(fake.requires_grad)
    return leaf.clone() if fake.requires_grad else leaf


# ---- what the results have in common
@dataclass(frozen=True)
class _Known:
    """Numbers that go in, each with what it was in each trial.

    Attributes:
        numbers: the numbers.
        apart: whether two symbols were equal in all trials only if the function wants that.
    """

    numbers: list[tuple[Any, list[int]]]
    apart: bool

    @classmethod
    def of(cls, leaves: list[Any], trials: list[_Trial], apart: bool) -> _Known:
        seen = {str(value): value for value in _values(leaves)}
        numbers = [(value, [_number(trial.sizes, value) for trial in trials]) for value in seen.values()]
        return cls(numbers, apart)

    def fitting(self, found: Sequence[int]) -> Any:
        """The number that is this one in each trial; None where there is no simple one."""
        if any(type(number) is not int for number in found):  # one that depends on data
            return None
        if len(set(found)) == 1:
            return found[0]
        lines = [(value, _line(was, found)) for value, was in self.numbers]
        fits = [value * line[0] + line[1] if line != (1, 0) else value for value, line in lines if line is not None]
        told = bool(fits) and (self.apart or len({each.node.expr for each in fits}) == 1)
        return fits[0] if told else None


def _line(was: Sequence[int], found: Sequence[int]) -> tuple[int, int] | None:
    """The factor and the term by which one sequence of numbers is made of another."""
    other = next((place for place, number in enumerate(was) if number != was[0]), None)
    if other is None or (found[other] - found[0]) % (was[other] - was[0]):
        return None
    factor = (found[other] - found[0]) // (was[other] - was[0])
    term = found[0] - factor * was[0]
    return (factor, term) if all(b == factor * a + term for a, b in zip(was, found)) else None


def _require_varied(trials: list[_Trial], to_try: list[dict[Any, int]]) -> None:
    """Let nothing be told by calls that all had the same size, which the function may want."""
    wanted = {symbol: min(3, len({sizes[symbol] for sizes in to_try})) for symbol in to_try[0]}
    varied = all(len({trial.sizes[symbol] for trial in trials}) >= count for symbol, count in wanted.items())
    if len(trials) < min(3, len(to_try)) or not varied:
        raise NoForm


def _one(symbolic: Symbolic, known: _Known, leaves: list[Any], trials: list[_Trial], found: Sequence[Any]) -> Any:
    """One of the things that come back."""
    first = found[0]
    if not isinstance(first, torch.Tensor):
        return _one_number(known, trials, found)
    if any(not isinstance(each, torch.Tensor) or _form(each) != _form(first) for each in found):
        raise NoForm
    for place, leaf in enumerate(leaves):
        if all(each is trial.given[place] for each, trial in zip(found, trials)):
            expected = [[_number(trial.sizes, size) for size in leaf.shape] for trial in trials]
            if [[*each.shape] for each in found] != expected:
                raise NoForm  # it is resized
            return _written(leaf, first)
    if first.layout is not torch.strided or first.is_quantized:
        raise NoForm
    shape = [known.fitting(sizes) for sizes in zip(*(each.shape for each in found))]
    base = _base(leaves, trials, found)
    if base is not None:
        return _view(known, base, shape, found)
    sizes = tuple(symbolic.fresh_size() if size is None else size for size in shape)
    device = next((leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)), first.device)
    order = _order(found)
    dims = list(range(len(shape))) if order is None else order
    made = torch.empty([sizes[dim] for dim in dims], dtype=first.dtype, device=device)
    made = made if dims == sorted(dims) else made.permute([dims.index(dim) for dim in range(len(dims))])
    made = _computed(made, leaves, [each.requires_grad for each in found])
    if order is None:
        mark(made, layout_varies=True)  # see `layouts`
    return made


def _order(found: Sequence[torch.Tensor]) -> list[int] | None:
    """The dimensions of results in memory, from the outermost; None where they lie otherwise for other sizes."""
    order = list(range(found[0].dim()))
    if all(each.is_contiguous() for each in found):
        return order
    telling = max(found, key=lambda each: sum(size > 1 for size in each.shape))
    order.sort(key=telling.stride, reverse=True)
    return order if all(each.permute(order).is_contiguous() for each in found) else None


def _form(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.dim(), tensor.layout, tensor.device.type


def _one_number(known: _Known, trials: list[_Trial], found: Sequence[Any]) -> Any:
    if trials[0].on_data or any(type(each) not in {type(found[0])} & {*_NUMBERS} for each in found):
        raise NoForm
    if type(found[0]) is int and (fitting := known.fitting(found)) is not None:
        return fitting
    if any(each != found[0] for each in found):
        raise NoForm
    return found[0]


def _written(leaf: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    """A tensor that went in, which may have been written to."""
    if made.requires_grad != leaf.requires_grad:
        raise NoForm
    if not leaf.is_inference():
        torch.autograd.graph.increment_version(leaf)
    return leaf


def _base(leaves: list[Any], trials: list[_Trial], found: Sequence[torch.Tensor]) -> Any:
    """What goes in of which the results are views; None where they have memory of their own."""
    for place, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            continue
        filled = [(each, trial) for each, trial in zip(found, trials) if all(_is_some(size) for size in each.shape)]
        shares = [_memory(each) == _memory(trial.given[place]) for each, trial in filled]
        if any(shares):
            if not all(shares):
                raise NoForm
            return leaf
    return None


def _is_some(size: Any) -> bool:
    return type(size) is not int or size > 0


def _memory(tensor: torch.Tensor) -> int:
    storage: int = tensor.untyped_storage()._cdata
    return storage


def _view(known: _Known, base: torch.Tensor, shape: list[Any], found: Sequence[torch.Tensor]) -> torch.Tensor:
    strides = [known.fitting(sizes) for sizes in zip(*(each.stride() for each in found))]
    offsets: list[Any] = [each.storage_offset() for each in found]
    offset = known.fitting(offsets)
    if offset is None or None in shape or None in strides or not base.is_contiguous():
        raise NoForm
    return base.as_strided(shape, strides, offset + base.storage_offset())


def _computed(made: torch.Tensor, leaves: list[Any], require: list[bool]) -> torch.Tensor:
    """A tensor that autograd computes of what goes in, or for some sizes only: of none there may be nothing."""
    if not any(require):
        return made
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
            total = leaf.sum() * 0
            made = made + (total.real if total.is_complex() and not made.is_complex() else total).to(made.dtype)
    mark(made, grad_differs=not all(require))
    return made
