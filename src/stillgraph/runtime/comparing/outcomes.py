"""All that can be seen of one call, and in what two calls differ."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from stillgraph.core.faults import unwinds
from stillgraph.core.lookup import class_member, own_attributes
from stillgraph.core.shown import brief_error
from stillgraph.program.context import current_context, restore
from stillgraph.program.outputs import BOUND
from stillgraph.runtime.comparing.hearing import heard
from stillgraph.runtime.comparing.worlds import Copied
from stillgraph.runtime.native.layouts import sharing_difference, stride_difference

try:
    import numpy as np
except ImportError:  # torch works without it
    np = None  # type: ignore[assignment]  # of a module


@dataclass(frozen=True)
class Outcome:
    """What one call gave and left behind.

    Attributes:
        places: what can be looked at afterwards, by name: ``"the result"``, the arguments, globals and the like.
        error: what it raised.
        texts: what it printed, and what it warned and logged of.
        random: the states of the random generators.
        gradients: the derivatives of all that it gave by the leaves it was given; an exception where there are none.
        endless: of a program that was stopped, where it does not end.
    """

    places: dict[str, Any]
    error: BaseException | None
    texts: dict[str, str]
    random: dict[str, Any]
    gradients: dict[str, Any] | Exception = field(default_factory=dict)
    endless: str = ""


def observe(copied: Copied, call: Callable[[], Any]) -> Outcome:
    """Make a call on copies; torch's modes, random generators and Python's streams are put back.

    Args:
        copied: what the call works on.
        call: makes it.
    """
    given = {f"args[{i}]": each for i, each in enumerate(copied.args)}
    given |= copied.kwargs
    leaves = _leaves({**given, **copied.found()}, copied.traced)
    result, error = None, None
    with _put_back(), heard() as texts:
        try:
            result = call()
        except BaseException as raised:  # whatever it raises, the other must raise, too
            if unwinds(raised):
                raise
            error = raised
        drawn = _random_states()
        places = {"the result": result, **given, **copied.found()}
        gradients = _gradients(places, leaves) if error is None and torch.is_grad_enabled() else {}
    return Outcome(places, error, texts, drawn, gradients)


# ---- what surrounds a call
@contextlib.contextmanager
def _put_back() -> Iterator[None]:
    modes, states = current_context(), _random_states()
    try:
        yield
    finally:
        restore(modes)
        torch.set_rng_state(states["torch's random generator"])
        random.setstate(states["Python's random generator"])
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.set_rng_state_all(states["CUDA's random generators"])
        if np is not None:
            np.random.set_state(states["numpy's random generator"])


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {
        "torch's random generator": torch.get_rng_state(),
        "Python's random generator": random.getstate(),
    }
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states["CUDA's random generators"] = torch.cuda.get_rng_state_all()
    if np is not None:
        states["numpy's random generator"] = np.random.get_state()
    return states


# ---- gradients
def _leaves(places: dict[str, Any], traced: Mapping[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    leaves = {}
    for name, part in parts(places):
        if isinstance(part, torch.Tensor) and part.requires_grad:
            leaves[name] = traced.get(id(part), part)
    return leaves


def _gradients(places: dict[str, Any], leaves: dict[str, torch.Tensor]) -> dict[str, Any] | Exception:
    outputs = [part for _, part in parts(places) if isinstance(part, torch.Tensor) and part.grad_fn is not None]
    outputs = [each for each in outputs if each.requires_grad and not each.is_sparse]
    if not outputs or not leaves:
        return {}
    # Different in each element: a plain sum would hide errors behind a softmax and the like.
    weights = [torch.arange(1, t.numel() + 1, device=t.device).cos().reshape(t.shape).to(t.dtype) for t in outputs]
    try:
        found = torch.autograd.grad(outputs, list(leaves.values()), weights, allow_unused=True)
    except RuntimeError as error:  # the function has freed the graph, or written to what a gradient needs
        return error
    return dict(zip(leaves, found))


# ---- looking through values
def children(value: Any) -> list[tuple[str, Any]] | None:
    """The parts of a container or object with the text that selects each; None for what has none."""
    if isinstance(value, (torch.Tensor, type, types.ModuleType, types.FunctionType)):
        return None
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return [(f".{name}", getattr(value, name)) for name in value._fields]
    if isinstance(value, (list, tuple, deque)):
        return [(f"[{i}]", each) for i, each in enumerate(value)]
    if isinstance(value, torch.jit.ScriptModule):  # whose parts are made anew whenever somebody asks for them
        state = value.state_dict(keep_vars=True).items()
        return [(".training", getattr(value, "training", None)), *((f".{name}", each) for name, each in state)]
    if isinstance(value, torch.nn.Module):
        tables = ("_parameters", "_buffers", "_modules")
        own = {name: each for name, each in vars(value).items() if name not in tables}
        named = {name: each for table in tables for name, each in vars(value).get(table, {}).items()}
        return [(f".{name}", each) for name, each in (named | own).items()]
    if isinstance(value, dict):
        return [(f"[{key!r}]", each) for key, each in value.items()]
    if isinstance(value, BOUND) or type(value).__name__ == "BoundStaticFunction":
        return [(".__self__", value.__self__)]
    inside = own_attributes(value)
    return None if inside is None else [(f".{name}", each) for name, each in inside.items()]


def parts(places: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every object that is found in some places, once, with the text that leads there."""
    waiting = list(reversed(places.items()))
    seen: dict[int, Any] = {}
    while waiting:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        seen[id(value)] = value
        yield name, value
        waiting += [(name + text, each) for text, each in reversed(children(value) or [])]


