"""What a compiler is shown for a region's inputs: fake tensors like those of a call, with a symbol for each open size.

An open size is one that the capture knows as a symbol. The compiled code is right for other sizes as well, under the
conditions that the compiler has taken from the example; `Examples.conditions` writes them down as a check of inputs.

The adapter to how torch makes symbols for the sizes of an example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from stillgraph.program.facts import torch_symbols

Check = Callable[..., bool]


@dataclass(frozen=True)
class Open:
    """What of an input differs from call to call: the sizes that are marked of a tensor, or the value of a number."""

    sizes: tuple[bool, ...] | None = None

    @staticmethod
    def of(value: Any) -> Open | None:
        """What the capture leaves open of an input, of which it knows this; None for nothing."""
        if isinstance(value, torch.SymInt):
            return Open()
        if not isinstance(value, torch.Tensor) or all(isinstance(size, int) for size in value.shape):
            return None
        return Open(tuple(not isinstance(size, int) for size in value.shape))


@dataclass(frozen=True)
class Examples:
    """Stand-ins for the inputs of a call.

    Attributes:
        mode: of the fake tensors.
        values: the stand-ins; what is no tensor and not open stands for itself.
    """

    mode: FakeTensorMode
    values: list[Any]

    @staticmethod
    def of(inputs: Sequence[Any], opened: Sequence[Open | None]) -> Examples:
        """Stand-ins for these inputs, of which these are open."""
        mode = FakeTensorMode(shape_env=torch_symbols.ShapeEnv())  # AOTAutograd refuses symbols without an environment
        pairs = zip(inputs, opened, strict=True)
        return Examples(mode, [_like(value, each, mode, f"input_{n}") for n, (value, each) in enumerate(pairs)])

    def layout(self, index: int) -> tuple[list[int | None], list[int | None]]:
        """Sizes and strides of a tensor among them, None for what is open."""
        tensor = self.values[index]
        return [*map(_known, tensor.shape)], [*map(_known, tensor.stride())]

    def conditions(self) -> Check | None:
        """Once something was compiled for the examples, a check of inputs beyond what `layout` tells.

        Returns:
            A function of the inputs; None if what the compiler relies on cannot be checked.
        """
        places: dict[str, str] = {}  # of each symbol, the first
        written = set()
        for text, place in self._facts():
            if not text.isidentifier() or places.setdefault(text, place) != place:
                written.add(f"{text} == {place}")
        environment = self.mode.shape_env
        assert environment is not None, "`of` gives it one"
        for symbol, found in environment.var_to_range.items():
            if str(symbol) in places:
                written |= {f"{symbol} >= {found.lower}"} if found.lower.is_number and found.lower > 0 else set()
        for guard in environment.guards:
            if not {str(symbol) for symbol in guard.expr.free_symbols} <= places.keys():
                return None
            written.add(torch_symbols.PythonPrinter().doprint(guard.expr))
        names = ", ".join(f"input_{n}" for n in range(len(self.values)))
        inner = f"lambda {', '.join(places)}: {' and '.join(f'({each})' for each in sorted(written)) or True}"
        check: Check = eval(f"lambda {names}: ({inner})({', '.join(places.values())})", {"math": math})
        return check

    def _facts(self) -> Iterator[tuple[str, str]]:
        """What is open: an expression in symbols, and where its value is found in the inputs."""
        for number, value in enumerate(self.values):
            name = f"input_{number}"
            if isinstance(value, torch.SymInt):
                yield _written(value), name
            elif isinstance(value, torch.Tensor):
                for read, found in (("size", value.shape), ("stride", value.stride())):
                    unknown = ((dim, each) for dim, each in enumerate(found) if _known(each) is None)
                    yield from ((_written(each), f"{name}.{read}({dim})") for dim, each in unknown)


def _known(size: Any) -> int | None:
    if isinstance(size, torch.SymInt):
        return int(size.node._expr) if size.node._expr.is_number else None
    return int(size)


def _written(size: Any) -> str:
    """As it was made: a compilation may have replaced a symbol by what it has assumed."""
    return str(torch_symbols.PythonPrinter().doprint(size.node._expr))


def _like(value: Any, opened: Open | None, mode: FakeTensorMode, name: str) -> Any:
    if not isinstance(value, torch.Tensor):
        return value if opened is None else _symbol(value, mode, name)
    if opened is None or opened.sizes is None or value.layout is not torch.strided:
        return mode.from_tensor(value, static_shapes=True)
    sizes, strides = _symbolic_layout(value, opened.sizes, mode, name)
    with mode, torch.enable_grad():
        fresh = torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)
        fresh.requires_grad_(value.requires_grad)
        # AOTAutograd keeps a write to a leaf from autograd.
        return fresh if value.is_leaf else fresh.as_strided(sizes, strides)


def _symbol(value: int, mode: FakeTensorMode, name: str) -> Any:
    """A symbol for a whole number."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic

    environment = mode.shape_env
    assert environment is not None, "`Examples.of` gives it one"
    options: dict[str, Any] = {"positive": None, "do_not_specialize_zero_one": True}
    symbol = environment.create_symbol(value, ConstantSource(name), DimDynamic.DYNAMIC, **options)
    return environment.create_symintnode(symbol, hint=value, source=ConstantSource(name))


def _symbolic_layout(value: torch.Tensor, opened: tuple[bool, ...], mode: FakeTensorMode, name: str) -> tuple[Any, Any]:
    """Sizes and strides with symbols for what is open."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    environment = mode.shape_env
    assert environment is not None, "`Examples.of` gives it one"
    dims = [DimDynamic.DYNAMIC if each else DimDynamic.STATIC for each in opened]
    context: Any = StatelessSymbolicContext(dynamic_sizes=dims)
    made = environment.create_symbolic_sizes_strides_storage_offset(
        value.detach(), ConstantSource(name), symbolic_context=context
    )
    return made[0], made[1]
