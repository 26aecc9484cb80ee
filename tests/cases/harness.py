"""What must hold of a case: its static function against eager PyTorch, its exports against the same.

The checks (`check_static`, `check_pt2`, `check_onnx`, `check_python`) each make a fresh target, call it and eager's
with every input in turn, and raise `AssertionError` at the first difference.
"""
from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import stillgraph as sg
from tests.cases.case import Case
from tests.cases.compare import assert_same, brief, children, sharing, tensors_in, walk

Args = tuple[Any, ...]
Convert = Callable[[Any, "list[sg.InputSpec] | None"], Any]

SEGMENTS = {"A24_print": 2, "M08_shape_change_in_while": 2}
"""Without a full graph, by case, how many segments it has where it is not one."""


@dataclass
class Outcome:
    """All that one call of a target gave and left behind."""

    value: Any
    returned_arguments: dict[str, str]  # place in the value -> the argument that stands there
    shared: list[tuple[str, str]]  # places of the value and the arguments that hold one container
    error: BaseException | None
    stdout: str
    arguments: Any
    attributes: dict[str, Any]
    state: dict[str, Any]
    backward_error: type[Exception] | None  # in-place operations may forbid a backward pass
    gradient: Tensor | None
    parameter_gradients: dict[str, Tensor | None]


# ---- the static function
def to_static(target: Any, input_spec: list[sg.InputSpec] | None) -> Any:
    """The conversion that the project's tests check."""
    return sg.to_static(target, input_spec=input_spec, backend="eager")


def check_static(case: Case, convert: Convert = to_static) -> Any:
    """Every input gives what eager gives, in as few programs as the case asks for; the static function is returned.

    Args:
        case: the case.
        convert: makes the static function from a fresh target and its input specifications.
    """
    eager = case.target()
    static = convert(case.target(), input_specs(case))
    returned = False
    for index, args in enumerate(case.inputs):
        with _where(f"input {index}"):
            if case.capture_refused is not None:
                _assert_refused(case.capture_refused, lambda args=args: static(*copy.deepcopy(args), **case.kwargs))
                continue
            if case.toggle_train:
                eager.train(index == 0)
                static.train(index == 0)
            expected = observe(case, eager, args)
            actual = observe(case, static, args)
            _assert_same_outcome(expected, actual)
            returned |= expected.error is None
    if case.capture_refused is None:
        held, allowed = program_count(static), most_programs(case)
        assert held <= allowed, f"{held} programs are held, {allowed} are enough"
        assert held or not returned or (case.may_give_up and has_given_up(static)), "no program is held"
    return static


def check_partial(case: Case) -> Any:
    """Without a full graph every input gives what eager gives; the plan by which it does is returned."""
    made: list[Any] = []

    def convert(target: Any, input_spec: list[sg.InputSpec] | None) -> Any:
        static = sg.to_static(target, input_spec=input_spec, backend="eager", full_graph=False, strict=True)
        made.append(static)
        return static

    programs = 999 if case.name in SEGMENTS else case.programs
    check_static(replace(case, capture_refused=None, programs=programs), convert)
    static = made[0].forward if isinstance(made[0], torch.nn.Module) else made[0]
    return getattr(static, "__func__", static).plan


def observe(case: Case, target: Any, args: Args) -> Outcome:
    """Call a target once on its own copy of the arguments and record all that can be seen of the call."""
    arguments = copy.deepcopy((args, dict(case.kwargs)))
    given = arguments[0][0] if case.grad else None
    if given is not None:
        given.requires_grad_()
    parameters = dict(target.named_parameters()) if isinstance(target, nn.Module) else {}
    for parameter in parameters.values():
        parameter.grad = None
    value, error, stdout = None, None, io.StringIO()
    torch.manual_seed(1)
    with contextlib.redirect_stdout(stdout):
        try:
            value = target(*arguments[0], **arguments[1])
        except Exception as raised:  # whatever eager raises, the static function must raise
            error = raised
    backward_error = _backward(value) if case.grad or case.pgrad else None
    return Outcome(
        value=value,
        returned_arguments=_returned_arguments(value, arguments),
        shared=sharing((value, arguments)),
        error=error,
        stdout=stdout.getvalue().replace(*_OF_A_ROW),
        arguments=arguments,
        attributes={name: copy.deepcopy(getattr(target, name)) for name in case.attrs},
        state=copy.deepcopy(dict(target.state_dict())) if isinstance(target, nn.Module) else {},
        backward_error=backward_error,
        gradient=given.grad if given is not None else None,
        parameter_gradients={name: p.grad for name, p in parameters.items()} if case.pgrad else {},
    )


def _backward(value: Any) -> type[Exception] | None:
    """Send a gradient that is different in every element: a plain sum would hide errors behind softmax and the like."""
    outputs = [t for t in tensors_in(value) if t.requires_grad]
    if outputs:
        counts = [torch.arange(1, t.numel() + 1, dtype=t.dtype, device=t.device) for t in outputs]
        weights = [count.cos().reshape(t.shape) for count, t in zip(counts, outputs)]
        try:
            torch.autograd.backward(outputs, weights)
        except RuntimeError as error:
            return type(error)
    return None


