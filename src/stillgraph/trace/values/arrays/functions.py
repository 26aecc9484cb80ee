"""The functions and arrays of numpy: whether a callable is one, what torch calls it, and what torch's layer lacks."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.trace.code.frames import here

_NAMED_OTHERWISE = {"percentile": "torch.quantile, with q / 100,"}


def counterpart(function: Any) -> str | None:
    """What to write in place of a function of numpy's, where torch has it."""
    name = getattr(function, "__name__", "")
    known = _NAMED_OTHERWISE.get(name)
    if known is None:
        within = [part for part in (_module(function) or "").split(".")[1:] if part in ("fft", "linalg")]
        place: Any = getattr(torch, within[0]) if within else torch
        found = getattr(place, name, None)
        if not callable(found):
            return f"Use .to(torch.{name}) on the tensor itself." if isinstance(found, torch.dtype) else None
        known = ".".join(["torch", *within[:1], name])
    return f"Use {known} on the tensor itself, whose dtype and shape the program knows."


def is_array(value: Any) -> bool:
    """Whether an object is one of numpy's arrays."""
    numpy: Any = sys.modules.get("numpy")
    return numpy is not None and issubclass(type(value), numpy.ndarray)  # the user's code is not to be asked


def is_numpy(function: Any) -> bool:
    """Whether a callable is one of numpy's."""
    return any((module or "").split(".")[0] == "numpy" for module in (function.__class__.__module__, _module(function)))


_OF_ONE_ARRAY = (
    *("array", "asarray", "asanyarray", "ascontiguousarray", "copy", "sum", "prod", "mean", "min", "max", "amin"),
    *("amax", "argmin", "argmax", "argsort", "sort", "cumsum", "cumprod", "std", "var", "any", "all", "diff", "flip"),
)
_TAKING_ARRAYS = {**dict.fromkeys(_OF_ONE_ARRAY, (0,)), "full": (1,), "linspace": (0, 1)}


def takes_arrays(function: Any, args: Any, kwargs: dict[str, Any]) -> tuple[int, ...]:
    """The positions of what a call of numpy's makes arrays of: none where a dtype does not take each number."""
    name, numpy = getattr(function, "__name__", ""), sys.modules["numpy"]
    dtypes = [each for each in (*args, kwargs.get("dtype")) if isinstance(each, (type, numpy.dtype))]
    dtypes += [kwargs.get("dtype")] * isinstance(kwargs.get("dtype"), str)
    takes_all = ("float32", "float64", *["int64"] * (name == "linspace"))
    fits = all(numpy.dtype(each).name in takes_all for each in dtypes) and kwargs.get("copy", True) is True
    return _TAKING_ARRAYS.get(name, ()) if fits else ()


def _module(function: Any) -> str | None:
    module = getattr(function, "__module__", None)
    return module if isinstance(module, str) else None


# ---- torch's own layer of them
def layer() -> Any:
    """``torch._numpy``, which is imported when it is needed."""
    return importlib.import_module("torch._numpy")


def remainder(left: Any, right: Any, **options: Any) -> Any:
    """``numpy.remainder``: unlike torch's, it gives the zero that has the divisor's sign."""
    result = layer().remainder(left, _no_zero(right), **options)
    of = result.tensor
    if not of.is_floating_point():
        return _zero_by_zero(result, right)
    if options:
        raise refuse("SG310", "numpy.remainder with options", location=here(), hint="Use torch.remainder.")
    sign = layer().asarray(right).tensor.to(of.dtype)
    return layer().ndarray(torch.where(of == 0, torch.copysign(torch.zeros_like(of), sign), of))


def floor_divide(left: Any, right: Any) -> Any:
    """``numpy.floor_divide``: unlike torch's, it gives zero for a whole number divided by zero."""
    return _zero_by_zero(layer().floor_divide(left, _no_zero(right)), right)


