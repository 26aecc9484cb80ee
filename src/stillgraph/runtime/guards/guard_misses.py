"""Guards in words: why a program does not fit a call."""

from __future__ import annotations

import math
import os
import reprlib
import types
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from stillgraph.core.files import is_users
from stillgraph.core.lookup import behind_view, class_member, is_unset
from stillgraph.core.parcel import Parcel, opened
from stillgraph.program.context import SWITCHES, current_context
from stillgraph.program.facts.facts import FACTS
from stillgraph.program.facts.fingerprints import fingerprint
from stillgraph.program.guards import (
    AliasGuard,
    ApartGuard,
    Argument,
    BehindGuard,
    BytesGuard,
    Cell,
    ConstantGuard,
    ContentsGuard,
    ElementsGuard,
    EnvironmentGuard,
    FactGuard,
    FunctionGuard,
    Guard,
    IdentityGuard,
    KeysGuard,
    LengthGuard,
    MembersGuard,
    MissingGuard,
    ModeGuard,
    NoAttributeGuard,
    ReadingGuard,
    SeparateGuard,
    SizeGuard,
    Source,
    TensorGuard,
    TypeGuard,
    UnsetGuard,
)
from stillgraph.program.program import Input
from stillgraph.program.upcoming import are_separate
from stillgraph.runtime.guards.comparing import Contents, same_reading, strict_key
from stillgraph.runtime.guards.differences import difference
from stillgraph.runtime.guards.guard_order import in_checking_order
from stillgraph.runtime.guards.weak import WeakIdentityGuard, are_keys, is_member, weakened
from stillgraph.runtime.native.backends import tensor_holds
from stillgraph.runtime.native.function_writer import read_source


def explain_miss(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> str | None:
    """Say why a program does not fit a call.

    Args:
        guards: the program's guards.
        args: the call's positional arguments.
        kwargs: the call's keyword arguments.
        inputs: the program's inputs, which must be found too.

    Returns:
        One sentence on the first guard that does not hold, with what was expected and what was found; None where all
        do.
    """
    return next(failures(guards, args, kwargs, inputs), None)


def failures(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any], inputs: Sequence[Input] = ()
) -> Iterator[str]:
    """One sentence on each fact that does not hold, in the order of checking (see `explain_miss`)."""
    for guard, sentence in failing(guards, args, kwargs):
        yield from _mode_failures(guard) if isinstance(guard, ModeGuard) else [sentence]
    for item in inputs:
        try:
            read_source(item.source, args, kwargs)
        except Exception as error:  # of any kind: reading may run the user's code
            yield _unreadable(f"{item.source} should be there", error, args, kwargs)


def failing(
    guards: Sequence[Guard], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Guard, str]]:
    """Each guard that does not hold, with a sentence on it."""

    def read(source: Source) -> Any:
        return read_source(source, args, kwargs)

    for guard in in_checking_order(guards):
        try:
            sentence = _failure(guard, read)
        except Exception as error:  # of any kind: reading may run the user's code
            sentence = _unreadable(str(guard), error, args, kwargs)
        if sentence is not None:
            yield guard, sentence


