"""The adapter to torch's private shape machinery: fake tensors, symbolic sizes and their guards.

What torch may rename lives in this module and in `shape_environment` alone.
"""

from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    StatelessSymbolicContext,
    free_unbacked_symbols,
    statically_known_true,
)
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext, _device_constructors
from torch.utils._python_dispatch import _disable_current_modes

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.program.facts.info import info, mark
from stillgraph.program.facts.size_facts import Undo, assume, learned_inside, of_any_size
from stillgraph.trace.code.frames import here
from stillgraph.trace.fakes.shape_environment import Environment, FakeMode

__all__ = [
    "DATA_DEPENDENT",
    "FakeTensor",
    "GuardOnDataDependentSymNode",
    "Symbolic",
    "UnsupportedFakeTensorException",
    "count_elements",
    "default_device",
    "is_fake",
    "is_hidden",
    "is_nested",
    "is_unknown",
    "known_false",
    "known_true",
    "makes_tensors",
    "under_transform",
    "without_dispatch_modes",
    "without_traces_of_failing_kernels",
]

DATA_DEPENDENT = (
    GuardOnDataDependentSymNode,
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
    UnsupportedFakeTensorException,  # so says torch 2.11 of quantised tensors
)


_FAKE_LOGGER = logging.getLogger("torch._subclasses.fake_tensor")