def _no_zero(divisor: Any) -> Any:
    """A divisor with ones in the place of whole zeros, at which torch raises an error."""
    if isinstance(divisor, int) and divisor:
        return divisor
    of = layer().asarray(divisor).tensor
    exact = not (of.is_floating_point() or of.is_complex())
    return layer().ndarray(torch.where(of == 0, torch.ones_like(of), of)) if exact else divisor


def _zero_by_zero(result: Any, divisor: Any) -> Any:
    """A result of such a division, with zeros where the divisor was zero."""
    of = layer().asarray(divisor).tensor
    if result.tensor.is_floating_point() or (isinstance(divisor, int) and divisor):
        return result
    return layer().ndarray(torch.where(of == 0, torch.zeros_like(result.tensor), result.tensor))


def _of_floats(name: str) -> Callable[..., Any]:
    """A function of the layer's that forgets NaN."""

    def function(value: Any, *others: Any) -> Any:
        of = layer().asarray(value).tensor
        found = getattr(layer(), name)(value, *others).tensor
        return layer().ndarray(torch.where(of.isnan(), of.to(found.dtype), found) if of.is_floating_point() else found)

    return function


def _cbrt(value: Any) -> Any:
    of = layer().asarray(value).tensor
    of = of if of.is_floating_point() else of.to(torch.float64)
    return layer().ndarray(torch.sign(of) * torch.abs(of) ** (1 / 3))


def _interp(x: Any, xp: Any, fp: Any) -> Any:
    """``numpy.interp``: along the line through the two points around a place, as numpy computes that."""
    at, places, values = (layer().asarray(each).tensor.to(torch.float64) for each in (x, xp, fp))
    last = places.numel() - 1
    after = torch.searchsorted(places.contiguous(), at.contiguous(), right=True)
    before = (after - 1).clamp(0, max(last - 1, 0))
    slope = (values[before + 1] - values[before]) / (places[before + 1] - places[before]) if last else values[before]
    between = slope * (at - places[before]) + values[before]
    if last:
        from_behind = slope * (at - places[before + 1]) + values[before + 1]
        between = torch.where(between.isnan(), from_behind, between)
        between = torch.where(between.isnan() & (values[before] == values[before + 1]), values[before], between)
    inside = torch.where(at == places[before], values[before], between)
    result = torch.where(after == 0, values[0], torch.where(after > last, values[last], inside))
    return layer().ndarray(torch.where(at.isnan(), at, result))


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None, axis: int = 0
) -> Any:
    """``numpy.linspace`` between two numbers, as numpy computes it."""
    first, last = (layer().asarray(each).tensor.to(torch.float64) for each in (start, stop))
    if retstep or first.dim() or last.dim():
        hint = "Give two numbers, or use torch.linspace."
        raise refuse("SG310", "numpy.linspace of arrays, or with its step", location=here(), hint=hint)
    parts, delta = num - 1 if endpoint else num, last - first
    steps = torch.arange(num, dtype=torch.float64)
    if parts > 0:
        step = delta / parts
        steps = torch.where(step == 0, steps / parts * delta, steps * step) + first
    else:
        steps = steps * delta + first
    found = torch.cat([steps[:-1], last.reshape(1)]) if endpoint and num > 1 else steps
    if dtype is None:
        return layer().ndarray(found)
    wanted = layer().dtype(dtype).torch_dtype
    return layer().ndarray((found if wanted.is_floating_point else found.floor()).to(wanted))


OF_OUR_OWN: dict[str, Callable[..., Any]] = {
    "remainder": remainder,
    "floor_divide": floor_divide,
    "sign": _of_floats("sign"),
    "heaviside": _of_floats("heaviside"),
    "cbrt": _cbrt,
    "mod": remainder,
    "interp": _interp,
    "linspace": _linspace,
    "asanyarray": lambda *args, **kwargs: layer().asarray(*args, **kwargs),
}
"""By numpy's name the function that gives the same."""
