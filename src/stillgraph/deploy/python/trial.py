"""A written file is tried out: it must do what the program does, on the example call and on others like it."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import nn

from stillgraph.core.diagnostics import ExportError
from stillgraph.core.faults import unwinds
from stillgraph.core.quiet import quiet
from stillgraph.deploy.description.other_sizes import Served
from stillgraph.deploy.description.signature import place_key, written_place
from stillgraph.deploy.pt2.patient import patient
from stillgraph.deploy.python.calls import is_given
from stillgraph.deploy.python.comparison import difference
from stillgraph.deploy.python.file import File
from stillgraph.deploy.python.places import Places, is_own, key_of
from stillgraph.deploy.python.spelling import is_at_hand
from stillgraph.deploy.python.variants import Change, changes_for, is_within
from stillgraph.program.effects import DeleteAttribute, Effect, SetAttribute
from stillgraph.program.guards import ModeGuard
from stillgraph.program.program import Program
from stillgraph.program.sources import Held
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.modes import entered
from stillgraph.runtime.native.native import lower
from stillgraph.runtime.native.results import compile_result

_SEED = 20240229


@dataclass(frozen=True)
class Wrong:
    """What is wrong with a file; ``raised``: it cannot be run; ``sizes``: with which, if not with the example's."""

    text: str
    raised: bool
    sizes: str = ""


def try_out(
    program: Program,
    file: File,
    path: Path,
    weights: Path,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    served: Sequence[Served] = (),
) -> Wrong | None:
    """Write a file and compare what it does with what the program does.

    Beside the example call, calls are made whose tensors have other values, so that other paths are taken; where the
    file keeps something from call to call, the example call is made twice.

    Args:
        path, weights: where the file and its weights are written.
        args, kwargs: the example call, a receiver first.
        served: sizes that the program serves besides the example's.
    """
    path.write_text(file.text, encoding="utf-8")
    if file.weights:
        with weights.open("wb") as plain, patient(plain) as writing:
            torch.save(file.weights, writing)
    call = _Call(program, file, args, kwargs)
    with imported(path) as module:
        expected, actual = _outcome(call.expected), _outcome(lambda: call.actual(module))
        wrong = difference(expected, actual)
        if wrong is not None:
            return Wrong(wrong, isinstance(actual, BaseException))
        return _on_other_values(call, module) or _on_other_sizes(call, module, served)


def _on_other_sizes(call: _Call, module: ModuleType, served: Sequence[Served]) -> Wrong | None:
    for each in served:
        args, kwargs = each.call(call.args, call.kwargs)
        other = replace(call, args=args, kwargs=kwargs)
        expected = _outcome(other.expected)
        if isinstance(expected, BaseException):
            continue  # as the function raises it
        actual = _outcome(functools.partial(other.actual, module))
        wrong = difference(expected, actual)
        if wrong is not None:
            return Wrong(wrong, isinstance(actual, BaseException), each.text)
    return None


def _on_other_values(call: _Call, module: ModuleType) -> Wrong | None:
    changes = changes_for(call.program, lambda: _outcome(call.expected))
    return next((wrong for change in changes if (wrong := _on_change(call, module, change)) is not None), None)


def _on_change(call: _Call, module: ModuleType, change: Change) -> Wrong | None:
    other = replace(call, change=change)
    if not is_within(change, lambda: _outcome(other.expected)):
        return None
    expected, actual = _outcome(other.expected), _outcome(lambda: other.actual(module))
    if isinstance(actual, BaseException) and (isinstance(expected, BaseException) or _is_refusal(actual)):
        return None
    wrong = difference(expected, actual)
    said = f"{wrong}, where floating-point arguments are {change.name}"
    return None if wrong is None else Wrong(said, isinstance(actual, BaseException))


def _is_refusal(error: BaseException) -> bool:
    return isinstance(error, ValueError) and "the program was made for" in str(error)


