"""How a call is captured: the front end, the operators and the trace that it goes through."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from types import FunctionType, MappingProxyType, MethodType
from typing import Any

import torch

from stillgraph.api.front_ends import SOURCE
from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import is_own
from stillgraph.core.lookup import stated, stated_signature
from stillgraph.core.progress import doing
from stillgraph.operators.calls.calls import call
from stillgraph.program.input_spec import Dim, DynamicShapes, InputSpec, Marks, Specs
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Source
from stillgraph.report.progress import showing
from stillgraph.runtime.calls.bound_function import BoundStaticFunction
from stillgraph.runtime.calls.static_function import StaticFunction
from stillgraph.settings import SETTINGS
from stillgraph.trace.capture.capture import capture
from stillgraph.trace.code.compiled import original_of
from stillgraph.trace.code.frames import show_as_written
from stillgraph.trace.code.front_end import FrontEnd
from stillgraph.trace.code.options import Options
from stillgraph.trace.code.watch import Watch
from stillgraph.trace.guards.inputs import Dims

Declared = Callable[[Source, torch.Tensor], InputSpec | None]


# ---- a call
def capture_call(
    target: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    spec: Specs | None,
    options: Options,
    name: str | None = None,
    changing: AbstractSet[Source] = frozenset(),
    watch: Watch | None = None,
    is_kept: bool = False,
    front_end: FrontEnd = SOURCE,
    open_sizes: Mapping[Source, AbstractSet[int]] = MappingProxyType({}),
    lessons: dict[str, Any] | None = None,
) -> Program:
    """Capture a call of any callable.

    ``is_kept``: the program is for other calls than this one, so what ``spec`` leaves open has to be open in it.
    ``open_sizes``: dimensions of tensors that are open as well.
    ``lessons``: what earlier captures of the function have found out, to which this one adds.
    """
    function, args = function_of(target, args)
    _check_arguments(spec, function, args, kwargs, is_kept)
    try:
        with (
            showing(SETTINGS.progress),
            doing(f"capturing {stated(function, '__qualname__') or type(function).__name__}"),
            StaticFunction.captures.capture(),
            SETTINGS.logbook.capturing(function) as captured,
        ):
            dims: dict[Source, tuple[Dim | None, ...]] = {}
            check = _Check(_option(spec), parameter_names(original_of(function) or function), is_kept)
            symbolic = _symbolic_dims(_declared(spec, function, args), check, dims)
            program = capture(
                function, args, kwargs, front_end, symbolic, options, name, call, changing, watch, open_sizes, lessons
            )
            if dims:
                program = replace(program, dims=dims)
            captured.append(program)
    except BaseException as error:  # of any kind: the function's own are shown as they were written
        if is_own(error):
            show_as_written(error)
        raise
    return program


def function_of(target: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The plain function behind a callable, and its arguments with the receiver first."""
    while isinstance(target, (StaticFunction, BoundStaticFunction)):
        if isinstance(target, BoundStaticFunction):
            target, args = target.__func__, (target.__self__, *args)
        else:
            target = target.original
    if isinstance(target, MethodType) and isinstance(target.__func__, FunctionType):
        return target.__func__, (target.__self__, *args)
    if isinstance(target, torch.nn.Module):
        return type(target).__call__, (target, *args)  # which a class may have of its own
    return target, args


def _declared(spec: Specs | None, function: Any, args: tuple[Any, ...]) -> Declared:
    """The `InputSpec` of a tensor among the arguments. The specs count from the first argument after self."""
    function = original_of(function) or function
    shift = 1 if args and has_receiver(function) else 0
    names = parameter_names(function)

    if isinstance(spec, DynamicShapes):
        return functools.partial(spec.of, names=_named_parameters(function, args) or names, receivers=shift)

    def declared(source: Source, tensor: torch.Tensor) -> InputSpec | None:
        index = source.key if isinstance(source, Argument) else None
        if isinstance(index, str):
            index = names.index(index) if index in names else None
        given = spec is not None and index is not None and 0 <= index - shift < len(spec)
        return spec[index - shift] if given else None  # type: ignore[index,operator]  # `given` says so

    return declared


def _named_parameters(function: Any, args: tuple[Any, ...]) -> list[str]:
    """What a module calls its arguments, where it is called with hooks; nothing for any other function."""
    if not (args and isinstance(args[0], torch.nn.Module) and function is type(args[0]).__call__):
        return []
    return ["self", *parameter_names(args[0].forward)]


def _symbolic_dims(
    declared: Declared, check: _Check, dims: dict[Source, tuple[Dim | None, ...]]
) -> Dims:
    """Which dimensions of an argument are declared open; those with a range or name are noted in ``dims``."""

    def symbolic(source: Source, tensor: torch.Tensor) -> tuple[bool | Dim, ...]:
        marked = Marks.of(tensor).open
        spec = declared(source, tensor)
        if spec is None:
            return tuple(dim in marked for dim in range(tensor.dim()))
        check.fits(spec, source, tensor)
        if any(spec.dims):
            dims[source] = spec.dims
        declared_as = enumerate(zip(spec.dims, spec.shape, strict=True))
        return tuple(named or size is None or dim in marked for dim, (named, size) in declared_as)

    return symbolic