def _unreadable(what: str, error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What is said of a fact where reading what it is about has raised an error."""
    passed = getattr(error, "obj", None)
    if type(passed) is not Parcel:
        return f"{what}, but reading it raised {type(error).__name__}: {error}"
    # what is passed twice is in one parcel, which has the name of the first place
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    places = [Argument(key) for key, value in given if value is passed]
    if len(places) < 2:
        return f"{what}, but it is another object that is only handed on"
    return f"{places[0]} and {places[-1]} should be different objects, but are the same object"


def _failure(guard: Guard, read: Callable[[Source], Any]) -> str | None:
    match guard:
        case TensorGuard(source=source):
            value = read(source)
            return None if tensor_holds(guard, value) else f"{_expected_tensor(guard)}, but is {_shown(value, guard)}"
        case TypeGuard(source=source, type=kind):
            value = read(source)
            if type(value) is not kind and type(opened(value)) is kind:
                return f"{source} should be {_kind(kind)} that is looked into, but is one that is only handed on"
            return None if type(value) is kind else f"{source} should be {_kind(kind)}, but is {_kind_found(value)}"
        case BehindGuard(source=source, type=kind):
            value = behind_view(read(source))
            return None if type(value) is kind else f"{source} should show {_kind(kind)}, not {_kind_found(value)}"
        case ConstantGuard(source=source, value=expected):
            value = read(source)
            if strict_key(value) == strict_key(expected):
                return None
            value = opened(value)
            kinds = (f" ({type(expected).__name__})", f" ({type(value).__name__})")
            if type(value) is type(expected):
                kinds = ("", "")
            return f"{source} should be {_shown(expected)}{kinds[0]}, but is {_shown(value)}{kinds[1]}"
        case BytesGuard(source=source, data=data):
            value = read(source)
            return _array_failure(source, data, fingerprint(value))
        case ContentsGuard(source=source, value=expected):
            value = read(source)
            if Contents.of(expected).are_in(value):
                return None
            return difference(str(source), expected, value, _shown)
        case MembersGuard(source=source, members=members):
            space = read(source)
            changed = [name for name, member in members if not is_member(space[name], member)]
            return f"{source}[{changed[0]!r}] should be what it was, but was replaced" if changed else None
        case MissingGuard(source=source, names=names):
            made = [name for name in names if name in read(source)]
            return f"{source} should lack {made[0]!r}, but has it" if made else None
        case NoAttributeGuard(source=source, name=name):
            return f"{source} should have no attribute {name!r}, but has one" if hasattr(read(source), name) else None
        case UnsetGuard(source=source):
            cell = source.cell if isinstance(source, Cell) else read(source.base)
            return None if is_unset(cell) else f"{source} should be unset, but holds a value"
        case FunctionGuard(source=source):
            return _function_failure(guard, read(source))
        case ReadingGuard(function=function, args=args, value=expected):
            value = function(*args)
            if same_reading(value, expected):
                return None
            return f"{guard.call} should be {_shown(expected)}, but is {_shown(value)}"
        case EnvironmentGuard(name=name, value=expected):
            before = expected if name is None else {name: expected}
            variables = before if name is not None else {**before, **os.environ}
            changed = [key for key in variables if os.environ.get(key) != before.get(key)]
            return f"os.environ[{changed[0]!r}] should be what it was, but was changed" if changed else None
        case IdentityGuard(source=source):
            return _identity_failure(guard, read(source))
        case LengthGuard(source=source, length=length):
            found_length = len(read(source))
            return None if found_length == length else f"len({source}) should be {length}, but is {found_length}"
        case ElementsGuard(source=source, type=kind):
            other = next((type(value) for value in read(source) if type(value) is not kind), None)
            wanted = f"{source} should hold only {kind.__qualname__}s"
            return None if other is None else f"{wanted}, but holds a {other.__qualname__}"
        case KeysGuard(source=source, keys=keys):
            container = read(source)
            if not isinstance(container, (Collection, types.MappingProxyType)) or isinstance(container, torch.Tensor):
                return f"{source} should have keys, but is {_shown(container)}"
            found_keys = (*container,)
            if are_keys(found_keys, keys):
                return None
            if isinstance(container, (set, frozenset)):
                return _set_failure(source, keys, container)
            return f"the keys of {source} should be {_shown(list(keys))}, but are {_shown(list(found_keys))}"
        case AliasGuard(left=left, right=right, same=same):
            if (read(left) is read(right)) is same:
                return None
            wanted, found_as = ("the same object", "different objects")[:: 1 if same else -1]
            return f"{left} and {right} should be {wanted}, but are {found_as}"
        case SeparateGuard(iterators=iterators, containers=containers):
            together = not are_separate([*map(read, iterators)], [*map(read, containers)])
            return f"{guard}: this should hold, but does not" if together else None
        case ApartGuard(sources=sources):
            return None if len({id(read(source)) for source in sources}) == len(sources) else _one_object(sources, read)
        case FactGuard(source=source, name=name, value=expected):
            found_fact = FACTS[name](read(source))
            return None if found_fact == expected else f"{guard}, but now {_shown(found_fact)}"
        case SizeGuard(expression=expression, sizes=sizes):
            found_sizes = {name: read(source).size(dim) for name, source, dim in sizes}
            if eval(expression, {"math": math}, found_sizes):
                return None
            values = ", ".join(f"{name} (size {dim} of {src}) is {found_sizes[name]}" for name, src, dim in sizes)
            return f"{expression} should hold, but {values}"
        case ModeGuard():
            return next(_mode_failures(guard), None)


def _one_object(sources: Sequence[Source], read: Callable[[Source], Any]) -> str:
    seen: dict[int, Source] = {}
    same = next((seen[id(v)], s) for s in sources if seen.setdefault(id(v := read(s)), s) is not s)
    return f"{same[0]} and {same[1]} should be different objects, but are the same object"


def _set_failure(source: Source, expected: tuple[Any, ...], found: AbstractSet[Any]) -> str:
    gone = [key for key in expected if key not in found]
    new = [key for key in found if key not in expected]
    if gone:
        return f"{source} should hold {_shown(gone[0])}, but does not"
    if new:
        return f"{source} should not hold {_shown(new[0])}, but does"
    return f"{source} should go through its elements in the order {_shown(list(expected))}, but does not"


def _array_failure(source: Source, expected: tuple[Any, ...], found: tuple[Any, ...]) -> str | None:
    if found == expected:
        return None
    parts = zip(("type", "dtype", "shape", "strides", "writability"), expected, found)
    other = next((part for part, old, new in parts if new != old), None)
    return f"the array {source} {'holds other numbers' if other is None else f'is of another {other}'}"


def _function_failure(guard: FunctionGuard, function: Any) -> str | None:
    if function.__code__ is not guard.code:
        expected, found = _place(guard.code), _place(function.__code__)
        return f"{guard.source} should run the code of {expected}, but runs that of {found}"
    for name in ("defaults", "kwdefaults"):
        if not getattr(guard, name) and getattr(function, f"__{name}__") is not None:
            return f"{guard.source} should have no __{name}__, but has some"
    return None


def _place(code: types.CodeType) -> str:
    return f"{code.co_qualname} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})"


def _identity_failure(guard: IdentityGuard, value: Any) -> str | None:
    guard = weakened(guard)  # type: ignore[assignment]  # of the same class
    if isinstance(guard, WeakIdentityGuard):
        holds, kind = guard.expected.matches(value), guard.expected.type
    else:
        holds, kind = value is guard.expected, type(guard.expected)
    return None if holds else f"{guard.source} should be the same {kind.__name__} as before, but is {_shown(value)}"


def _mode_failures(guard: ModeGuard) -> Iterator[str]:
    """One sentence on each mode that is another one."""
    now = current_context()
    facts: tuple[tuple[str, Any, Any], ...] = (
        ("grad mode", guard.context.grad, now.grad),
        ("inference mode", guard.context.inference, now.inference),
        ("the default dtype", guard.default_dtype, torch.get_default_dtype()),
        ("autocast", guard.context.autocast, now.autocast),
        ("the default device", guard.default_device, torch.get_default_device()),
    )
    if guard.switches_matter:
        names = (switch.name for switch in SWITCHES)
        facts = (*facts, *zip(names, guard.context.switches, now.switches))
    for name, expected, found in facts:
        if expected != found:
            yield f"{name} should be {_mode_value(expected)}, but is {_mode_value(found)}"


def _mode_value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return " and ".join(str(item) for item in value) or "off"
    return str(value)


def _expected_tensor(guard: TensorGuard) -> str:
    dims = ["?" if size is None else str(size) for size in guard.shape]
    text = _tensor_text(guard.type, guard.dtype, dims, guard.device, guard.requires_grad, guard.strides)
    return f"{guard.source} should be {text}{_lazy_text(guard.lazy)}"


def _tensor_text(
    kind: type, dtype: torch.dtype, dims: Sequence[str], device: torch.device, grad: bool, strides: Any
) -> str:
    text = f"{kind.__name__} {str(dtype).removeprefix('torch.')}[{', '.join(dims)}] on {device}"
    text += f" with strides {tuple(strides)}" if strides is not None else ""
    return text + (", requires grad" if grad else "")


def _lazy_text(lazy: tuple[bool, bool]) -> str:
    return "".join(word for word, is_on in zip((", conjugated", ", negated"), lazy) if is_on)


def _kind(kind: type) -> str:
    """What a value is to be: one of a class, or what is passed by a program that does not look at it."""
    return "an object that is only handed on" if kind is Parcel else f"a {kind.__qualname__}"


def _kind_found(packed: Any) -> str:
    return f"a {type(opened(packed)).__qualname__}"


class _Repr(reprlib.Repr):
    """Calls no ``__repr__`` of a user's: it may do something, and nobody has asked for it. Tensors are brief."""

    def repr1(self, x: Any, level: int) -> str:
        x = opened(x)
        if isinstance(x, torch.Tensor):
            return f"{str(x.dtype).removeprefix('torch.')}{[*x.shape]}"
        return super().repr1(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        method = class_member(type(x), "__repr__")
        if isinstance(method, types.FunctionType) and is_users(method.__code__.co_filename):
            return object.__repr__(x)
        return super().repr_instance(x, level)


_REPR = _Repr()
_REPR.maxstring = _REPR.maxother = 60
_MOST = 64  # characters of a value


def _cut(text: str) -> str:
    """A text in one line, and none that is long."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def _shown(packed: Any, guard: TensorGuard | None = None) -> str:
    """A value in a few words; a tensor by its metadata."""
    value = opened(packed)
    if not isinstance(value, torch.Tensor):
        try:
            return repr(value) if isinstance(value, (type, types.FunctionType)) else _cut(_REPR.repr(value))
        except Exception:  # the user's own `__repr__`
            return f"a {type(value).__qualname__}"
    strides = value.stride() if guard is not None and guard.strides is not None else None
    dims = [str(size) for size in value.shape]
    text = _tensor_text(type(value), value.dtype, dims, value.device, value.requires_grad, strides)
    return text + _lazy_text((value.is_conj(), value.is_neg()))