def _named(places: dict[str, Any]) -> list[tuple[str, Any]]:
    """Every tensor by every name that leads to it; of containers, the first time."""
    found, seen = list[tuple[str, Any]](), dict[int, Any]()
    waiting = list(reversed(places.items()))
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, torch.Tensor):
            found.append((name, value))
        elif id(value) not in seen:
            seen[id(value)] = value
            waiting += [(name + text, each) for text, each in reversed(children(value) or [])]
    return found


def _is_gradient(name: str) -> bool:
    """Whether autograd has made it, which may lay it out as it likes."""
    return name.endswith(".grad") or name.startswith("the gradient of ")


# ---- comparing
def differences(program: Outcome, eager: Outcome) -> list[str]:
    """In what the outcome of a program differs from eager's, in sentences; empty where they are the same."""
    if program.endless or eager.endless:
        return [] if eager.endless else [f"the program does not end: {program.endless}"]
    if program.error is not None or eager.error is not None:
        told = _of_errors(program.error, eager.error)
        if told:
            return told
    comparison = _Comparison()
    for name in dict.fromkeys((*program.places, *eager.places)):
        comparison.compare(name, program.places.get(name), eager.places.get(name))
    shared = None if comparison.found else sharing_difference(_named(program.places), _named(eager.places))
    if shared is not None:
        comparison.found.append(shared)
    for name, text in program.texts.items():
        if text != eager.texts[name]:
            comparison.found.append(f"{name} is {text!r}, eager's {eager.texts[name]!r}")
    for name in program.random:
        if not comparison.found and not _same_state(program.random[name], eager.random[name]):
            comparison.found.append(f"{name} is left in another state")
    if not comparison.found:
        _compare_gradients(comparison, program.gradients, eager.gradients)
    return comparison.found


def _of_errors(program: BaseException | None, eager: BaseException | None) -> list[str]:
    if type(program) is type(eager) and str(program) == str(eager):
        return []
    raised, others = ("returns" if each is None else f"raises {brief_error(each)}" for each in (program, eager))
    return [f"the program {raised}, eager {others}"]


def _same_state(one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same_state, one, other))
    return bool((one == other).all()) if hasattr(one, "all") else bool(one == other)


def _compare_gradients(comparison: _Comparison, program: Any, eager: Any) -> None:
    if isinstance(program, Exception) or isinstance(eager, Exception):
        if type(program) is not type(eager):
            first = f"raises {program}" if isinstance(program, Exception) else "has gradients"
            other = f"raises {eager}" if isinstance(eager, Exception) else "has them"
            comparison.found.append(f"the backward pass of the program {first}, eager's {other}")
        return
    for name in dict.fromkeys((*program, *eager)):
        comparison.compare(f"the gradient of {name}", program.get(name), eager.get(name))


