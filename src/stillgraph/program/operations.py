"""Operations of our own: what torch has no operator for. Each runs as it stands in the native lowering."""

from __future__ import annotations

import builtins
import contextlib
import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from types import CellType, FunctionType
from typing import Any, NoReturn

import torch
from torch.utils.hooks import BackwardHook

from stillgraph.program.exceptions import raise_, raise_made, reraise, which, without_traceback
from stillgraph.program.facts.rerouting import rerouted


class Unbound:
    """What a variable holds on a path that did not assign it. Any use raises what Python raises for the name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def _raise(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise UnboundLocalError(f"cannot access local variable '{self.name}' where it is not associated with a value")

    def __getattr__(self, name: str) -> NoReturn:
        self._raise()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, Unbound):
                value._raise()
        raise UnboundLocalError("cannot access a local variable where it is not associated with a value")


_USES = """
    add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow matmul rmatmul and
    rand or ror xor rxor lshift rshift eq ne lt le gt ge neg pos abs invert bool int float index len
    iter getitem setitem call round
"""
for _name in _USES.split():
    setattr(Unbound, f"__{_name}__", Unbound._raise)


def unbound(name: str) -> Unbound:
    """The value of a variable on a path that did not assign it."""
    return Unbound(name)


def print_(template: str | None, values: list[Any], options: dict[str, Any]) -> None:
    """``print``: ``values`` as they are, or formatted into ``template`` first."""
    if template is None:
        print(*values, **options)
    else:
        print(template.format(*values), **options)


def text(template: str, *values: Any, **names: Any) -> str:
    """An f-string whose values only the run knows."""
    return template.format(*values, **names)


def assert_(condition: Any, message: Any, has_message: bool) -> None:
    """``assert condition, message``."""
    if not condition:
        raise AssertionError(message) if has_message else AssertionError


def require(condition: Any, text: str) -> None:
    """What a pass puts where Python itself would raise, before an operation that has become torch's.

    Args:
        condition: a number or a tensor of one element; unless it is true the exception is raised.
        text: the name of an exception of Python's, and behind a colon what it says.
    """
    if not condition:
        name, _, message = text.partition(": ")
        raise getattr(builtins, name)(message)


def divisor(number: Any) -> Any:
    """What a whole number is divided by, which is required not to be 0: 1 where it is.

    A requirement inside a branch or loop is looked at behind that, and torch's division would fail before.
    """
    return number or 1


def as_tensor(number: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """Where a number meets the tensor of another path: it stays a number, as in eager PyTorch.

    A lowering to tensors makes it a 0-d tensor of ``dtype``.
    """
    return number


def kind_code(number: Any) -> int | None:
    """Of which kind a number is: 0 for ``bool``, 1 for ``int``, 2 for ``float``; None for ``None``."""
    return None if number is None else (bool, int, float).index(type(number))


def bound(value: Any) -> Any:
    """A value that leaves the program: not a variable that the path taken did not assign."""
    if isinstance(value, Unbound):
        value._raise()
    return value


def is_unbound(value: Any) -> bool:
    """Whether a variable has no value on the path taken, asked before it is read."""
    return isinstance(value, Unbound)


def is_integer(number: Any) -> bool:
    """``number.is_integer()``."""
    return bool(float(number).is_integer())


def percent(template: str, values: Any) -> str:
    """``template % values``, of values that only the run knows."""
    text: str = template % values
    return text


def made(kind: Any, items: tuple[Any, ...]) -> Any:
    """``kind(*items)``: a named tuple of what only the run knows."""
    return kind(*items)


def ordered(kind: type[OrderedDict[Any, Any]], items: list[tuple[Any, Any]], state: dict[str, Any]) -> Any:
    """An ordered dict with these items and attributes: what ``state_dict()`` gives has its versions in one."""
    result = kind(items)
    vars(result).update(state)
    return result


def act(step: Any, args: Any, kwargs: Any) -> Any:
    """Let Python do something to the world outside: a step of `program.acts`'s."""
    return step(*args, **kwargs)


_SETTLER: ContextVar[Callable[[int, list[Any]], None] | None] = ContextVar("settler", default=None)