def check_open(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], spec: Specs | None) -> None:
    """Refuse a call whose program would not leave open what its `InputSpec`s do.

    Raises:
        CaptureError: a size is 0 or 1 there, or an argument is not what its `InputSpec` says.
    """
    function, args = function_of(target, args)
    check = _Check(_option(spec), parameter_names(original_of(function) or function), is_kept=True)
    symbolic = _symbolic_dims(_declared(spec, function, args), check, {})
    given: list[tuple[int | str, Any]] = [*enumerate(args), *kwargs.items()]
    for key, value in given:
        if isinstance(value, torch.Tensor):
            symbolic(Argument(key), value)


def _check_arguments(
    spec: Specs | None, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], is_kept: bool
) -> None:
    """Refuse what is declared of arguments that there are not.

    Raises:
        ValueError: there are such, of a program that is kept.
        CaptureError: there are such, of a call.
    """
    function = original_of(function) or function
    receivers = 1 if args and has_receiver(function) else 0
    names = (_named_parameters(function, args) or parameter_names(function, named=True))[receivers:]
    count = max(len(args) - receivers, len(names))
    name, option = stated(function, "__name__", type(function).__name__), _option(spec)
    if isinstance(spec, DynamicShapes) and isinstance(spec.shapes, Mapping):
        wrong = [key for key in spec.shapes if key not in (*names, *kwargs)] if names else []
        message = f"{option} has {wrong[0]!r}, which is no argument of {name}" if wrong else None
    else:
        given = 0 if spec is None else len(spec)
        text = f"{option} has {given} entries, but {name} has {count} argument{'s' * (count != 1)}"
        message = text if given > count else None
    if message is not None:
        raise ValueError(message) if is_kept else refuse("SG501", message)


def _option(spec: Specs | None) -> str:
    """By which option something was declared."""
    return "dynamic_shapes" if isinstance(spec, DynamicShapes) else "input_spec"


@dataclass(frozen=True)
class _Check:
    """Refuses arguments that are not what is declared of them.

    Attributes:
        option: by which it is declared.
        names: of the function's parameters.
        is_kept: whether the program is for other calls, too.
        named: by the name of a dimension, the first that has it, and its size.
    """

    option: str
    names: list[str]
    is_kept: bool
    named: dict[str, tuple[str, int]] = field(default_factory=dict)

    def fits(self, declared: InputSpec, source: Source, tensor: torch.Tensor) -> None:
        """Refuse a tensor of other sizes, of sizes outside of their ranges, or of two sizes of one name.

        Raises:
            CaptureError: it is such.
        """
        self._has_its_shape(declared, source, tensor)
        for index, (dim, size) in enumerate(zip(declared.dims, tensor.shape, strict=True)):
            shown = f"dimension {index} of '{self._shown(source)}'"
            if dim is not None and not dim.holds(size):
                raise refuse("SG501", f"{shown} is {size}, but {self.option} declares {dim}")
            if size < 2 and declared.shape[index] is None and self.is_kept:
                hint = "Give an example in which it is 2 or more; the program serves every size then."
                shown = shown if dim is None else f"{shown}, {dim},"
                raise refuse("SG501", f"{shown} cannot be left open by an example of size {size}", hint=hint)
            if dim is not None:
                self._has_one_size(dim, shown, size)

    def _has_its_shape(self, declared: InputSpec, source: Source, tensor: torch.Tensor) -> None:
        sizes = zip(declared.shape, tensor.shape, strict=False)
        fits = len(declared.shape) == tensor.dim() and all(d is None or d == size for d, size in sizes)
        if fits and declared.dtype == tensor.dtype:
            return
        given, name = InputSpec.from_tensor(tensor), self._shown(source)
        hint = f"Pass a tensor of these sizes, or declare those that vary as None: {given}."
        if self.option == "dynamic_shapes":
            hint = "Pass a tensor of these sizes, or declare those that vary as Dim.DYNAMIC."
        if declared.dtype != tensor.dtype:
            hint = f"Pass {name}.to({declared.dtype}), or declare {given}."
        raise refuse("SG501", f"'{name}' is {given}, but {self.option} declares {declared}", hint=hint)

    def _has_one_size(self, dim: Dim, shown: str, size: int) -> None:
        first, known = self.named.setdefault(dim.name, (shown, size))
        if known != size:
            message = f"{first} is {known} and {shown} is {size}, but {self.option} declares '{dim.name}' for both"
            raise refuse("SG501", message, hint="Pass one size, or give the dimensions two names.")

    def _shown(self, source: Source) -> object:
        """What an argument is called."""
        index = source.key if isinstance(source, Argument) else None
        return self.names[index] if isinstance(index, int) and index < len(self.names) else source


def parameter_names(function: Any, named: bool = False) -> list[str]:
    """The names of parameters; with ``named`` without those that take any number of arguments."""
    signature = stated_signature(function)
    if signature is None:
        return []
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) if named else ()
    return [name for name, parameter in signature.parameters.items() if parameter.kind not in several]


def has_receiver(function: Any) -> bool:
    """Whether a plain function stands in a class body: its first argument is then the receiver."""
    owner = stated(function, "__qualname__", "").rpartition(".")[0]
    return isinstance(function, FunctionType) and bool(owner) and not owner.endswith("<locals>")
