"""Regions are traced apart: what torch learns of sizes in one does not hold outside of it.

torch traces both arms of a branch, and a loop's body, with one environment for sizes. What it learns in an arm (of
``x[0]``, that ``x`` has an element) it would assert for the whole program, and fold the condition itself by it.

Nor is a region run again for the shapes of its results once it is traced. torch does that for each region around it, so
that the time would grow with the square of the depth; its graph says what the results are. Nor is it traced to see
whether it writes to what it takes, which the passes see to: that would be once more for each region around it.

The adapter to how torch calls the regions of its higher-order operators.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch._subclasses.functional_tensor import FunctionalTensorMode, PythonFunctionalizeAPI
from torch.fx import traceback
from torch.fx._symbolic_trace import _Patcher
from torch.fx.experimental import _config
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from stillgraph.core.progress import step
from stillgraph.deploy.exporting.joined_arms import joined_by_sizes
from stillgraph.deploy.exporting.known_results import known_results
from stillgraph.deploy.exporting.modes_apart import modes_apart
from stillgraph.program.facts.size_facts import learned_inside

_OPERATORS = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)
_ONE_AT_A_TIME = threading.RLock()  # what is exchanged is the process's


@contextlib.contextmanager
def regions_apart() -> Iterator[None]:
    """Let torch, while it traces, forget behind a region what it learned there of sizes, and join results of all sizes.

    It takes nothing from the example's size of an open dimension either, as if the run alone knew it: of ``x[1:-1]``
    traced with three elements it would keep that there are no more, and compiled code would not even check that. One
    thread at a time is inside.
    """
    with _ONE_AT_A_TIME, contextlib.ExitStack() as stack:
        stack.enter_context(_config.patch(backed_size_oblivious=True))  # type: ignore[attr-defined]  # torch adds it
        stack.enter_context(_without_stacks())
        stack.enter_context(_methods_patched_once())
        stack.enter_context(modes_apart())
        stack.enter_context(joined_by_sizes())
        for operator in _OPERATORS:
            stack.enter_context(_called_apart(type(operator)))
            stack.enter_context(_trusted(operator))
        yield


@contextlib.contextmanager
def _without_stacks() -> Iterator[None]:
    """Let torch note no stack with a node: what it traces are graphs, so the lines would be its own."""
    before = getattr(fx.config, _NO_STACKS, None)  # of later releases than 2.11
    setattr(fx.config, _NO_STACKS, True)
    try:
        yield
    finally:
        setattr(fx.config, _NO_STACKS, before)


_NO_STACKS = "do_not_emit_stack_traces"


@contextlib.contextmanager
def _methods_patched_once() -> Iterator[None]:
    """Let torch exchange methods of modules for what it traces, but not again for each region: a region calls none.

    To exchange one, Python goes through all classes of modules that there are, and each graph has a class of its own.
    """
    patch_method = _Patcher.patch_method
    made: list[Any] = []

    def patch_once(self: _Patcher, kind: type, name: str, new: Any, deduplicate: bool = True) -> None:
        if not any(getattr(kind, name) is each for each in made):
            made.append(new)
            patch_method(self, kind, name, new, deduplicate)

    _Patcher.patch_method = patch_once  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        _Patcher.patch_method = patch_method  # type: ignore[method-assign]


@contextlib.contextmanager
def _called_apart(kind: Any) -> Iterator[None]:
    call = kind.__call__
    kind.__call__ = _with_regions_apart(call)
    try:
        yield
    finally:
        kind.__call__ = call


@contextlib.contextmanager
def _trusted(operator: Any) -> Iterator[None]:
    """Let torch take the regions of an operator for functions that write to nothing outside, and give no view of it."""
    rules = operator.python_key_table

    def functional(mode: Any, *args: Any) -> Any:
        api = PythonFunctionalizeAPI(mode)
        given = [api.unwrap_tensors(each) for each in args]
        with api.redispatch_to_next():
            made = operator(*(api.functionalize(each) if _is_region(each) else each for each in given))
            return api.wrap_tensors(made)

    theirs = rules[FunctionalTensorMode]
    rules[FunctionalTensorMode] = functional
    operator._dispatch_cache.clear()
    try:
        yield
    finally:
        rules[FunctionalTensorMode] = theirs
        operator._dispatch_cache.clear()


def _with_regions_apart(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def calling(operator: Any, *args: Any, **kwargs: Any) -> Any:
        given = (_apart(each) if _is_region(each) else each for each in args)
        return call(operator, *given, **kwargs)

    return calling


def _is_region(value: Any) -> bool:
    return callable(value) and not isinstance(value, (torch.Tensor, torch.SymBool, torch.SymInt, torch.SymFloat))


def _apart(region: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(region, "stillgraph_apart", False):
        return region

    def inside(*args: Any) -> Any:
        mode = detect_fake_mode(args)
        if mode is not None and get_proxy_mode() is None and (known := known_results(region, args)) is not None:
            return known
        environment = None if mode is None else mode.shape_env
        with contextlib.nullcontext() if environment is None else learned_inside(environment, guards=True):
            return _run(region, args)

    inside.stillgraph_apart = True  # type: ignore[attr-defined]  # a function's own attribute
    return inside


def _run(region: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    if not isinstance(region, fx.GraphModule):
        return region(*args)
    with traceback.preserve_node_meta():  # as torch runs a region itself
        made = fx.Interpreter(region).run(*args)
    step()
    return made