@contextlib.contextmanager
def settling(carry_out: Callable[[int, list[Any]], None]) -> Iterator[None]:
    """Run a program that uses `settle`: ``carry_out(index, values)`` does what is at that index in `Program.midway`."""
    token = _SETTLER.set(carry_out)
    try:
        yield
    finally:
        _SETTLER.reset(token)


def settle(index: int, values: list[Any]) -> None:
    """Write to Python's objects what the function has written until here: Python code follows that may look at them.

    Outside of a call, where a checkpoint is computed again, say, they hold it already.
    """
    carry_out = _SETTLER.get()
    if carry_out is not None:
        carry_out(index, values)


def invoke(function: Any, args: Any, kwargs: Any) -> Any:
    """Call a Python function whose result differs at every call."""
    return function(*args, **kwargs)


def closed_over(
    function: FunctionType, cells: dict[str, Any], defaults: tuple[Any, ...], keywords: dict[str, Any]
) -> FunctionType:
    """A function of the user's with these values in its closure and as its defaults."""
    names = function.__code__.co_freevars
    known = dict(zip(names, function.__closure__ or ()))
    closure = tuple([CellType(cells[name]) if name in cells else known[name] for name in names])
    made = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, closure)
    made.__kwdefaults__ = keywords
    return made


def module_hooks(module: torch.nn.Module) -> BackwardHook:
    """The backward hooks of a module, ready to be set up for one call of it."""
    # What `torch.nn.Module.__call__` does; there is no public way to put a module's hooks around a call.
    hooks, _ = module._get_backward_hooks()
    return BackwardHook(module, hooks, module._get_backward_pre_hooks())


