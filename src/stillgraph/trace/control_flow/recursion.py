"""Recursion under a condition that only the run knows: a call of the function's own region, or a loop.

A tail call needs no more than its arguments, so the function becomes a loop that carries them. Otherwise the body is
recorded once, and a call inside it is a node that the program's driver runs as a call. What it takes and gives is found
as a loop's state is: the arguments of all calls are covered, and the results, until nothing changes; so is every
place outside that the body writes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.program.operations import recurse, recursion
from stillgraph.program.types import JoinFailure
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.aliases import is_mutable_container, know_elsewhere, mutable_containers
from stillgraph.trace.control_flow.arms import Arm, continue_arm
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.leaves import DEAD, is_empty
from stillgraph.trace.control_flow.loop_state import (
    Fixed,
    Listed,
    Slot,
    State,
    Tree,
    build,
    leaves_of,
    like,
    slots_of,
    tree_of,
)
from stillgraph.trace.control_flow.loops import loop
from stillgraph.trace.control_flow.region_interface import leaf_node
from stillgraph.trace.control_flow.staging import bind_outputs, carried, identifier
from stillgraph.trace.control_flow.tables import joined_place
from stillgraph.trace.control_flow.try_statements import in_protected_block
from stillgraph.trace.control_flow.widening import widen
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import CONTINUE, Exit, Return
from stillgraph.trace.heap.places import CellPlace, Place, Variable
from stillgraph.trace.values.containers import object_parts, split

_MAX_ROUNDS = 12
Given = dict[str, Any]
"""The arguments of a call, by the names of the parameters."""
Call = Callable[[Given], Any]


class NotATailCall(BaseException):
    """What a recursive call gives is used, so the function is no loop. No `Exception`: user code must not catch it."""

    def __init__(self, code: CodeType) -> None:
        super().__init__(code)
        self.code = code


class Pending:
    """What a tail call gives: it may only be returned."""

    def __init__(self, code: CodeType) -> None:
        self.__dict__["_code"] = code

    def _use(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotATailCall(self.__dict__["_code"])

    def __getattr__(self, name: str) -> NoReturn:
        self._use()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        for value in torch.utils._pytree.tree_leaves((args, kwargs)):
            if isinstance(value, Pending):
                value._use()
        raise refuse("SG207", "what a recursive call gives is used", location=here())


for _name in (
    *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod"),
    *("pow", "rpow", "matmul", "rmatmul", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rshift", "eq", "ne"),
    *("lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "bool", "int", "float", "index", "len", "iter", "hash"),
    *("getitem", "setitem", "contains", "call", "str", "repr", "format", "enter", "round", "next"),
):
    setattr(Pending, f"__{_name}__", Pending._use)


# ---- tail calls
def arguments_of(given: Given) -> Place:
    """The arguments of a call, as a place."""
    return Variable("recursive call", given)


@dataclass(eq=False)
class TailCalls:
    """A function that is being recorded as a loop."""

    recorder: Recorder
    code: CodeType
    arguments: Place
    pending: list[Pending] = field(default_factory=list)
    mark: int = 0  # of the journal, where the body began
    _since: tuple[Any, ...] = ()

    def call(self, given: Given) -> Any:
        """A recursive call: the next iteration, provided that nothing is done after it but to return its result."""
        if self.recorder.handlers.attempts or in_protected_block(self.recorder, self.code):
            raise NotATailCall(self.code)
        self.recorder.journal.write(self.arguments, given)
        self.pending.append(Pending(self.code))
        self._since = self._done()
        return self.pending[-1]

    def _done(self) -> tuple[Any, ...]:
        """What shows whether something was done: operations, writes, and what variables outside hold."""
        journal = self.recorder.journal
        cells = [write.place for write in journal.written(self.mark).values() if isinstance(write.place, CellPlace)]
        return (self.recorder.emitted, journal.mark, *(place.get() for place in cells))

    def returned(self, value: Any) -> Exit:
        """The exit of a block that returns ``value``."""
        if self.pending and value is self.pending[-1]:
            self.pending.pop()
            done = self._done()
            if len(done) != len(self._since) or any(a is not b and a != b for a, b in zip(done[:2], self._since)):
                raise NotATailCall(self.code)
            if any(a is not b for a, b in zip(done[2:], self._since[2:])):
                raise NotATailCall(self.code)
            return CONTINUE
        if self.pending:
            raise NotATailCall(self.code)
        return Return(value)


def as_loop(recorder: Recorder, tail: TailCalls, call: Call) -> Any:
    """Run a function whose recursive calls are all in tail position, as a loop; ``call`` calls it.

    Raises:
        NotATailCall: they are not.
        JoinFailure: an argument or result changes its kind from call to call.
    """

    def body() -> Exit | None:
        tail.pending.clear()
        tail.mark = recorder.journal.mark
        value = call(tail.arguments.get())
        if isinstance(value, Exit):
            return value
        return tail.returned(value)

    exit = loop(recorder, lambda: True, body, [tail.arguments], [])
    assert exit is not None
    return exit.value


# ---- other calls
@dataclass(eq=False)
class Recursion:
    """A function that is being recorded as a region which calls itself."""

    recorder: Recorder
    name: str
    joiner: Joiner
    arguments: State
    result: State
    places: dict[Hashable, Place] = field(default_factory=dict)
    states: dict[Hashable, State] = field(default_factory=dict)
    settled: bool = True
    shares: bool = False  # whether what it gives may be an object that others know

    def call(self, given: Given) -> Any:
        """A recursive call, of types as far as they are known by now.

        Raises:
            Diverged: nothing is known yet of what the function gives.
        """
        self._widen_arguments(given)
        _know_elsewhere(self.recorder, self.arguments, given)
        for key, place in self.places.items():
            self._widen_place(key, place.get())
        if isinstance(self.result, Fixed) and self.result.value is DEAD:
            self.settled = False
            raise Diverged
        node = self.recorder.emit("call_function", recurse, (self.name, *self.leaf_nodes(given)), {})
        return self._take(node)

    def leaf_nodes(self, given: Given) -> list[Any]:
        """What a call hands in: the arguments, and what the places outside hold."""
        leaves = leaves_of(self.arguments, given, split)
        for key, state in self.states.items():
            leaves += leaves_of(state, self.places[key].get(), split)
        return [leaf_node(self.recorder, value, slot.type, slot.place) for slot, value in leaves]

    def _take(self, node: Any) -> Any:
        """What a call gives, after what it left in places outside has been written."""
        slots = self.out_slots()
        made = bind_outputs(self.recorder, node, [slot.type for slot in slots], [slot.place for slot in slots])
        values = iter(made)
        result = build(self.result, lambda _: next(values))
        _know_elsewhere(self.recorder, self.result, result)
        if self.shares and not isinstance(self.result, Fixed):
            for container in mutable_containers(result):
                self.recorder.identities.freeze(container)
        for key, state in self.states.items():
            if slots_of(state):
                left = build(state, lambda _: next(values))
                _know_elsewhere(self.recorder, state, left)
                self.recorder.journal.write(self.places[key], left)
        return result

    def out_slots(self) -> list[Slot]:
        """The leaves that a call gives."""
        return [*slots_of(self.result), *(slot for state in self.states.values() for slot in slots_of(state))]

    def _widen_arguments(self, given: Any) -> None:
        state = widen(self.joiner, self.arguments, given, "")
        self.settled = self.settled and state is self.arguments
        self.arguments = state

    def _widen_place(self, key: Hashable, value: Any) -> None:
        self.joiner.at = self.places[key]
        state = widen(self.joiner, self.states[key], value, str(self.places[key]))
        self.settled = self.settled and state is self.states[key]
        self.states[key] = state
        _know_elsewhere(self.recorder, state, value)

    def settle(self, arm: Arm) -> None:
        """Widen the state by what one recording of the body left."""
        self.joiner.views = (split, arm.view)
        self.settled = not arm.freezes(self.recorder) and self.settled
        for key, (place, value) in arm.writes.items():
            if key not in self.places:
                self.settled = False
                self.places[key] = joined_place(self.recorder.journal, place, ((None, place.get()), (place, value)))
                self.states[key] = Fixed(place.get())
            if not arm.diverged:
                self._widen_place(key, value)
        if not arm.diverged:
            assert arm.exit is not None
            self.joiner.tell_older_by(arm.is_older)
            given, is_copy = [*mutable_containers(arm.exit.value)], self.recorder.identities.is_copy
            self.shares = self.shares or any(arm.is_older(each) or is_copy(each) for each in given)
            result = widen(self.joiner, self.result, arm.exit.value, f"{self.name}()")
            self.settled = self.settled and result is self.result
            self.result = result
            _know_elsewhere(self.recorder, result, arm.exit.value)
        self.joiner.views = (split, split)


def as_calls(
    recorder: Recorder, belongs_to: Callable[[Recursion | None], None], name: str, call: Call, given: Given
) -> Any:
    """Run a function that calls itself as a region that calls itself.

    Args:
        recorder: the capture.
        belongs_to: told which recursion the function's own calls belong to.
        name: the function's.
        call: calls the rewritten function.
        given: the arguments of the outermost call.

    Raises:
        JoinFailure: an argument, result or place outside changes its kind from call to call.
    """
    mark = recorder.symbolic.mark
    parts = split(given)
    assert parts is not None
    joiner = Joiner(recorder, mark, allow_unjoined=False, when=("in one call", "in another call"))
    state = Recursion(recorder, identifier(name), joiner, tree_of(given, parts), Fixed(DEAD))
    decided = len(recorder.watch.decisions)
    for _ in range(_MAX_ROUNDS):
        recorder.watch.forget(decided)
        state.settled = True
        belongs_to(state)
        try:
            arm, inputs = _record(state, call)
        finally:
            belongs_to(None)
        state.settle(arm)
        if state.settled:
            return _close(state, arm, inputs, given)
    raise JoinFailure("SG207", f"what '{name}' takes and gives does not settle")


def _record(state: Recursion, call: Call) -> tuple[Arm, dict[Hashable, Any]]:
    """Record the body once, on fresh placeholders."""
    recorder = state.recorder
    region = Region(recorder.region)

    def placeholder(slot: Slot) -> Any:
        return carried(recorder, region, slot)

    with recorder.resume(region):
        given = build(state.arguments, placeholder)
        inputs = {key: build(place_state, placeholder) for key, place_state in state.states.items()}
    _freeze_arguments(recorder, state.arguments, given)
    _know_elsewhere(recorder, state.arguments, given)
    for key, place_state in state.states.items():
        _know_elsewhere(recorder, place_state, inputs[key])
    arm = Arm(region, writes={key: (state.places[key], value) for key, value in inputs.items()})
    continue_arm(recorder, arm, lambda: Return(call(given)), [])
    return arm, inputs


def _know_elsewhere(recorder: Recorder, state: State, value: Any) -> None:
    """Note that what calls hand to each other is another object in each: nobody can tell which names lead to it."""
    if not isinstance(state, (Tree, Listed)) or is_empty(value):
        return
    parts = object_parts(value)
    if isinstance(state, Listed) or parts is None:
        know_elsewhere(recorder.identities, value)
        return
    if is_mutable_container(value):
        recorder.identities.families.know_elsewhere(value)
    for child, inner in zip(state.children, like(state, parts).children):
        _know_elsewhere(recorder, child, inner)


def _freeze_arguments(recorder: Recorder, state: State, value: Any, depth: int = 0) -> None:
    """Let nobody change a container that stands for another one in each call."""
    if not isinstance(state, (Tree, Listed)) or is_empty(value):
        return
    if depth > 0 and not isinstance(value, tuple):
        recorder.identities.freeze(value)
    parts = split(value)
    assert parts is not None
    if isinstance(state, Tree):
        for child, inner in zip(state.children, like(state, parts).children):
            _freeze_arguments(recorder, child, inner, depth + 1)


def _close(state: Recursion, arm: Arm, inputs: dict[Hashable, Any], given: Given) -> Any:
    recorder = state.recorder
    if arm.diverged and not state.out_slots() and isinstance(state.result, Fixed) and state.result.value is DEAD:
        raise refuse("SG207", f"'{state.name}' calls itself on every path, so it never ends")
    value = DEAD if arm.diverged or arm.exit is None else arm.exit.value
    with recorder.resume(arm.region):
        leaves = leaves_of(state.result, value, arm.view)
        for key, place_state in state.states.items():
            leaves += leaves_of(place_state, arm.value(state.places[key], inputs.get(key)), arm.view)
        outputs = [leaf_node(recorder, leaf, slot.type, slot.place) for slot, leaf in leaves]
    for place in state.places.values():
        recorder.relied.add(place)  # a call that ends at once leaves it as it was
    operands = [recorder.region.node_of(captured) for captured, _ in arm.region.captures]
    body = recorder.region.attribute("recursive", arm.region.close(outputs))
    entries = tuple(state.leaf_nodes(given))
    node = recorder.emit("call_function", recursion, (state.name, body, entries, tuple(operands)), {})
    return state._take(node)