def _outcome(run: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        try:
            return run()
        except ExportError:
            raise
        except BaseException as error:  # of any kind: raising is an outcome, which the other side must have, too
            if unwinds(error):
                raise
            return error


@contextlib.contextmanager
def imported(path: Path) -> Iterator[ModuleType]:
    """Import a written file for a while, seeing to it that it asks for torch and the standard library alone.

    Raises:
        ImportError: it imports something else.
    """
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if not all(map(is_at_hand, names)):
            raise ImportError(f"{path.name} imports {', '.join(names)}")
    module = ModuleType(f"stillgraph_trial_of_{path.stem}")
    module.__file__ = str(path)
    vars(module)["__builtins__"] = vars(builtins).copy()
    sys.modules[module.__name__] = module  # torch.cond looks for it there, and so do dataclasses
    try:
        exec(compile(text, str(path), "exec"), vars(module))
        yield module
    finally:
        del sys.modules[module.__name__]


def _called(module: ModuleType, file: File) -> Any:
    return module.load() if file.is_class else getattr(module, file.name)


@dataclass(frozen=True)
class _Call:
    """The example call, its tensors changed."""

    program: Program
    file: File
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    change: Change | None = None

    def copies(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The call, without its receiver, for the file to use up."""
        memo: dict[int, Any] = {}
        copied = tuple(self._copy(arg, memo) for arg in self.args[self.file.places.call.receiver :])
        return copied, {name: self._copy(value, memo) for name, value in self.kwargs.items()}

    def _copy(self, value: Any, memo: dict[int, Any]) -> Any:
        def leaves(each: Any) -> None:
            if not isinstance(each, torch.Tensor) or id(each) in memo:
                return
            if self.change is not None and type(each) is torch.Tensor and each.is_floating_point():
                memo[id(each)] = self.change.apply(each.detach()).requires_grad_(each.requires_grad)
            elif not each.is_leaf:
                memo[id(each)] = each.detach().clone().requires_grad_(each.requires_grad)

        torch.utils._pytree.tree_map(leaves, value)
        return copy.deepcopy(value, memo)

    def actual(self, module: ModuleType) -> Sequence[Any]:
        """What the file gives and leaves behind."""
        places = self.file.places
        given, named = self.copies()
        with _modes(self.program), quiet():
            function = _called(module, self.file)
            result = function(*given, **named)
        everything = (function, *given) if places.call.receiver else given
        return [result, *_written(self.program, places, function, everything, named), *_tensors(given, named)]

    def expected(self) -> Sequence[Any]:
        """What the program gives and leaves behind, on copies: nothing of the user's is written to."""
        program, places = self.program, self.file.places
        given, named = self.copies()
        whole = (*self.args[: places.call.receiver], *given)
        copies: dict[int, Any] = {}
        inputs = []
        for item in program.inputs:
            value = read_source(item.source, whole, named)
            if isinstance(value, torch.Tensor) and not is_given(item.source, places.call.receiver):
                fresh = value.detach().clone().requires_grad_(value.requires_grad)
                value = copies.setdefault(id(value), fresh)
            inputs.append(value)
        with _modes(program), quiet():
            outputs = lower(program, None).run(*inputs)
        kept: dict[Any, SimpleNamespace] = {}
        effects = [each for effect in program.effects if (each := _on_copies(effect, places, kept)) is not None]
        result = compile_result(program.result, effects)(outputs, whole, named)
        state = {}
        for item, value in zip(program.inputs, inputs):
            text = places.text(item.source)
            if isinstance(value, torch.Tensor) and places.is_class and is_own(text):
                state[text] = value
        values = []
        for place in _written_places(program):
            key = place_key(place)
            values.append(kept[key].value if key in kept else read_source(place, whole, named))
            state[places.text(place)] = values[-1]
        return [result, *values, _weights_after(places, state), *_tensors(given, named)]


def _on_copies(effect: Effect, places: Places, kept: dict[Any, SimpleNamespace]) -> Effect | None:
    """An effect that writes to copies of arguments; what it would write elsewhere is kept under the place's key."""
    place = written_place(effect)
    target = place if place is not None else effect.target  # type: ignore[union-attr]  # others have a place
    if is_given(target, places.call.receiver):
        return effect
    if isinstance(effect, DeleteAttribute):
        return None
    holder = kept.setdefault(place_key(target) if place is not None else object(), SimpleNamespace())
    return SetAttribute(Held("kept", holder), "value", effect.value)


def _written(
    program: Program, places: Places, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Sequence[Any]:
    """What the effects left in the places that they write."""
    found = []
    for place in _written_places(program):
        text = places.text(place)
        if places.is_class and is_own(text):
            found.append(eval(text, {"self": module, "getattr": getattr}))
        else:
            found.append(read_source(place, args, kwargs))
    tensors: dict[str, Any] = {}
    if isinstance(module, nn.Module):
        tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return [*found, {name: value for name, value in sorted(tensors.items()) if name in places.weights}]


def _written_places(program: Program) -> list[Any]:
    places = {place_key(place): place for effect in program.effects if (place := written_place(effect)) is not None}
    return list(places.values())


def _tensors(args: Any, kwargs: Any) -> list[Any]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


def _weights_after(places: Places, state: dict[str, Any]) -> dict[str, Any]:
    """The tensors of the weights file as they are after the call, by the expressions that read them."""
    after = dict(places.weights)
    after.update({key_of(text): value for text, value in state.items() if key_of(text) in after})
    return dict(sorted(after.items()))


@contextlib.contextmanager
def _modes(program: Program) -> Any:
    with contextlib.ExitStack() as stack:
        for guard in program.guards:
            if isinstance(guard, ModeGuard):
                stack.enter_context(entered(guard.context))
        yield