def hooked_inputs(hooks: BackwardHook, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call of a module, with its backward hooks behind them."""
    return tuple(hooks.setup_input_hook(args))


def hooked_outputs(hooks: BackwardHook, result: tuple[Any, ...]) -> tuple[Any, ...]:
    """The results of a call of a module, with its backward hooks on them."""
    return tuple(hooks.setup_output_hook(result))


def outside(step: Any, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Let Python do, with tensors of the program's, what no graph can express: a step of `program.distributed`'s."""
    return tuple(step(*values))


def sort_order(keys: list[Any], reverse: bool) -> tuple[int, ...]:
    """Where ``sorted`` takes its elements from: the index of the first in order, of the second, and so on."""
    return tuple(sorted(range(len(keys)), key=lambda index: keys[index], reverse=reverse))


def sort_rows(columns: tuple[list[Any], ...], reverse: bool) -> tuple[int, ...]:
    """As `sort_order`, by the tuples whose parts stand in ``columns``."""
    return sort_order([*zip(*columns)], reverse)


# ---- lists of which only the run knows the length; none of these changes its argument
def build_list(items: list[Any], spread: tuple[int, ...]) -> list[Any]:
    """``[a, *b, c]``: the elements of a list, those at the positions ``spread`` being lists to be spread."""
    result: list[Any] = []
    for index, item in enumerate(items):
        if index in spread:
            result.extend(item)
        else:
            result.append(item)
    return result


def popped(items: list[Any], index: int) -> list[Any]:
    """What ``items.pop(index)`` leaves."""
    rest = list(items)
    rest.pop(index)
    return rest


def deleted(items: list[Any], index: Any) -> list[Any]:
    """What ``del items[index]`` leaves."""
    rest = list(items)
    del rest[index]
    return rest


def found_to_remove(items: list[Any], value: Any) -> int:
    """Where ``items.remove(value)`` finds what it removes.

    Raises:
        ValueError: nowhere, in the words of ``remove``.
    """
    for index, item in enumerate(items):
        if item is value or item == value:
            return index
    raise ValueError("list.remove(x): x not in list")


def rows_with(columns: tuple[list[Any], ...], values: tuple[Any, ...]) -> list[bool]:
    """For each of the tuples whose parts stand in ``columns``, whether it is equal to the tuple of ``values``."""
    return [all(a is b or a == b for a, b in zip(row, values)) for row in zip(*columns)]


def inserted(items: list[Any], index: int, value: Any) -> list[Any]:
    """What ``items.insert(index, value)`` leaves."""
    rest = list(items)
    rest.insert(index, value)
    return rest


def replaced(items: list[Any], index: int, value: Any) -> list[Any]:
    """What ``items[index] = value`` leaves."""
    rest = list(items)
    rest[index] = value
    return rest


def taken(items: list[Any], order: Sequence[int]) -> list[Any]:
    """The elements at these indices, in this order."""
    return [items[index] for index in order]


def copied_tensors(items: list[torch.Tensor]) -> list[torch.Tensor]:
    """``copy.deepcopy`` of a list of tensors."""
    return copy.deepcopy(items)


def chosen_each(numbers: list[int], table: tuple[Any, ...]) -> list[Any]:
    """The entries of a table at some places."""
    return [table[number] for number in numbers]


def repeated(items: list[Any], count: int) -> list[Any]:
    """``items * count``."""
    return items * count


def encode_nested(
    src: torch.Tensor, kept: torch.Tensor, weights: list[tuple[torch.Tensor, ...]], options: list[tuple[Any, ...]]
) -> torch.Tensor:
    """The fast path of `torch.nn.TransformerEncoder`: the layers see no padding, and zeros are put in its place.

    Args:
        src: a padded batch.
        kept: where it is no padding.
        weights: of each layer, in the order of `torch._transformer_encoder_layer_fwd`.
        options: of each layer: sizes, number of heads, whether GELU, whether normalised first, epsilon.
    """
    layer: Any = torch._transformer_encoder_layer_fwd
    output = torch._nested_tensor_from_mask(src, kept, mask_check=False)
    for tensors, (size, heads, gelu, norm_first, epsilon) in zip(weights, options, strict=True):
        output = layer(output, size, heads, *tensors[:4], gelu, norm_first, epsilon, *tensors[4:], None, None)
    return output.to_padded_tensor(0.0, src.size())


def to_numpy(tensor: torch.Tensor | None, scalar: bool = True) -> Any:
    """The array that shares a tensor's memory; a scalar of numpy's, if so, where it has no dimension; None for None."""
    if tensor is None:  # of a path that has no array
        return None
    array = tensor.numpy()
    return array[()] if scalar and array.ndim == 0 else array


# ---- recursion
def recursion(name: str, body: Any, entries: tuple[Any, ...], operands: tuple[Any, ...]) -> Any:
    """The first call of a region that calls itself: ``body(*entries, *operands)``, ``operands`` being the same for all.

    The native lowering makes it a function; nothing runs it as it stands.
    """
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


def recurse(name: str, *args: Any) -> Any:
    """A call, inside the body of the `recursion` of that name, of the body."""
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


# ---- gradients
def checkpointed(body: Any, inputs: tuple[Any, ...], operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """``checkpoint(body, *inputs, **options)`` of torch's, where ``body`` is given ``operands`` besides.

    The native lowering makes it a function; nothing runs it as it stands.
    """
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


# ---- exceptions that the program itself handles
def try_(name: str, body: Any, handler: Any, kinds: tuple[type, ...], operands: tuple[Any, ...]) -> Any:
    """``body(*operands)``; where that raises one of ``kinds``, ``handler(error, *kept, *operands)`` instead.

    ``kept`` is what the last `keep` of that name handed over. The native lowering makes it a ``try`` statement; nothing
    runs it as it stands.
    """
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


def keep(name: str, values: list[Any]) -> None:
    """What the handler of the `try_` of that name would find in the variables and objects it knows, from here on."""
    raise NotImplementedError("only the native lowering, which writes this out, can carry it out")


def make_generator(device: str) -> torch.Generator:
    """A random generator of the function's own."""
    return torch.Generator(device)


def generator_state(device: str) -> torch.Tensor:
    """The state of a device's default generator."""
    return torch.get_rng_state() if device == "cpu" else torch.cuda.get_rng_state(device)


def set_generator_state(state: torch.Tensor, device: str) -> None:
    """Set the state of a device's default generator."""
    if device == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


_GENERATORS = {make_generator, generator_state, set_generator_state}
EFFECTFUL = frozenset(
    {print_, try_, keep, reraise, raise_, raise_made, assert_, recursion, recurse, invoke, checkpointed, outside, act}
    | {rerouted, settle, require, which, without_traceback} | _GENERATORS
)