def _returned_arguments(value: Any, arguments: Any) -> dict[str, str]:
    given = {id(part): path for path, part in walk(arguments) if isinstance(part, Tensor) or children(part) is not None}
    return {path: given[id(part)] for path, part in walk(value) if id(part) in given}


def _assert_same_outcome(expected: Outcome, actual: Outcome) -> None:
    if actual.error is not None and type(actual.error) is not type(expected.error):
        gives = "returns" if expected.error is None else f"raises {expected.error!r}"
        raise AssertionError(f"raises {type(actual.error).__name__}: {actual.error}\n(eager {gives})") from actual.error
    assert actual.error is not None or expected.error is None, f"eager raises {expected.error!r}"
    assert str(actual.error) == str(expected.error), f"the message is {actual.error}, eager's {expected.error}"
    assert_same(expected.value, actual.value)
    assert actual.returned_arguments == expected.returned_arguments, (
        f"arguments returned as they are: {actual.returned_arguments}, eager {expected.returned_arguments}"
    )
    assert actual.shared == expected.shared, f"one container in two places: {actual.shared}, eager {expected.shared}"
    assert actual.stdout == expected.stdout, f"prints {actual.stdout!r}, eager {expected.stdout!r}"
    assert_same(expected.arguments, actual.arguments, "after the call, arguments")
    assert_same(expected.attributes, actual.attributes, "after the call, attributes")
    assert_same(expected.state, actual.state, "after the call, state_dict()")
    assert actual.backward_error == expected.backward_error, (
        f"the backward pass gives {actual.backward_error}, eager's {expected.backward_error}"
    )
    assert_same(expected.gradient, actual.gradient, "the first argument's gradient")
    assert_same(expected.parameter_gradients, actual.parameter_gradients, "gradient of parameters")


# ---- how many programs
def program_count(static: Any) -> int:
    """How many programs a static function, or a module with a static `forward`, holds."""
    held = static.forward if isinstance(static, nn.Module) else static
    return int(held.cache_info().programs)


def has_given_up(static: Any) -> bool:
    """Whether a static function that may leave steps to Python leaves it all: it is another in each call."""
    held = static.forward if isinstance(static, nn.Module) else static
    plan = getattr(getattr(held, "__func__", held), "plan", None)
    return plan is not None and plan.gave_up is not None


def most_programs(case: Case) -> int:
    """One, unless inputs differ in a Python argument, a dtype or, without symbolic dimensions, in shape."""
    if case.programs is not None:
        return case.programs
    return len({signature(case, index) for index in range(len(case.inputs))})


def signature(case: Case, index: int) -> str:
    def of(value: Any) -> str:
        if isinstance(value, Tensor):
            return f"{value.dtype}{tuple(value.shape) if case.input_dims is None else value.dim()}"
        parts = children(value)
        return repr(value) if parts is None else f"{type(value).__name__}{[(key, of(part)) for key, part in parts]}"

    return of(case.inputs[index]) + (f" training={index == 0}" if case.toggle_train else "")


def input_specs(case: Case) -> list[sg.InputSpec] | None:
    """The case's symbolic dimensions as the public API takes them."""
    if case.input_dims is None:
        return None
    return [
        sg.InputSpec(list(dims), str(given.dtype).removeprefix("torch."))
        for dims, given in zip(case.input_dims, case.inputs[0], strict=True)
    ]


# ---- the exports
def check_pt2(case: Case, folder: Path) -> None:
    """Saved as `.pt2` and loaded again, the program gives eager's tensors for every input it was made for."""
    path = folder / f"{case.name}.pt2"
    if _save(case, path):
        loaded = sg.load(path)
        _compare_export(case, lambda args: _leaves(loaded(*args, **case.kwargs)))


def check_onnx(case: Case, folder: Path) -> None:
    """Saved as `.onnx`, onnxruntime gives eager's tensors for every input the program was made for.

    What one call leaves of the state is handed to the next, as anybody has to who runs the file.
    """
    import onnxruntime

    path = folder / f"{case.name}.onnx"
    if not _save(case, path):
        return
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [taken.name for taken in session.get_inputs()]
    given_names = [given.name for given in session.get_outputs()]
    texts = session.get_modelmeta().custom_metadata_map
    carried, written = (json.loads(texts.get(f"stillgraph.{key}", "{}")) for key in ("state", "written"))
    state: dict[str, Any] = {}

    def run(args: Args) -> list[Tensor]:
        given = [t.numpy() for t in tensors_in((args, dict(case.kwargs)))]
        assert len(given) == len(names), f"the ONNX graph takes {names}, the call has {len(given)} tensors"
        made = dict(zip(given_names, session.run(None, {**dict(zip(names, given, strict=True)), **state})))
        state.update({name: made[output] for name, output in carried.items()})
        kept = {*carried.values(), *written.values()}
        outputs = [torch.from_numpy(np.asarray(out)) for name, out in made.items() if name not in kept]
        return [row for out in outputs for row in out] if case.rows else outputs

    _compare_export(case, run)


