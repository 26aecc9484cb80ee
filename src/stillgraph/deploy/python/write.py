"""Python source on disk: written beside its place, run there, compared with the program, and only then moved."""

from __future__ import annotations

import ast
import builtins
import contextlib
import copy
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from stillgraph.core.diagnostics import ExportError, refuse
from stillgraph.deploy.python.comparison import difference
from stillgraph.deploy.python.file import File, file_of
from stillgraph.deploy.python.places import Places, key_of
from stillgraph.deploy.python.spelling import is_at_hand
from stillgraph.deploy.python.style import Style, style_of
from stillgraph.deploy.signature import place_key, written_place
from stillgraph.program.guards import ModeGuard
from stillgraph.program.program import Program
from stillgraph.runtime.function_writer import read_source
from stillgraph.runtime.native import entered, lower
from stillgraph.runtime.results import compile_template

_SEED = 20240229


def write_python(
    program: Program,
    target: Path,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    function: Any,
    receiver: int,
    control_flow: str | None,
) -> None:
    """Save a program as Python source, and its weights beside it.

    Args:
        program: what to write.
        target: of the file; the weights go to ``<stem>_weights.pt`` in the same folder.
        args, kwargs: the example call, a receiver first.
        function: what was called, without its receiver; None where it is not known.
        receiver: 1 if ``args[0]`` is the receiver.
        control_flow: ``"torch"``, ``"python"``, or None for torch's operators wherever they say the same.

    Raises:
        ExportError: Python with torch alone cannot say what the program does, or the file differs from it.
        ValueError: the file is one that the program was made from.
    """
    _check_not_the_source(program, target)
    if function is None and args and isinstance(args[0], nn.Module):
        function, receiver = args[0].forward, 1
    weights_name = f"{target.stem}_weights.pt"
    style = style_of(program, control_flow)
    folder = Path(tempfile.mkdtemp(prefix=f".{target.stem}-", dir=target.parent))
    try:
        file = file_of(program, style, args, kwargs, function, receiver, weights_name)
        wrong = _try_out(program, file, folder / target.name, folder / weights_name, args, kwargs)
        if wrong is not None and wrong.raised and style.torch and control_flow is None:
            style = Style(False, program, f"torch's operators do not take it ({wrong.text})")
            file = file_of(program, style, args, kwargs, function, receiver, weights_name)
            wrong = _try_out(program, file, folder / target.name, folder / weights_name, args, kwargs)
        if wrong is not None:
            message = f"the written file differs from the program: {wrong.text}"
            raise refuse("SG403", message, location=program.location)
        if file.weights:
            os.replace(folder / weights_name, target.with_name(weights_name))
        os.replace(folder / target.name, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_not_the_source(program: Program, target: Path) -> None:
    places = [program.location, *program.source_map.values()]
    files = {Path(place.file) for place in places if place is not None}
    if any(file.exists() and target.exists() and file.samefile(target) for file in files):
        raise ValueError(f"{target.name!r} is a file that the program was made from: save it under another name")


# ---- trying it out
@dataclass(frozen=True)
class _Wrong:
    """What is wrong with a file; ``raised``: it cannot be run on the example call."""

    text: str
    raised: bool


def _try_out(
    program: Program, file: File, path: Path, weights: Path, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> _Wrong | None:
    """Write a file and compare what it does with what the program does."""
    path.write_text(file.text, encoding="utf-8")
    if file.weights:
        torch.save(file.weights, weights)
    expected = _outcome(lambda: _expected(program, file.places, args, kwargs))
    actual = _outcome(lambda: _actual(program, file, path, args, kwargs))
    wrong = difference(expected, actual)
    return None if wrong is None else _Wrong(wrong, isinstance(actual, Exception))


def _outcome(run: Any) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        try:
            return run()
        except ExportError:
            raise
        except Exception as error:
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


def _copies(args: tuple[Any, ...], kwargs: dict[str, Any], receiver: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The example call, without its receiver, for the file to use up."""
    memo: dict[int, Any] = {}
    copied = tuple(_detached_copy(arg, memo) for arg in args[receiver:])
    return copied, {name: _detached_copy(value, memo) for name, value in kwargs.items()}


def _detached_copy(value: Any, memo: dict[int, Any]) -> Any:
    def leaves(each: Any) -> None:
        if isinstance(each, torch.Tensor) and not each.is_leaf and id(each) not in memo:
            memo[id(each)] = each.detach().clone().requires_grad_(each.requires_grad)

    torch.utils._pytree.tree_map(leaves, value)
    return copy.deepcopy(value, memo)


def _actual(program: Program, file: File, path: Path, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    receiver = file.places.call.receiver
    given, named = _copies(args, kwargs, receiver)
    with imported(path) as module, _modes(program), _quiet():
        function = _called(module, file)
        result = function(*given, **named)
    everything = (function, *given) if receiver else given
    return [result, *_written(program, file.places, function, everything, named), *_tensors(given, named)]


def _written(
    program: Program, places: Places, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Sequence[Any]:
    """What the effects left in the places that they write."""
    found = []
    for place in _written_places(program):
        text = places.text(place)
        if text.startswith(("self.", "self[")):
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


def _expected(program: Program, places: Places, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Sequence[Any]:
    """What the program does, on copies: nothing of the user's is written to."""
    receiver = places.call.receiver
    given, named = _copies(args, kwargs, receiver)
    whole = (*args[:receiver], *given)
    copies: dict[int, Any] = {}
    inputs = []
    for item in program.inputs:
        value = read_source(item.source, whole, named)
        if isinstance(value, torch.Tensor) and not any(value is each for each in _tensors(given, named)):
            fresh = value.detach().clone().requires_grad_(value.requires_grad)
            value = copies.setdefault(id(value), fresh)
        inputs.append(value)
    with _modes(program), _quiet():
        outputs = lower(program, None).run(*inputs)
    result = compile_template(program.result)(outputs, whole, named)
    values: dict[Any, Any] = {}
    for effect in program.effects:
        place = written_place(effect)
        if place is not None:
            values[place_key(place)] = compile_template(effect.value)(outputs, whole, named)  # type: ignore[union-attr]
    state = {}
    for item, value in zip(program.inputs, inputs):
        text = places.text(item.source)
        if isinstance(value, torch.Tensor) and text.startswith(("self.", "self[")):
            state[text] = value
    for place in _written_places(program):
        state[places.text(place)] = values[place_key(place)]
    return [result, *values.values(), _weights_after(places, state), *_tensors(given, named)]


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


@contextlib.contextmanager
def _quiet() -> Any:
    with open(os.devnull, "w", encoding="utf-8") as nothing, contextlib.redirect_stdout(nothing):
        yield
