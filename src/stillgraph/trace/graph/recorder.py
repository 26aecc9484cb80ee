"""The recorder: while a function runs on fake tensors, every outermost torch call becomes a node of the open region.

One `TorchFunctionMode` stands over a stack of regions. Inside its handler torch's own calls are not seen again, so a
call is recorded as the user wrote it and not as what torch makes of it.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import torch
from torch import fx

from stillgraph.core.diagnostics import InternalError, refuse
from stillgraph.core.location import Location
from stillgraph.core.rewritten import Holder
from stillgraph.program.context import current_context
from stillgraph.program.facts.info import info
from stillgraph.program.facts.schemas import is_effectful
from stillgraph.program.operations import is_unbound, try_
from stillgraph.program.so_far import SO_FAR
from stillgraph.program.types import Type
from stillgraph.trace.code.executed_code import ExecutedCode
from stillgraph.trace.code.frames import Locator, here
from stillgraph.trace.code.random_states import RandomStates
from stillgraph.trace.code.watch import Watch
from stillgraph.trace.fakes import node_naming, torch_modes
from stillgraph.trace.fakes.in_eager import Failed, quote
from stillgraph.trace.fakes.symbolic import (
    DATA_DEPENDENT,
    Symbolic,
    count_elements,
    known_false,
    known_true,
    makes_tensors,
)
from stillgraph.trace.graph import typed_values
from stillgraph.trace.graph.fake_tensors import FakeTensors
from stillgraph.trace.graph.handlers import Handlers
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.plain_answers import PlainAnswers
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.identities import Identities
from stillgraph.trace.heap.journal import Journal
from stillgraph.trace.heap.relied_places import ReliedPlaces
from stillgraph.trace.sources.memory import Memory
from stillgraph.trace.torch_rules import broadcasting, call_results, layouts, sparse, special, tensor_attributes
from stillgraph.trace.torch_rules.any_float import takes_any_float, with_known_floats
from stillgraph.trace.torch_rules.failures import failures_of
from stillgraph.trace.torch_rules.fake_execution import needs_a_value, require_fit, require_not_quantized
from stillgraph.trace.torch_rules.given import leaves_given
from stillgraph.trace.torch_rules.hidden_inputs import HiddenInputs
from stillgraph.trace.torch_rules.hooks import HookedVariables
from stillgraph.trace.torch_rules.number_results import MAY_RAISE, mixes, number_result
from stillgraph.trace.torch_rules.tensor_construction import numpy_operation
from stillgraph.trace.values import complexes, number_failures
from stillgraph.trace.values.lists import StagedSpread
from stillgraph.trace.values.numbers import StagedNumber, let_kind_vary, plain, staged

_ASKING = frozenset({operator.is_, is_unbound})  # whether something is there, which raises nothing


class Recorder(PlainAnswers):
    """One capture in progress.

    Args:
        lift: makes an input of the program for a real tensor that turns up; returns its placeholder.
        demanded: called when Python demands the value of a staged one; gives a value or raises.
    """

    def __init__(self, lift: Callable[[torch.Tensor], fx.Node], demanded: Callable[[Any, str], Any]) -> None:
        super().__init__()
        self.watch = Watch()
        self.symbolic = Symbolic()
        self.journal = Journal()
        self.root = Region(None, lift)
        self.region = self.root
        self.fakes = FakeTensors(self.symbolic)
        self.facts: list[tuple[torch.Tensor, str]] = []  # what was asked of tensors from before the call
        self.compared = False  # whether objects were compared by a function of Python's
        self.values_compared = False  # whether numbers, texts and the like were asked to be one object
        self.relied = ReliedPlaces()
        self.unpacked_ones: dict[int, Any] = {}  # by id: parcels on whose contents the capture depends
        self.met: dict[int, Any] = {}  # by id: objects from outside that nobody looks for (a logger)
        self.identities = Identities(lambda: self.region.path)
        self.handlers = Handlers()
        self.has_optionals = False  # whether there is any value that is None on some path
        self.foreseeing = False  # whether it is only asked what the code will come to, so that nothing may be done
        self.has_unset = False  # whether any variable has a value on some paths only
        self.read_with_default: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # attributes of those paths, as read before
        self.emitted = 0  # operations, those of dropped regions included
        self.failed: Failed | None = None
        self.unknown: dict[int, tuple[Any, Location | None]] = {}  # containers of unknown length: since where
        self.executed = ExecutedCode()
        self.locator = Locator(quietly=self.executed.paused)
        self.stale: dict[int, tuple[Any, str]] = {}  # containers that called code may have changed, and its name
        self.grown: dict[int, StagedSpread] = {}  # by a list from before the capture: what stands for all it held
        self.gradients: dict[int, tuple[torch.Tensor, Any]] = {}  # what ``.grad`` holds, by the fake tensor
        self.gives_sparse_gradients = False  # whether a call asks for a gradient to be sparse
        self.went_outside = False  # whether a backward pass went on in what was computed before the call
        self.hooked = HookedVariables()
        self.functions: list[tuple[Any, ...]] = []  # the torch.autograd.Function classes applied, and to what
        self.memory = Memory()
        self.shelf: list[Any] = []  # what operators hold for the user, out of sight of the user's frames
        self.resumed: Sequence[Holder] = ()  # frames that are gone on with: none of Python's holds what is in them
        self.hidden_inputs: set[fx.Node] = set()  # placeholders of what only a call that runs as a whole reads
        self.asked_for_switches = False  # whether the code depends on torch's settings for the whole process
        self.device: torch.device | None = None  # the default device of the call, if one is set
        self.dispatch_modes = 0  # how many of the user's this thread was in when the call began
        self.watched = False  # whether a manager has been entered that sees or ends exceptions, see `Handlers`
        self.for_calls = True  # whether the program is to be called, not to become a file
        self.random: RandomStates | None = None  # told of generators that the code makes
        self._demanded = demanded
        self.ended = False  # whether the capture is over

    @contextlib.contextmanager
    def open(self) -> Iterator[Region]:
        """A child region, open during the body."""
        child = Region(self.region)
        with self.resume(child):
            yield child

    @contextlib.contextmanager
    def resume(self, region: Region) -> Iterator[None]:
        """Record into ``region``, a child of the open one, during the body."""
        outer, self.region = self.region, region
        try:
            yield
        finally:
            self.region = outer

    # ---- torch calls
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        torch_modes.require_no_more(self.dispatch_modes)
        decides = next((kind for kind in types if node_naming.decides_itself(kind)), None)
        if decides is not None:
            with self:  # what it calls of torch is recorded
                result = decides.__torch_function__(func, types, args, kwargs)
            if result is not NotImplemented:
                return result
        if self.device is not None and makes_tensors(func) and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        before = self.emitted
        result = self._handled(func, args, kwargs)
        if self.emitted == before and result is not None and not call_results.has_staged(result):
            name = getattr(func, "__name__", "")
            of = func.__self__.__name__ if name == "__get__" else name
            self.watch.metadata_read(self.locator.here(), of, result)
        return result

    def _handled(self, func: Any, args: Any, kwargs: Any) -> Any:
        handler = special.HANDLERS.get(func)
        if handler is not None:
            return special.by_handler(self, handler, func, args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return tensor_attributes.read_attribute(self, func, args[0])
        if name == "__set__":
            return tensor_attributes.set_attribute(self, func, args)
        if node_naming.is_autograd_function(func):
            return self.record(func, args, kwargs)
        watching = self.executed.pause()  # all that happens there is ours or torch's
        try:
            return self.record(func, args, kwargs)
        finally:
            self.executed.resume(watching)

    def record(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run a torch call on fake tensors and add it to the open region."""
        if node_naming.is_autograd_function(func):
            return self._recorded(func, args, kwargs)
        watching = self.executed.pause()  # all that happens there is ours or torch's
        try:
            return self._recorded(func, args, kwargs)
        finally:
            self.executed.resume(watching)

    def _recorded(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        args, kwargs = node_naming.by_position(func, args, kwargs)
        for failure in failures_of(func, args, kwargs):
            self.before_raise(failure)
        sparse.require_apart(self, func, args)
        if sparse.gives_sparse_gradient(func, args, kwargs):
            self.gives_sparse_gradients = True
        if layouts.may_fail(self, func, args, kwargs):
            self.before_raise(RuntimeError)
        if takes_any_float(func, (args, kwargs)):
            self.before_risk()
        if any(info(value).may_be_missing for value in leaves_given(args, kwargs)):
            self.before_raise(None)
        result = self.run(func, args, kwargs)
        if not call_results.has_staged(result) and not is_effectful(func):
            return result
        require_not_quantized(func, result)
        special.refuse_relayout(self, func, args)
        return self.bind(result, self.emit(*node_naming.as_node(func, args, kwargs), kwargs))

    def run(self, func: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run a torch call on the fake counterparts of its arguments, without recording."""
        function = node_naming.is_autograd_function(func)
        watching = self.executed.pause()
        known = len(self.symbolic.shape_env.replacements)
        try:
            fake_args, fake_kwargs = self.to_fake(args), self.to_fake(kwargs)
            if function:
                self.executed.resume(watching)  # what the user's ``forward`` reads is read by the program
                return self.run_function(func, fake_args, fake_kwargs)
            with torch._C.DisableTorchFunction(), self.symbolic.fake_mode, self.symbolic.of_any_size():
                fake_args, fake_kwargs = with_known_floats(func, (fake_args, fake_kwargs), self.for_calls)
                given = call_results.fake_arguments(self, func, fake_args)
                call = functools.partial(layouts.run, self, func, given, fake_kwargs)
                return broadcasting.run(self.symbolic, func, given, fake_kwargs, call)
        except DATA_DEPENDENT as error:
            self.needs_value((args, kwargs))
            raise needs_a_value(func, error) from error
        except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
            require_fit(self, error, func, args, kwargs)
            if not function:
                self.failed = Failed(id(error), func, fake_args, fake_kwargs)
                told = quote(error, self.failed)
                if told is not None:
                    self.failed = replace(self.failed, error=id(told), said=str(told))
                if told not in (None, error):
                    raise told from None
            raise
        finally:
            self.executed.resume(watching)
            self.symbolic.note_settled(known)

    def run_function(self, apply: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a ``torch.autograd.Function``, which may use other tensors than its arguments."""
        given = (*args, *kwargs.values())
        self.functions.append((apply.__self__, *given))  # type: ignore[attr-defined]  # a method of a class
        with torch._C.DisableTorchFunction(), self.symbolic.fake_mode, HiddenInputs(self) as hidden:
            result = apply(*args, **kwargs)
        hidden.become_inputs()
        return result

    def to_fake(self, value: Any) -> Any:
        """``value`` with every real tensor replaced by its fake and every staged number by torch's symbol."""
        return self.fakes.to_fake(value)

    # ---- nodes
    def emit(self, op: str, target: Any, args: Any, kwargs: dict[str, Any]) -> fx.Node:
        """Add a node to the open region, its arguments given as values.

        Raises:
            CaptureError: it is only asked what may be done later.
        """
        if self.foreseeing:
            message = "what an 'except' is for does something, or depends on what only the run knows"
            raise refuse("SG208", message, location=self.locator.here())
        if target not in _ASKING and any(_may_say_otherwise(value, op) for value in args):
            self.before_raise(None)
        self.handlers.before_node(target is try_ and BaseException in args[3])
        self.emitted += 1
        with self.executed.paused():
            node = self.region.graph.create_node(op, target, as_argument(self, tuple(args)), as_argument(self, kwargs))
            node.meta["context"] = current_context()
            node.meta["location"] = where = self.locator.here()
            self.watch.recorded(where)
            node.meta[SO_FAR] = self.so_far()
        return node

    def bind(self, result: Any, node: fx.Node) -> Any:
        """Let ``node`` stand for ``result``; give back what the user's code is to see."""
        node.meta["val"] = result
        layouts.hand_on(node, result)
        if isinstance(result, torch.Tensor):
            return self.bind_tensor(result, node)
        if isinstance(result, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.number(result, node)
        if isinstance(result, (tuple, list)):
            return call_results.bind_sequence(self, result, node)
        return result

    def bind_tensor(self, result: torch.Tensor, node: fx.Node) -> torch.Tensor:
        """As `bind`, for one tensor; an operation in place gives back the object it worked on."""
        call_results.forget_constant(result)
        if id(result) in self.fakes.reals:
            return self.fakes.reals[id(result)]
        if not self.region.holds(result):
            self.region.define(result, node)
            count_elements(result)
        return result

    def number(self, symbolic: Any, node: fx.Node) -> Any:
        """The staged number for a symbol that ``node`` computes; a plain number where it is already decided."""
        if isinstance(symbolic, (bool, int, float)):
            return symbolic
        if isinstance(symbolic, torch.SymBool):
            if known_true(symbolic):
                return True
            if known_false(symbolic):
                return False
        elif symbolic.node.is_constant():
            return (
                symbolic.node.maybe_as_int() if isinstance(symbolic, torch.SymInt) else symbolic.node.maybe_as_float()
            )
        number = staged(symbolic, self)
        node.meta["val"] = plain(number)
        self.region.define(number, node)
        return number

    # ---- numbers
    def number_operation(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Record ``function(*args)`` on Python numbers."""
        self._require_going_on()
        if function in MAY_RAISE or getattr(function, "__module__", "") == "math":
            self.before_failures(number_failures.failures_of(function, args))
        if function is divmod:
            return (self.number_operation(operator.floordiv, args), self.number_operation(operator.mod, args))
        with self.executed.paused():
            result = number_result(self, function, args)
            if isinstance(result, torch.SymBool) and (known_true(result) or known_false(result)):
                return known_true(result)
        number = self.number(result, self.emit("call_function", function, args, {}))
        if isinstance(number, StagedNumber) and mixes(function, args):
            let_kind_vary(number)
        return number

    def complex_operation(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Record ``function(*operands)``, of which some are complex numbers."""
        return complexes.operation(self, function, operands)

    def opposite(self, flag: Any) -> Any:
        """``not flag``, for a staged number."""
        return self.number_operation(operator.not_, (flag,))

    def repeated(self, items: Any, count: Any) -> Any:
        """``items * count``, for a list or tuple and a staged number."""
        return items * int(self.number_demanded(count, "index"))

    def number_demanded(self, number: Any, what: str) -> Any:
        """Python demands the value of a staged number."""
        self._require_going_on()
        return self._demanded(number, what)

    def number_meets_array(self, number: Any) -> NoReturn:
        """As `NumberRecorder.number_meets_array`.

        Raises:
            CaptureError: always, or what `number_demanded` raises.
        """
        self._require_going_on()
        hint = "Make a tensor of it, or use the function of math, or float(…) of the numpy scalar."
        raise refuse("SG301", "a staged number meets a numpy array or scalar", location=here(), hint=hint)

    def numpy_operation(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """As `NumberRecorder.numpy_operation`."""
        return numpy_operation(self, function, operands)

    def _require_going_on(self) -> None:
        """Raise where a staged number is still used after its capture."""
        if self.ended:
            raise InternalError("what stands for a number in a capture is used after it; please report this program")

    def tensor_demanded(self, tensor: Any, what: str) -> Any:
        """Python demands the value of a staged tensor."""
        return self._demanded(tensor, what)

    def fresh_number(self, kind: type) -> Any:
        """A staged number of which nothing is known; the caller defines its node."""
        make = {int: self.symbolic.fresh_int, float: self.symbolic.fresh_float, bool: self.symbolic.fresh_bool}[kind]
        with self.executed.paused():
            return staged(make(), self)

    def fresh_result(self, kind: type, node: fx.Node) -> Any:
        """A staged number of which nothing is known but that ``node`` computes it."""
        number = self.fresh_number(kind)
        node.meta["val"] = plain(number)
        self.region.define(number, node)
        return number

    def made_at(self, value: Any) -> Location | None:
        """The user's line that made a staged value, if an operation did."""
        known = self.root.lines.get(id(value))
        return None if known is None or known[0] is not value else known[1]

    # ---- values out of types
    def type_of(self, value: Any) -> Type:
        """The type of a tensor, number or column of a list."""
        return typed_values.type_of(self, value)

    def instantiate(self, type_: Type) -> Any:
        """A fresh staged value of a type; the caller defines its node."""
        return typed_values.fresh(self, type_)


def _may_say_otherwise(value: Any, op: str) -> bool:
    """Whether a value may be None or unbound, or a number, which has no method of torch's."""
    is_asked = op == "call_method" and info(value).may_be_number
    return is_asked or info(value).may_be_missing