class _Comparison:
    """Goes through two values side by side."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._pairs: dict[int, int] = {}
        self._back: dict[int, int] = {}
        self._kept: list[Any] = []

    def compare(self, name: str, program: Any, eager: Any) -> None:
        """Write down in what a value of the program's differs from eager's."""
        waiting = [(name, program, eager)]
        while waiting:
            where, one, other = waiting.pop()
            inside = self._compared(where, one, other)
            waiting += reversed(inside)

    def _compared(self, where: str, one: Any, other: Any) -> list[tuple[str, Any, Any]]:
        if type(one) is not type(other):
            self.found.append(f"{where} is {brief(one)}, in eager {brief(other)}")
            return []
        listed, others = children(one), children(other)
        if listed is None or others is None:
            problem = leaf_difference(one, other)
            if not problem and isinstance(one, torch.Tensor) and not _is_gradient(where):
                problem = stride_difference(one, other)
            if problem:
                self.found.append(f"{where} {problem}")
            grads = getattr(one, "is_leaf", False) and isinstance(one, torch.Tensor)
            return [(f"{where}.grad", one.grad, other.grad)] if grads and _is_new(self._pairs, one, other) else []
        if not isinstance(one, tuple) and self._are_known(where, one, other):
            return []
        if [text for text, _ in listed] != [text for text, _ in others]:
            self.found.append(f"{where} is {brief(one)}, in eager {brief(other)}")
            return []
        return [(where + text, a, b) for (text, a), (_, b) in zip(listed, others)]

    def _are_known(self, where: str, one: Any, other: Any) -> bool:
        """Whether two objects were met before; both must have been, and in the same places."""
        self._kept += [one, other]
        if self._pairs.get(id(one), id(other)) != id(other) or self._back.get(id(other), id(one)) != id(one):
            self.found.append(f"{where} is another object than in eager: it is in two places in one of them")
            return True
        known = id(one) in self._pairs
        self._pairs[id(one)], self._back[id(other)] = id(other), id(one)
        return known


def _is_new(pairs: dict[int, int], one: Any, other: Any) -> bool:
    if id(one) in pairs:
        return False
    pairs[id(one)] = id(other)
    return True


def leaf_difference(one: Any, other: Any) -> str | None:
    """In what two values of one type differ that have no parts; None where they do not."""
    if isinstance(one, torch.Tensor):
        return tensor_difference(one, other)
    if isinstance(one, torch.Generator):
        return None if torch.equal(one.get_state(), other.get_state()) else "is in another state than eager's"
    if isinstance(one, (float, complex)):
        same = one == other or (one != one and other != other)
        close = same or (isinstance(one, float) and math.isclose(one, other, rel_tol=1e-7, abs_tol=1e-7))
        return None if close else f"is {one!r}, in eager {other!r}"
    if np is not None and isinstance(one, np.ndarray):
        if one.dtype.kind in "OSU" or one.shape != other.shape or one.dtype != other.dtype:
            return None if np.array_equal(one, other) else f"is {brief(one)}, in eager {brief(other)}"
        return tensor_difference(torch.from_numpy(one.copy()), torch.from_numpy(other.copy()))
    if isinstance(one, types.FunctionType):
        return None if one.__code__ is other.__code__ else f"is {one.__qualname__}, in eager {other.__qualname__}"
    by_identity = class_member(type(one), "__eq__") is object.__eq__
    if one is other or by_identity or isinstance(one, weakref.ref) or one == other:
        return None
    return f"is {brief(one)}, in eager {brief(other)}"


_EAGERS = "eager's"


def tensor_difference(one: torch.Tensor, other: torch.Tensor, than: str = _EAGERS) -> str | None:
    """In what a tensor differs from eager's: dtype, shape, device, gradient or, beyond the tolerances, its values.

    ``than`` is how the text names the other.
    """
    if brief(one) != brief(other):
        return f"is {brief(one)}, {'in eager' if than == _EAGERS else than + ':'} {brief(other)}"
    if one.requires_grad != other.requires_grad:
        return f"{'requires' if one.requires_grad else 'does not require'} a gradient, unlike eager's"
    try:
        torch.testing.assert_close(one.detach(), other.detach(), equal_nan=True)
    except AssertionError:
        return f"differs from {than} {_by_how_much(one.detach(), other.detach())}"
    return None


def _by_how_much(one: torch.Tensor, other: torch.Tensor) -> str:
    if one.is_sparse or one.layout is not torch.strided or one.is_quantized:
        return "in its values"
    wider = torch.complex128 if one.is_complex() else torch.float64
    a, b = one.to(wider), other.to(wider)
    unequal = ~((a == b) | ((a != a) & (b != b)))
    apart = torch.where(unequal, (a - b).abs(), 0.0)
    index = int(apart.nan_to_num(float("inf")).argmax())
    relative = float((apart / b.abs()).nan_to_num(0.0).max())
    where = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), one.shape)) if one.dim() else ()
    place = f" at {list(where)}" if where else ""
    values = f"{_short(one.reshape(-1)[index])} instead of {_short(other.reshape(-1)[index])}"
    share = f" in {int(unequal.sum())} of {one.numel()} elements" if one.numel() > 1 else ""
    return f"{share} by up to {float(apart.max()):.3g} (relative {relative:.3g}): {values}{place}".strip()


def _short(element: torch.Tensor) -> str:
    value = element.item()
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def brief(value: Any) -> str:
    """A value in a few words."""
    if isinstance(value, torch.Tensor):
        kind = "" if type(value) is torch.Tensor else f"{type(value).__name__} "
        device = "" if value.device.type == "cpu" else f" on {value.device}"
        return f"a {kind}{str(value.dtype).removeprefix('torch.')}{list(value.shape)} tensor{device}"
    if dataclasses.is_dataclass(value) or not isinstance(value, (bool, int, float, str, bytes, tuple, list, dict, set)):
        return repr(value) if value is None or repr(value) == "nothing" else f"a {type(value).__qualname__}"
    text = repr(value).replace("\n", " ")
    return f"the {type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