@contextlib.contextmanager
def without_traces_of_failing_kernels() -> Iterator[None]:
    """Keep torch from logging a trace of its own for an operation that raises: the exception says it all."""

    def reject(record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR

    _FAKE_LOGGER.addFilter(reject)
    try:
        yield
    finally:
        _FAKE_LOGGER.removeFilter(reject)


@contextlib.contextmanager
def without_dispatch_modes() -> Iterator[None]:
    """Keep the capture from the user's own dispatch modes: one that counts would count what is never computed."""
    with _disable_current_modes():
        yield


@contextlib.contextmanager
def kernels_in_python() -> Iterator[None]:
    """Let torch run the operators that have a form in Python as well by that, which takes symbols for sizes."""
    from torch._dispatch.python import enable_python_dispatcher

    with enable_python_dispatcher():
        yield


def is_fake(value: Any) -> bool:
    """Whether ``value`` is a tensor without data."""
    return isinstance(value, FakeTensor)


def is_hidden(value: Any) -> bool:
    """Whether a tensor is what autograd finds behind a value of which the capture does not know where it is from."""
    return info(value).is_hidden


def known_true(condition: torch.SymBool | bool) -> bool:
    """Whether a symbolic condition holds whatever the sizes are."""
    with torch._C.DisableTorchFunction():
        return bool(statically_known_true(condition))


def known_false(condition: torch.SymBool | bool) -> bool:
    """Whether a symbolic condition fails whatever the sizes are."""
    with torch._C.DisableTorchFunction():
        return bool(statically_known_true(torch.sym_not(condition)))


def is_unknown(size: Any) -> bool:
    """Whether only the run knows a size, and no argument tells it."""
    return isinstance(size, torch.SymInt) and bool(free_unbacked_symbols(size))


def under_transform() -> bool:
    """Whether a transform of `torch.func` (``grad``, ``vmap``, …) is at work in this thread."""
    return bool(torch._C._are_functorch_transforms_active())




def default_device() -> torch.device | None:
    """The device that this thread makes tensors on unless told otherwise, if one is set."""
    stack = _get_current_function_mode_stack()
    return next((mode.device for mode in stack if isinstance(mode, DeviceContext)), None)


def makes_tensors(function: Any) -> bool:
    """Whether a torch function makes tensors on the default device."""
    return function in _device_constructors()


def count_elements(tensor: torch.Tensor) -> None:
    """Let torch work out how many elements a tensor has.

    It does so when it is first asked, by what it knows of sizes then, and keeps the answer: in an arm that may be less
    than true elsewhere.
    """
    with torch._C.DisableTorchFunction():
        if not all(isinstance(size, int) for size in tensor.shape):
            tensor.numel()


def is_nested(tensor: torch.Tensor) -> bool:
    """Whether a tensor is nested, or has the memory of one, of which torch makes fakes for a symbol of its own.

    To be asked where torch functions are disabled.
    """
    base = tensor._base
    return tensor.is_nested or (base is not None and base.is_nested)


def cannot_be_fake(tensor: torch.Tensor, error: Exception) -> BaseException:
    """The refusal of a tensor of a kind that torch has no tensors without data of."""
    if tensor.is_quantized:
        hint = "Call dequantize() on it outside the static function, and what computes with it as it is."
        return refuse("SG304", "a quantized tensor cannot be part of a program", location=here(), hint=hint)
    message = f"a {type(tensor).__name__} of layout {tensor.layout} cannot be part of a program ({error})"
    return refuse("SG304", message, location=here())


class Symbolic:
    """One capture's fake tensors and symbols."""

    def __init__(self) -> None:
        self.shape_env = Environment()
        self.fake_mode = FakeMode(shape_env=self.shape_env, allow_non_fake_inputs=False)
        self.settled_sizes: dict[str, Location | None] = {}  # by their symbols, where they turned out to be one number

    def note_settled(self, known: int) -> None:
        """Remember which line let a size that is declared open be one number, if there are more than were known."""
        if len(self.shape_env.replacements) > known:
            location = here()
            for symbol in self.shape_env.replacements:
                self.settled_sizes.setdefault(str(symbol), location)

    def forget_real_tensors(self) -> None:
        """Let go of the weak references to real tensors: with these, ``torch.utils.swap_tensors`` refuses a tensor."""
        describer = self.fake_mode.fake_tensor_converter.meta_converter.describer
        describer.lookup_tensor.clear()
        describer.lookup_storage.clear()

    @contextlib.contextmanager
    def without_plain_sizes(self) -> Iterator[None]:
        """In the body torch's code in C++ that asks for plain sizes raises `WANTS_INTEGERS` where they are symbols."""
        before, self.fake_mode.refuses = self.fake_mode.refuses, True
        try:
            yield
        finally:
            self.fake_mode.refuses = before

    @contextlib.contextmanager
    def unremembered(self) -> Iterator[None]:
        """In the body torch does not remember what operations give: it is for those on sizes with symbols.

        The next one has other symbols, so that torch would hardly find it; to note it takes as long as to run it.
        """
        before, self.fake_mode.cache_enabled = self.fake_mode.cache_enabled, False
        try:
            yield
        finally:
            self.fake_mode.cache_enabled = before

    def fake(self, tensor: torch.Tensor) -> torch.Tensor:
        """The fake counterpart of a real tensor, with its exact sizes."""
        return self._from(tensor, static_shapes=True)

    def fake_apart(self, tensor: torch.Tensor) -> torch.Tensor:
        """One more fake counterpart of a tensor that has one already."""
        return self._from(self.apart(tensor), static_shapes=True)

    def _from(self, tensor: torch.Tensor, **options: Any) -> torch.Tensor:
        """A fake, whatever filters the user has: torch looks at ``grad``, and warns where no leaf is asked for it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with torch._C.DisableTorchFunction():
                nested = is_nested(tensor)
            if nested:
                raise cannot_be_fake(tensor, ValueError("each of its parts has a size of its own"))
            try:
                return self.fake_mode.from_tensor(tensor, **options)
            except UnsupportedFakeTensorException as error:
                raise cannot_be_fake(tensor, error) from error

    @staticmethod
    def apart(tensor: torch.Tensor) -> torch.Tensor:
        """A tensor like another: torch keeps one fake for each."""
        return tensor.detach().requires_grad_(tensor.requires_grad)

    def fake_dynamic(self, tensor: torch.Tensor, symbolic: tuple[bool, ...], name: str) -> torch.Tensor:
        """The fake counterpart of an argument, with a symbol for every dimension that ``symbolic`` marks."""
        from torch._dynamo.source import ConstantSource  # only here: it pulls in a part of dynamo

        sizes = [DimDynamic.DYNAMIC if s else DimDynamic.STATIC for s in symbolic]
        context: Any = StatelessSymbolicContext(dynamic_sizes=sizes, constraint_sizes=[None] * len(sizes))
        with of_any_size(self.shape_env):
            fake = self._from(tensor, source=ConstantSource(name), symbolic_context=context)
        count_elements(fake)
        return fake

    def learned_inside(self) -> AbstractContextManager[None]:
        """Forget in the end what is learned of sizes meanwhile: it holds on one path."""
        return learned_inside(self.shape_env)

    def of_any_size(self) -> AbstractContextManager[None]:
        """Forget in the end that sizes of inputs are not 0."""
        return of_any_size(self.shape_env) if self.shape_env.backed_var_to_val else contextlib.nullcontext()

    def before(self) -> Undo:
        """What is known of sizes now."""
        return Undo(self.shape_env)

    def assume(self, condition: Any, holds: bool) -> None:
        """Let a condition be known to hold, or not to, if it is one on sizes.

        Args:
            condition: what stands for a truth value.
            holds: what it is.
        """
        if isinstance(condition, torch.SymBool):
            assume(self.shape_env, condition.node.expr, holds)

    def fresh_int(self) -> torch.SymInt:
        """An integer of which nothing is known."""
        return self.shape_env.create_unbacked_symint()

    def fresh_float(self) -> torch.SymFloat:
        """A float of which nothing is known."""
        return self.shape_env.create_unbacked_symfloat()

    def fresh_bool(self) -> torch.SymBool:
        """A truth value of which nothing is known."""
        return self.shape_env.create_unbacked_symbool()

    def fresh_size(self) -> torch.SymInt:
        """A size of which nothing is known but that it is not negative."""
        size = self.shape_env.create_unbacked_symint()
        with torch._C.DisableTorchFunction():
            torch._check(size >= 0)
        return size

    def empty(
        self,
        shape: tuple[Any, ...],
        dtype: torch.dtype,
        device: torch.device,
        requires_grad: bool,
        grad_differs: bool = False,
        layout: torch.layout = torch.strided,
    ) -> Any:
        """A fresh fake tensor; with ``requires_grad`` it is the result of an operation, not a leaf."""
        with torch._C.DisableTorchFunction(), self.fake_mode, torch.enable_grad():
            tensor = torch.empty(shape, dtype=dtype, device=device, layout=layout)
            count_elements(tensor)
            if not requires_grad:
                return tensor
            hidden: Any = tensor.requires_grad_()
            mark(hidden, is_hidden=True, grad_differs=grad_differs)
            return hidden.clone()

    @staticmethod
    def python_text(expression: Any) -> str:
        """A condition on sizes as Python."""
        from torch.utils._sympy.printers import PythonPrinter

        text = str(PythonPrinter().doprint(expression))
        return text.replace("torch.sym_float(", "float(")  # guards are asked with plain numbers

    @property
    def mark(self) -> int:
        """A point in the numbering of data-dependent symbols, for `is_newer`."""
        return int(str(self.fresh_int().node.expr).lstrip("u"))

    @staticmethod
    def is_newer(size: Any, mark: int) -> bool:
        """Whether a symbolic size depends on a symbol that was made after ``mark``."""
        return any(
            int(match[1]) > mark
            for symbol in free_unbacked_symbols(size)
            if (match := re.fullmatch(r"z?u[a-z]*(\d+)", str(symbol)))
        )


def computed(expression: Any, parts: Mapping[Any, Any]) -> Any:
    """What an expression of torch's gives where each of its symbols is a number, or what stands for one."""
    from torch.utils._sympy.interp import sympy_interp
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    return sympy_interp(PythonReferenceAnalysis, dict(parts), expression)
