"""``try`` statements whose exceptions only the run raises.

The body is recorded in a region of its own, and so is the handler. Wherever something in the body may raise, the
handler has to find what the variables and objects outside held at that moment: before each operation the recorder hands
over what has changed since the last time (`keep`). What the handler takes is found as a loop's state is.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from stillgraph.program.operations import keep, try_
from stillgraph.program.types import JoinFailure
from stillgraph.trace.control_flow.aliases import (
    freeze_all,
    keys_of_shared,
    know_elsewhere,
    mutable_containers,
    with_other_names,
)
from stillgraph.trace.control_flow.arms import Arm, continue_arm
from stillgraph.trace.control_flow.caught_kinds import attribute_of, clear_traceback, exception_of
from stillgraph.trace.control_flow.heap import OlderObjects
from stillgraph.trace.control_flow.joined.join import Joiner
from stillgraph.trace.control_flow.joined.join_errors import named, refuse_join
from stillgraph.trace.control_flow.joined.unjoined import is_lost, lost
from stillgraph.trace.control_flow.loop_state import Fixed, Listed, Slot, State, Tree, build, leaves_of, slots_of
from stillgraph.trace.control_flow.region_interface import leaf_node, unify_captures
from stillgraph.trace.control_flow.staging import Block, bind_outputs, carried, close_arms, give_outputs
from stillgraph.trace.control_flow.widening import telling_entry, widen
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region, is_erased
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.places import MISSING, ContentsPlace, PassingPlace, Place, ReadPlace
from stillgraph.trace.values.caught import Caught, caught
from stillgraph.trace.values.containers import object_parts
from stillgraph.trace.values.raised import Raised

_MAX_ROUNDS = 12
Handler = Callable[[BaseException], Exit | None]


class StageTry(BaseException):
    """Something in the body of a ``try`` raises in the run, so that has to be recorded apart. See `signals`."""

    def __init__(self, attempt: object) -> None:
        super().__init__(attempt)
        self.attempt = attempt


@dataclass(eq=False)
class Attempt:
    """A ``try`` whose body is being recorded.

    Attributes:
        staged: whether in a region of its own; otherwise the first thing that may raise raises `StageTry`.
        only_cleans_up: whether it is a ``finally``, which need not be staged for what merely may raise, where nothing
            around it handles that.
        raised: what something in the body raises, or may raise, unless a handler in the body gets it.
        passing: places that no handler looks at.
    """

    recorder: Recorder
    name: str
    kinds: tuple[type[BaseException], ...]
    staged: bool
    only_cleans_up: bool = False
    joiner: Joiner | None = None
    older: OlderObjects | None = None
    places: dict[Hashable, Place] = field(default_factory=dict)
    states: dict[Hashable, State] = field(default_factory=dict)
    raised: list[Raised] = field(default_factory=list)
    passing: list[Place] = field(default_factory=list)
    mark: int = 0
    settled: bool = True
    begins: bool = False  # whether the body hands over before all else
    shared: set[Hashable] = field(default_factory=set)  # places whose containers have other names
    copied: set[Hashable] = field(default_factory=set)  # places that had an element of a list, be it for a while
    put_in: dict[int, Any] = field(default_factory=dict)  # what the handler has copies of, in lists of unknown length
    handed: dict[int, tuple[list[Any], fx.Node]] = field(default_factory=dict)  # by region: what was handed over last
    _busy: bool = False

    @property
    def takes_all(self) -> bool:
        """Whether its handler comes before those around it, whatever its body raises in the run: it is staged then."""
        return BaseException in self.kinds

    def is_older(self, value: Any) -> bool:
        """Whether a mutable object was there before the body."""
        return self.older is not None and self.older.holds_mutable(value)

    def require_begun(self) -> None:
        """See that something is handed over before a region does something that hands over by itself."""
        if self.staged and not self.begins and self._handed_last() is None:
            self.begins, self.settled = True, False

    def before_node(self) -> None:
        """Hand over what the places hold, if that has changed."""
        if self._busy or not self.staged:
            return
        self._busy = True
        try:
            self._notice_places()
            values = self._held()
            last, now = self._handed_last(), list(_stamp(self.places, values))
            if last is None or len(last) != len(now) or any(a is not b for a, b in zip(last, now)):
                self.handed[id(self.recorder.region)] = now, self._hand_over(values)
        finally:
            self._busy = False

    def _handed_last(self) -> list[Any] | None:
        """What the open region handed over last, unless that was undone since: a loop is tried, and recorded again."""
        values, mark = self.handed.get(id(self.recorder.region), (None, None))
        return None if mark is None or is_erased(mark) else values

    def _held(self) -> dict[Hashable, Any]:
        """What the places hold for the handler: the name of a caught exception is unbound behind its own handler."""
        depth = self.recorder.handlers.attempts.index(self)
        unbound = {key for keys, around in self.recorder.handlers.unbound_behind if depth < around for key in keys()}
        held = {key: MISSING if key in unbound else place.get() for key, place in self.places.items()}
        return {key: MISSING if isinstance(value, Caught) else value for key, value in held.items()}

    def _notice_places(self) -> None:
        for key, write in self.recorder.journal.written(self.mark).items():
            if key in self.places or isinstance(write.place, PassingPlace):
                continue
            if self.older is not None and self.older.has(write.place):
                self.settled = False
                self.places[key] = write.place
                self.states[key] = Fixed(write.before)

    def _hand_over(self, values: dict[Hashable, Any]) -> fx.Node:
        assert self.joiner is not None
        leaves: list[tuple[Slot, Any]] = []
        self.shared |= keys_of_shared(self.places, values)
        for key, value in values.items():
            state, place = self._widened(key, value), self.places[key]
            if isinstance(state, (Tree, Listed)):
                know_elsewhere(self.recorder.identities, value)  # the handler is given others
                if any(map(self.recorder.identities.is_copy, mutable_containers(value))):
                    self.copied.add(key)
                if key in self.shared and not isinstance(place, ContentsPlace):
                    state = telling_entry(state, str(place))
                self.recorder.identities.take_apart(mutable_containers(value))
                if _is_listed(state):
                    self.put_in.update((id(each), each) for each in mutable_containers(value) if each is not value)
            self.settled = self.settled and state is self.states[key]
            self.states[key] = state
            leaves += leaves_of(state, value, object_parts)
        for key, value in values.items() if self.put_in else ():
            held = (value,) if _is_listed(self.states[key]) else mutable_containers(value)
            if any(id(each) in self.put_in for each in held):
                self.copied.add(key)
        nodes = [leaf_node(self.recorder, value, slot.type, slot.place) for slot, value in leaves]
        return self.recorder.emit("call_function", keep, (self.name, nodes), {})

    def _widened(self, key: Hashable, value: Any) -> State:
        """The state of a place that covers a value too; one that code reads may become lost to the handler."""
        state, place = self.states[key], self.places[key]
        if isinstance(state, Fixed) and is_lost(state.value):
            return state
        assert self.joiner is not None
        self.joiner.at = place
        try:
            return widen(self.joiner, state, value, str(place))
        except JoinFailure as failure:
            if not isinstance(place, ReadPlace):
                failure.place = None
                raise refuse_join(named(place), failure) from failure
            failure.message = f"'{place}' cannot be handed to the handler: {failure.message}"
            return Fixed(lost(str(place), failure))

    def slots(self) -> list[Slot]:
        """The leaves that the handler takes."""
        return [slot for state in self.states.values() for slot in slots_of(state)]


@contextlib.contextmanager
def unbound_behind(recorder: Recorder, keys: Callable[[], Iterable[Hashable]]) -> Iterator[None]:
    """A block of handlers that keep their exceptions in variables.

    Args:
        recorder: the capture.
        keys: gives the keys of those variables: they have no value for a ``try`` around that handles what leaves these.
    """
    recorder.handlers.unbound_behind.append((keys, len(recorder.handlers.attempts)))
    try:
        yield
    finally:
        recorder.handlers.unbound_behind.pop()


def may_handle(attempts: Sequence[Attempt], raised: Sequence[Raised]) -> bool:
    """Whether one of some ``try`` may end what is raised: a ``finally`` passes it on."""
    handlers = [attempt for attempt in attempts if not attempt.only_cleans_up]
    return any(each.may_be(attempt.kinds) for attempt in handlers for each in raised)


def hand_to(attempts: Sequence[Attempt], raised: Sequence[Raised], seen: bool, pass_by: Callable[[], None]) -> None:
    """Tell each ``try`` that an exception arrives there, from the innermost on.

    Args:
        attempts: the ``try`` statements, the outermost first.
        raised: what the exception may be.
        seen: whether something sees it pass, so that no ``finally`` may stay Python.
        pass_by: is called for each ``finally`` that stays Python.

    Raises:
        StageTry: one of them is not staged, and has to be.
    """
    for around, attempt in reversed([*enumerate(attempts)]):
        passes = attempt.only_cleans_up and not seen and not may_handle(attempts[:around], raised)
        if passes:
            pass_by()
        elif not attempt.staged and any(each.may_be(attempt.kinds) for each in raised):
            raise StageTry(attempt)
        if attempt.staged:
            attempt.raised += tuple(raised)
            raised = [each for each in raised if not each.is_surely(attempt.kinds)]


def sees_any(
    watching: Sequence[int], attempts: Sequence[Attempt], kind: type[BaseException] | None, raised: Sequence[Raised]
) -> bool:
    """Whether a context manager sees an exception that the user raises, or that is handled around it.

    Args:
        watching: of each manager, how many of the attempts lie around it.
        attempts: the ``try`` statements, the outermost first.
        kind: of the exception; None if that is not known.
        raised: what it may be.
    """
    if kind is not None and not issubclass(kind, _NOT_OF_THE_USER):
        return True
    return any(_goes_by(place, attempts, raised) for place in watching)


def _goes_by(place: int, attempts: Sequence[Attempt], raised: Sequence[Raised]) -> bool:
    """Whether an exception may go by a place between the attempts, to a handler."""
    for inner in attempts[place:]:
        raised = [each for each in raised if not each.is_surely(inner.kinds) or inner.only_cleans_up]
    return may_handle(attempts[:place], raised)


_NOT_OF_THE_USER = (ArithmeticError, LookupError, RuntimeError, Warning)  # raised by what the user calls


def _stamp(places: dict[Hashable, Place], values: dict[Hashable, Any]) -> Iterator[Any]:
    """The objects by which it shows that a place has changed."""
    for key, value in values.items():
        if isinstance(places[key], ContentsPlace):  # of which each look gives a copy
            yield len(value)
            yield from value.keys() if isinstance(value, dict) else ()
            yield from value.values() if isinstance(value, dict) else value
        else:
            yield value


def stage(
    recorder: Recorder,
    attempt: Attempt,
    body: Block,
    handler: Handler,
    variables: Sequence[Place],
    dropped: Sequence[Place],
) -> Exit | None:
    """Stage ``try: body()``, with ``handler(error)`` for the exceptions of ``attempt.kinds``; see `staging.branch`.

    Raises:
        JoinFailure: a place changes its kind within the body.
    """
    mark = recorder.symbolic.mark
    when = "before the try", "in it"
    attempt.joiner = Joiner(recorder, mark, allow_unjoined=False, is_older=attempt.is_older, when=when)
    attempt.passing = [place for place in (*variables, *dropped) if isinstance(place, PassingPlace)]
    for place in (*variables, *dropped):
        if isinstance(place, PassingPlace):
            continue
        attempt.places[place.key] = place
        attempt.states[place.key] = Fixed(place.get())
    decided = len(recorder.watch.decisions)
    for _ in range(_MAX_ROUNDS):
        recorder.watch.forget(decided)
        attempt.settled = True
        left = _record_body(recorder, attempt, body)
        if attempt.settled:
            break
    else:
        raise JoinFailure("SG205", "what the body of a try leaves behind does not settle")
    right = _record_handler(recorder, attempt, handler)
    for place in attempt.places.values():
        recorder.relied.add(place)  # what fails first leaves it as it was

    def emit(joiner: Joiner) -> list[Any]:
        give_outputs(recorder, left, right, joiner.pairs)
        operands = unify_captures(recorder, [left.region, right.region])
        graphs = [
            recorder.region.attribute(stem, arm.region.close(arm.outputs))
            for stem, arm in (("body", left), ("handler", right))
        ]
        node = recorder.emit("call_function", try_, (attempt.name, *graphs, attempt.kinds, tuple(operands)), {})
        return bind_outputs(recorder, node, [pair.type for pair in joiner.pairs], [p.place for p in joiner.pairs])

    return close_arms(recorder, emit, left, right, variables, dropped, mark)


def _is_listed(state: State) -> bool:
    """Whether a list of unknown length is in a place, or in what is there."""
    return isinstance(state, Listed) or (isinstance(state, Tree) and any(map(_is_listed, state.children)))


def _begun(attempt: Attempt, body: Block) -> Exit | None:
    if attempt.begins:
        attempt.before_node()
    return body()


def _record_body(recorder: Recorder, attempt: Attempt, body: Block) -> Arm:
    arm = Arm(Region(recorder.region))
    attempt.handed.clear()
    attempt.raised.clear()
    attempt.older = OlderObjects(recorder)
    attempt.older.look()
    attempt.mark = recorder.journal.mark
    recorder.handlers.attempts.append(attempt)
    try:
        begun = functools.partial(_begun, attempt, body)
        continue_arm(recorder, arm, begun, [*attempt.places.values(), *attempt.passing])
    finally:
        recorder.handlers.attempts.pop()
    return arm


def _freeze_held(recorder: Recorder, attempt: Attempt, held: dict[Hashable, Any]) -> None:
    """Let the handler not change a container that is a copy of one with other names."""
    for each in attempt.put_in.values():
        recorder.identities.freeze(each)
    copies = [attempt.places[key] for key, state in attempt.states.items() if isinstance(state, (Tree, Listed))]
    shared = attempt.shared | {place.key for place in with_other_names(recorder, copies)}
    for place in copies:
        know_elsewhere(recorder.identities, held[place.key])
        if place.key in attempt.copied:
            freeze_all(recorder.identities, held[place.key], place.get())
        if place.key in shared and not isinstance(place, ContentsPlace):
            mine = {id(container): container for container in mutable_containers(place.get())}
            for container in mutable_containers(held[place.key]):
                if id(container) not in mine and not recorder.identities.is_told(container):
                    recorder.identities.copy_of(container, mine.values())


def _record_handler(recorder: Recorder, attempt: Attempt, handler: Handler) -> Arm:
    region = Region(recorder.region)
    raised = tuple(each for each in attempt.raised if each.is_expected(attempt.kinds))
    assert attempt.joiner is not None
    error = caught(
        attempt.kinds,
        raised,
        functools.partial(exception_of, recorder),
        functools.partial(clear_traceback, recorder),
        functools.partial(attribute_of, recorder, attempt.joiner.type_of),
    )
    with recorder.resume(region):
        region.define(error, region.placeholder("error", error))

        def placeholder(slot: Slot) -> Any:
            return carried(recorder, region, slot)

        held = {key: build(state, placeholder) for key, state in attempt.states.items()}
    _freeze_held(recorder, attempt, held)
    arm = Arm(region, writes={key: (attempt.places[key], value) for key, value in held.items()})

    def handled() -> Exit | None:
        try:
            raise error  # so that a bare ``raise`` in the handler finds it
        except BaseException as current:
            if current is not error:
                raise
            return handler(error)

    continue_arm(recorder, arm, handled, [*attempt.places.values(), *attempt.passing])
    return arm
