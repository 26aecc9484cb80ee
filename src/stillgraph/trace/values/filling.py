"""Whether a template takes values that only the run knows: asked with values of the same types."""

from __future__ import annotations

import itertools
import string
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.facts.info import info
from stillgraph.program.operations import text
from stillgraph.trace.code.frames import here
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.containers import holds_staged
from stillgraph.trace.values.numbers import Staged, StagedNumber, kind_of

if TYPE_CHECKING:
    from stillgraph.trace.graph.recorder import Recorder

_SAMPLES: Mapping[type, tuple[Any, ...]] = {
    int: (1, -1, 1, 1),
    float: (1.5, -1.5, float("nan"), float("-inf")),
    bool: (True, False, True, True),
    complex: (1j, -1j, 1j, 1j),
    str: ("text", "t", "text", "text"),
}
"""As many values of each type: a template that takes them all takes any."""

_COMMON = 2  # of them; in the others floats are infinite, or no number

_OF_ANY_TYPE = (1, 1.5, True, None)


def require_fits(
    recorder: Recorder,
    template: str,
    values: tuple[Any, ...],
    fill: Callable[..., str],
    names: Mapping[str, Any],
    texts: type,
) -> bool:
    """Fill a template with values of the same types: it raises where a specification does not fit, as eager PyTorch.

    Args:
        recorder: the capture, which knows on which path we are.
        template: what is filled in.
        values: what it is filled with, some of which only the run knows.
        fill: makes the text of them.
        names: values that the template calls by name.
        texts: the class of what stands for texts that only the run knows.

    Returns:
        Whether it takes all such values. Else only the run tells: of floats that are infinite or no number, or of what
        the template reaches into (``{0.shape}``).

    Raises:
        ValueError, TypeError: it takes no values of these types.
        CaptureError: only the run knows whether it does.
    """
    if fill is text and _reaches_into(template):
        return False
    errors: list[Exception | None] = []
    for number, uncertain in itertools.product(range(len(_SAMPLES[float])), _OF_ANY_TYPE):
        sampled = _Sampling(recorder, number, uncertain, texts)
        args = tuple(map(sampled.of, values))
        named = {name: sampled.of(value) for name, value in names.items()}
        try:
            fill(template, *args, **named)
            errors.append(None)
        except (ValueError, TypeError, OverflowError) as error:
            errors.append(error)
    common = errors[: _COMMON * len(_OF_ANY_TYPE)]
    failed = next((each for each in common if each is not None), None)
    if failed is None:
        return errors.count(None) == len(errors)
    if len({(type(each), str(each)) for each in common}) == 1:
        raise failed
    message = f"whether a text takes a value, only the run knows: {failed}"
    raise refuse("SG302", message, location=here(), hint="Print or return the value itself.")


def _reaches_into(template: str) -> bool:
    """Whether a template asks its values for attributes or elements, but for what every class has."""
    fields = (name for _, name, _, _ in string.Formatter().parse(template) if name is not None)
    return any(("." in name or "[" in name) and not name.endswith(_OF_CLASSES) for name in fields)


_OF_CLASSES = (".__class__.__name__", ".__class__.__qualname__")


class _Sampling:
    """Gives samples of values.

    Args:
        recorder: as `require_fits`.
        number: which of the samples of each type.
        uncertain: what stands for a value of a type that only the run knows.
        texts: as `require_fits`.
    """

    def __init__(self, recorder: Recorder, number: int, uncertain: Any, texts: type) -> None:
        self._recorder = recorder
        self._number = number
        self._texts = texts
        self._uncertain = uncertain

    def of(self, value: Any) -> Any:
        """What stands for a value."""
        kind = type(value)
        if kind is torch.Size:
            return torch.Size([self._of(int) if isinstance(each, StagedNumber) else each for each in value])
        if kind in (tuple, list):
            return kind(map(self.of, value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return kind(*map(self.of, value))
        if kind is dict:
            return {name: self.of(each) for name, each in value.items()}
        if isinstance(value, (torch.Tensor, StagedNumber)):
            return self._of_data(value)
        if isinstance(value, StagedArray):
            is_number = value.tensor.dim() == 0
            return self._of(_kind(value.tensor.dtype)) if is_number else _unformatted("numpy.ndarray", None)
        if isinstance(value, StagedComplex):
            return self._of(complex)
        if isinstance(value, self._texts):
            return None if self._may_be_missing(value) and self._uncertain is None else self._of(str)
        return _unformatted(kind.__name__, None) if isinstance(value, Staged) or holds_staged(value) else value

    def _of_data(self, value: Any) -> Any:
        known, missing = info(value), self._may_be_missing(value)
        if missing or known.may_be_number or known.kind_varies:  # only the run tells its type
            may_be = self._uncertain is not None or missing
            return self._uncertain if may_be else _OF_ANY_TYPE[0]
        if isinstance(value, StagedNumber):
            return self._of(kind_of(value))
        with torch._C.DisableTorchFunction():
            return self._of_tensor(value)

    def _may_be_missing(self, value: Any) -> bool:
        """Whether there may be None where we are, or no value: what was read has one."""
        known, recorder = info(value), self._recorder
        unbound = known.may_be_unbound and recorder.known_unboundness(value) is not False
        return unbound or (known.may_be_none and recorder.may_be_none(value))

    def _of(self, kind: type) -> Any:
        return _SAMPLES[kind][self._number]

    def _of_tensor(self, tensor: torch.Tensor) -> Any:
        number = self._of(_kind(tensor.dtype))
        if tensor.dim() == 0 and type(tensor) is not torch.nn.Parameter:
            return number
        has_one = all(type(size) is int and size == 1 for size in tensor.shape)
        return _unformatted(type(tensor).__name__, (lambda: number) if has_one else _refuse_several)


def _unformatted(name: str, number: Callable[[], Any] | None) -> Any:
    """What takes no specification.

    Args:
        name: of its class, which an error tells.
        number: gives what it is where ``%`` asks for a number; None where it is none.
    """
    if number is None:
        return type(name, (), {})()
    return type(name, (), {"__float__": lambda self: float(number()), "__int__": lambda self: int(number())})()


def _refuse_several() -> NoReturn:
    raise refuse("SG302", "a tensor of several elements is shown as a number", location=here())


def _kind(dtype: torch.dtype) -> type:
    return complex if dtype.is_complex else float if dtype.is_floating_point else bool if dtype is torch.bool else int