def check_python(case: Case, folder: Path, **options: Any) -> None:
    """Saved as Python source and imported, the program does what eager does for every input it was made for.

    Args:
        case: the case.
        folder: for the file.
        options: of `sg.save`.
    """
    path = folder / f"{case.name}.py"
    if case.capture_refused is not None:
        _save(replace(case, export_refused=case.capture_refused), path)
        return
    _save(replace(case, export_refused=None), path, **options)
    eager, written = case.target(), python_module(path)
    name = (written.__doc__ or "").partition(":")[0]
    target = written.load() if hasattr(written, "load") else getattr(written, name)
    for index, args in enumerate(case.inputs):
        with _where(f"input {index}"):
            if signature(case, index) != signature(case, 0) or (index > 0 and case.programs is not None):
                continue  # another program's input
            expected, actual = observe(case, eager, args), observe(case, target, args)
            if "torch.cond and while_loop" in (written.__doc__ or ""):  # these give copies
                for outcome in (expected, actual):
                    outcome.returned_arguments.clear()
                    outcome.shared.clear()
            _assert_same_outcome(_named(expected), _named(actual))


def python_module(path: Path) -> ModuleType:
    """A written file, imported."""
    spec = importlib.util.spec_from_file_location(f"written_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _named(outcome: Outcome) -> Outcome:
    """An outcome in which a class of the user's and the written file's stand-in for it are the same."""

    def plain(value: Any) -> Any:
        parts = children(value)
        if parts is not None and type(value).__module__ != "builtins" and not isinstance(value, Mapping):
            return {type(value).__qualname__: {key: plain(part) for key, part in parts}}
        if isinstance(value, (list, tuple)):
            return type(value)(plain(part) for part in value)
        return {key: plain(part) for key, part in value.items()} if type(value) is dict else value

    kind = type(outcome.error)
    known = outcome.error is None or kind.__module__ == "builtins"
    error = outcome.error if known else RuntimeError(f"{kind.__name__}: {outcome.error}")
    return replace(outcome, value=plain(outcome.value), error=error)


def _save(case: Case, path: Path, **options: Any) -> bool:
    """Save a fresh target; False where the case says that it must be refused, and it is."""

    def save() -> None:
        args = copy.deepcopy(case.inputs[0])
        if case.grad and path.suffix == ".py":
            args[0].requires_grad_()
        sg.save(case.target(), path, args=args, kwargs=dict(case.kwargs), input_spec=input_specs(case), **options)

    if case.export_refused is None:
        save()
        return True
    _assert_refused(case.export_refused, save)
    assert not path.exists(), f"the save is refused, but {path.name} is there"
    return False


def _compare_export(case: Case, run: Callable[[Args], list[Tensor]]) -> None:
    eager = case.target()
    for index, args in enumerate(case.inputs):
        with _where(f"input {index}"), contextlib.redirect_stdout(io.StringIO()):
            if signature(case, index) != signature(case, 0) or (index > 0 and case.programs is not None):
                continue  # another program's input
            expected = observe(case, eager, args)
            if expected.error is not None:
                # an artefact outside Python cannot raise Python's own type
                assert _raised(lambda args=args: run(copy.deepcopy(args))), f"eager raises {expected.error!r}"
                continue
            torch.manual_seed(1)
            actual = run(copy.deepcopy(args))
            wanted = _leaves(expected.value)
            assert len(actual) == len(wanted), f"{len(actual)} outputs, eager gives {brief(expected.value)}"
            for place, (want, got) in enumerate(zip(wanted, actual, strict=True)):
                assert_same(want, got, f"output {place}")


def _leaves(value: Any) -> list[Tensor]:
    """The leaves as an export has them: numbers are 0-d tensors, nothing requires a gradient."""
    leaves = [part for _, part in walk(value) if children(part) is None and part is not None]
    return [leaf.detach() if isinstance(leaf, Tensor) else _number(leaf) for leaf in leaves]


def _number(value: bool | int | float) -> Tensor:
    return torch.tensor(value, dtype={bool: torch.bool, int: torch.int64, float: torch.float64}[type(value)])


_OF_A_ROW = "grad_fn=<UnbindBackward0>", "grad_fn=<SelectBackward0>"  # eager's and ours, of a row: see semantics.md


# ---- errors that must come
def _assert_refused(phrase: str, call: Callable[[], Any]) -> None:
    error = _raised(call)
    if not isinstance(error, sg.CaptureError):
        raise AssertionError(f"must be refused with {phrase!r}, but gives {error!r}") from error
    if phrase not in str(error):
        raise AssertionError(f"the refusal does not say {phrase!r}: {error}") from error


def _raised(call: Callable[[], Any]) -> Exception | None:
    try:
        call()
    except Exception as error:  # which one it is, is the caller's question
        return error
    return None


@contextlib.contextmanager
def _where(text: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{text}: {error}") from error.__cause__
