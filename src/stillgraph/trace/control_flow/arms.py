"""Running a block of the user's in a region of its own: what it wrote is collected and undone."""

from __future__ import annotations

import contextlib
import copy
import dis
import re
import sys
from bdb import BdbQuit
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

import torch
from torch import fx
from torch.utils._pytree import is_namedtuple_instance

from stillgraph.core.diagnostics import Side, StillgraphError, refuse
from stillgraph.core.faults import unwinds
from stillgraph.core.files import folder_of_ours, is_ours, is_torch
from stillgraph.core.location import Location
from stillgraph.core.lookup import is_exactly
from stillgraph.core.weak_cache import weakly_cached
from stillgraph.program.context import current_context, restore
from stillgraph.program.exceptions import copied, raise_, raise_made, reraise
from stillgraph.program.operations import as_tensor, repeated, unbound
from stillgraph.program.types import JoinFailure, ListType, NumberType, TableType, TensorType, Type
from stillgraph.trace.code.frames import here
from stillgraph.trace.code.signals import Diverged
from stillgraph.trace.control_flow.heap import OlderObjects, locals_of_users
from stillgraph.trace.control_flow.join import DEAD
from stillgraph.trace.control_flow.unjoined import refuse_join
from stillgraph.trace.fakes.in_eager import in_eager, quote_for_all_sizes
from stillgraph.trace.graph.node_arguments import as_argument
from stillgraph.trace.graph.recorder import Recorder
from stillgraph.trace.graph.region import Region
from stillgraph.trace.heap.exits import Exit
from stillgraph.trace.heap.journal import MISSING, Place, replace_contents
from stillgraph.trace.values.callables import cell_parts
from stillgraph.trace.values.caught import Caught, Raisable, raised_of, slot, take_named
from stillgraph.trace.values.containers import Parts, holds_staged, split
from stillgraph.trace.values.entries import Entry
from stillgraph.trace.values.errors import in_eagers_words
from stillgraph.trace.values.lists import Alike, Items
from stillgraph.trace.values.numbers import StagedNumber, is_number
from stillgraph.trace.values.raised import Raised
from stillgraph.trace.values.text import StagedText


@dataclass
class Arm:
    """A block that ran in its own region, suspended: its writes are undone until it is resumed."""

    region: Region
    exit: Exit | None = None
    diverged: bool = False
    writes: dict[Hashable, tuple[Place, Any]] = field(default_factory=dict)
    outputs: list[Any] = field(default_factory=list)
    older: OlderObjects | None = None

    def value(self, place: Place, before: Any) -> Any:
        """What the arm left in a place."""
        if self.diverged:
            return DEAD
        written = self.writes.get(place.key)
        return before if written is None else written[1]

    def is_older(self, value: Any) -> bool:
        """Whether a mutable object was there before the arm."""
        return self.older is not None and not isinstance(value, (tuple, slice, Exit, Entry)) and self.older.holds(value)

    def view(self, value: Any) -> Parts | None:
        """A container taken apart as the arm left it: what the arm wrote into an older one has been undone."""
        contents = self.writes.get(("contents", id(value)))
        if contents is not None:
            return split(_with_contents(value, contents[1]))
        variable = self.writes.get(("cell", id(value)))
        if variable is not None and not self.is_older(value):
            return cell_parts(variable[1])
        parts = split(value)
        if parts is None or not parts.attributes:
            return parts
        state = dict(zip(parts.context, parts.children))
        for key, (_, written) in self.writes.items():
            if isinstance(key, tuple) and key[:2] == ("attribute", id(value)):
                state[key[2]] = written
        return replace(parts, children=tuple(state[name] for name in parts.context))


def _with_contents(value: Any, contents: Any) -> Any:
    """A container like ``value`` with these contents."""
    if is_exactly(value, (list, dict, set)):
        return contents
    fresh = copy.copy(value)
    replace_contents(fresh, contents)
    return fresh


def run_arm(
    recorder: Recorder, block: Callable[[], Exit | None], variables: Iterable[Place], arm: Arm | None = None
) -> Arm:
    """Run a block in a new child region.

    Args:
        recorder: the capture.
        block: the user's block; returns its exit.
        variables: the locals it may assign: they are written without the journal's knowledge.
        arm: what to run it in, if not in a new region.
    """
    arm = arm or Arm(Region(recorder.region))
    continue_arm(recorder, arm, block, variables)
    return arm


def continue_arm(recorder: Recorder, arm: Arm, block: Callable[[], Exit | None], variables: Iterable[Place]) -> None:
    """Resume an arm where it stopped and run one more block in it."""
    mark = recorder.journal.mark
    context = current_context()
    variables = list(variables)
    mine = {place.key for place in variables}
    if arm.older is None:
        arm.older = OlderObjects(recorder)
    else:
        arm.older.look()  # what was made since the arm began is not older than it
    held = recorder.memory.as_now(locals_of_users(recorder))
    try:
        for place in variables:
            recorder.journal.note(place)
        for place, value in arm.writes.values():
            recorder.journal.write(place, value)
        with recorder.resume(arm.region), recorder.symbolic.learned_inside(), diverging(recorder, arm):
            arm.exit = block()
        if current_context() != context:
            hint = "Switch it for a block inside: with torch.no_grad(): ..., with torch.autocast(...): ..."
            raise refuse("SG305", "a branch or loop body leaves a torch mode switched", location=here(), hint=hint)
        recorder.memory.require_unchanged(held, here())
    except BaseException as error:
        if not unwinds(error):  # as a refusal does, for which the cleaning up of the user's code is not carried out
            recorder.memory.require_unchanged(held, here())
        raise
    finally:
        restore(context)
        _suspend(recorder, arm, mark, mine)


def _suspend(recorder: Recorder, arm: Arm, mark: int, variables: set[Hashable]) -> None:
    """Undo what an arm wrote since a mark, and keep it for when the arm is resumed or joined.

    An object that the arm made keeps what was written to it: only the arm's own results can lead there.
    """
    assert arm.older is not None
    recorder.hooked.require_unchanged()
    mine = variables | arm.writes.keys()
    arm.writes = {}
    for key, (place, value) in recorder.journal.rewind(mark).items():
        if key in mine or arm.older.has(place):
            arm.writes[key] = place, value
        else:
            place.set(value)
    recorder.hooked.forget_undone()


@contextlib.contextmanager
def diverging(recorder: Recorder, arm: Arm) -> Iterator[None]:
    """Turn an exception that the user's code raises into a raise of the program."""
    try:
        yield
    except Diverged:
        arm.diverged = True
    except BaseException as error:
        if isinstance(error, Caught):
            _emit_reraise(recorder, error)
            arm.diverged = True
            return
        if isinstance(error, (StillgraphError, BdbQuit)) or unwinds(error):
            raise
        if isinstance(error, JoinFailure):
            raise refuse_join(error.place or "what this leaves", error) from error
        failed = recorder.failed
        if failed is not None and (failed.is_eagers(error) or quote_for_all_sizes(error, failed)):
            Raisable(error.__traceback__).restore(error)  # without what the capture was at when the operation failed
            emit_raise(recorder, error)
        elif _raised_by_rewritten(recorder, error) or raised_by_user(error):
            emit_raise(recorder, error)
        else:
            recorder.path_fails(_failure(recorder, error))
        arm.diverged = True


def _emit_reraise(recorder: Recorder, error: Any) -> None:
    """Record that an exception goes on that the program has caught.

    Raises:
        StageTry: a ``try`` around has to be staged first.
        CaptureError: what stands around it would have to see it.
    """
    recorder.before_raise(error.stands_for, certain=True, raised=raised_of(error))
    left = recorder.left_behind()
    keywords: dict[str, Any] = {} if left is None else {"left": left}
    where = recorder.locator.raised_at(error) if take_named(error) else None
    cause, suppress = slot(error, "__cause__"), slot(error, "__suppress_context__")
    Raisable().restore(error)  # the other arm raises it as well
    if cause is not None:
        keywords["cause"], keywords["outer"] = _cause(recorder, cause)
    elif suppress:
        keywords["suppress"] = True
    if where is not None:
        keywords["named"] = True
    node = recorder.emit("call_function", reraise, (error,), keywords)
    if where is not None:
        node.meta["location"] = where


def _cause(recorder: Recorder, cause: BaseException) -> tuple[BaseException, bool]:
    """What a caught exception is raised from, and whether that was there before the call.

    Raises:
        CaptureError: it holds what only the run knows.
    """
    if isinstance(cause, Caught) or recorder.was_there(cause):
        return cause, True
    if _holds_staged(cause):
        raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
    _forget_where(cause)
    return cause, False


def _failure(recorder: Recorder, error: BaseException) -> BaseException:
    """The refusal of a path on which torch raises an error."""
    text = re.sub(r"\bFakeTensor\b", "Tensor", str(in_eager(error, recorder.failed)))
    message = f"on a path that only the run takes, the code raises {type(error).__name__}: {text}"
    hint = _GUARD_NONE if "NoneType" in text else None
    where, beginning = recorder.locator.raised_at(error), here()
    known = where is None or beginning is None or (where.file, where.line) == (beginning.file, beginning.line)
    sides = () if known else (Side("the path begins here", beginning),)
    refusal = refuse("SG209", message, location=where, hint=hint, sides=sides)
    refusal.__cause__ = error.with_traceback(None)
    return refusal


_GUARD_NONE = (
    "All paths are captured. If this one is not for None, let Python decide that: put 'value is not None and' before "
    "the tensor's condition."
)


def emit_raise(recorder: Recorder, error: BaseException) -> None:
    """Record that the program raises ``error`` here.

    Raises:
        StageTry: a ``try`` around has to be staged first.
        CaptureError: the exception cannot be made in the run, or what stands around it would have to see it.
    """
    in_eagers_words(error)
    where = recorder.locator.raised_at(error)
    context = _being_handled(recorder, error)
    keywords: dict[str, Any] = {} if context is None else {"context": context}
    if recorder.was_there(error):
        _emit_raise_itself(recorder, error, where, keywords)
        return
    known = None if _holds_staged(error) else copied(error)
    recorder.before_raise(type(error), certain=True, raised=(Raised(type(error), True, known, error),))
    left = recorder.left_behind()
    if left is not None:
        keywords["left"] = left
    cause = error.__cause__
    if isinstance(cause, Caught):
        keywords["cause"], error.__cause__ = cause, None
    elif cause is not None and _holds_staged(cause):
        raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
    if not _holds_staged(error):
        _forget_where(error)
        recorder.emit("call_function", raise_, (error,), keywords).meta["location"] = where
        return
    held = _held(error)
    plain = [each for each in _parts(held) if not isinstance(each, (StagedText, StagedNumber, torch.Tensor))]
    by_hand = bool(vars(error)) or isinstance(type(error).__init__, FunctionType)
    if holds_staged(plain) or isinstance(error, _WITH_FIELDS) or (by_hand and isinstance(error, SystemExit)):
        raise refuse("SG302", f"a {type(error).__name__} that holds staged values is raised", location=here())
    state = dict(vars(error)) if by_hand else None
    if error.__cause__ is not None:
        _forget_where(error.__cause__)
        keywords["cause"] = error.__cause__
    elif error.__suppress_context__ and "cause" not in keywords:
        keywords["suppress"] = True
    recorder.emit("call_function", raise_made, (type(error), error.args, state), keywords).meta["location"] = where


def _being_handled(recorder: Recorder, error: BaseException) -> BaseException | None:
    """What a ``raise`` of the user's finds being handled by code that stayed Python's: a copy, as the capture knows it.

    What the program handles itself, and what was being handled before the call, the run finds by itself. So is what
    holds staged values left out, which could only be made in the run.

    Args:
        recorder: the capture.
        error: what is raised, with its context if it has been raised already.
    """
    return _as_handled(recorder, sys.exc_info()[1] if error.__traceback__ is None else error.__context__)


def _as_handled(recorder: Recorder, context: BaseException | None) -> BaseException | None:
    ours = str(type(context).__module__).startswith("stillgraph.")  # see `signals`; also what stands for a caught one
    if context is None or ours or id(context) in recorder.handled_outside or _holds_staged(context):
        return None
    if any(context is each for each in recorder.handled_before):
        message = f"an exception is raised where Python is handling {type(context).__name__}, another in each call"
        raise refuse("SG208", message, location=here())
    handled = copied(context).with_traceback(None)
    handled.__cause__, handled.__suppress_context__ = context.__cause__, context.__suppress_context__
    handled.__context__ = _as_handled(recorder, context.__context__)
    return handled


def _emit_raise_itself(
    recorder: Recorder, error: BaseException, where: Location | None, keywords: dict[str, Any]
) -> None:
    """Record that the program raises an exception from before the call, which the capture leaves as it was."""
    before = recorder.raising.pop(id(error), Raisable())
    cause, suppress = error.__cause__, error.__suppress_context__
    before.restore(error)
    recorder.before_raise(type(error), certain=True, raised=(Raised(type(error), True),))
    left = recorder.left_behind()
    keywords["itself"] = True
    if left is not None:
        keywords["left"] = left
    if cause is not None and cause is not before.cause:
        if not isinstance(cause, Caught) and _holds_staged(cause):
            raise refuse("SG302", f"a {type(cause).__name__} that holds staged values is a cause", location=here())
        keywords["cause"] = cause
    elif suppress and cause is None:
        keywords["suppress"] = True
    recorder.emit("call_function", raise_, (error,), keywords).meta["location"] = where


_WITH_FIELDS = (OSError, UnicodeError, SyntaxError, ImportError, NameError, AttributeError)  # that no argument shows


def _holds_staged(error: BaseException) -> bool:
    """Whether an exception, or one that caused it, has something in it that only the run knows."""
    if error.__cause__ is not None and not isinstance(error.__cause__, Caught) and _holds_staged(error.__cause__):
        return True
    held = _held(error)
    return any(isinstance(each, (StagedText, StagedNumber, torch.Tensor)) for each in held) or holds_staged(held)


def _held(error: BaseException) -> tuple[Any, ...]:
    """What an exception has in it."""
    held = (*error.args, *vars(error).values())
    if not isinstance(error, SystemExit):
        return held
    several = len(error.args) > 1 and isinstance(error.code, tuple)  # then they are the status together
    return held if several else (*held, error.code)  # which is in no ``__dict__``


def _parts(held: tuple[Any, ...]) -> Iterator[Any]:
    """What some tuples have in them, tuples in them taken apart."""
    for each in held:
        yield from _parts(each) if type(each) is tuple or is_namedtuple_instance(each) else (each,)


def _forget_where(error: BaseException | None) -> None:
    """Let an exception, and its cause, not hold the frames of the capture."""
    while error is not None:
        error.__traceback__ = error.__context__ = None
        error = slot(error, "__cause__")


def frame_in_try(recorder: Recorder) -> FrameType | None:
    """A frame of rewritten code that is in the body of a ``try`` which stayed a Python statement."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if recorder.is_rewritten(frame.f_code) and frame.f_lasti in _protected(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def collects(handler: Sequence[str]) -> bool:
    """Whether instructions, by their names, take what the block of an ``except*`` raises for a group.

    They unset the exception's name first, where it has one.
    """
    after_unset = 3 if handler[:1] == ["LOAD_CONST"] else 0
    return [*handler[after_unset : after_unset + 1]] == ["LIST_APPEND"]


def in_protected_block(recorder: Recorder, code: CodeType) -> bool:
    """Whether the innermost call of a function, given its original code, is inside a ``try`` or ``with`` of its own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if recorder.is_rewritten(frame.f_code) and frame.f_code.co_filename == code.co_filename:
            entries: list[Any] = dis.Bytecode(frame.f_code).exception_entries  # type: ignore[attr-defined]  # not in the stubs
            if any(entry.start <= frame.f_lasti < entry.end for entry in entries):
                return True
            if frame.f_code.co_qualname == code.co_qualname:
                return False
        frame = frame.f_back
    return False


@weakly_cached
def _protected(code: CodeType) -> frozenset[int]:
    """The offsets of instructions in the body of a ``try``, not merely a ``with``, or in a handler of ``except*``."""
    instructions = {i.offset: i for i in dis.get_instructions(code)}
    entries: list[Any] = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]  # not in the stubs

    def is_try(entry: Any) -> bool:
        handler = [instructions[o].opname for o in sorted(instructions) if entry.target <= o <= entry.target + 8]
        return collects(handler) or (handler[:1] == ["PUSH_EXC_INFO"] and "WITH_EXCEPT_START" not in handler)

    def is_in_try(entry: Any) -> bool:
        # The table gives each instruction its innermost handler alone: what is around that one is the handler's own.
        passed: set[int] = set()
        while entry is not None and entry.target not in passed:
            if is_try(entry):
                return True
            passed.add(entry.target)
            entry = next((each for each in entries if each.start <= entry.target < each.end), None)
        return False

    return frozenset(o for entry in entries if is_in_try(entry) for o in range(entry.start, entry.end + 2))


_OF_NO_DIMENSION = ("iteration over a 0-d tensor", "len() of a 0-d tensor")  # what torch says, of the run's as well
_PYTHONS_OWN = (IndexError, KeyError, ZeroDivisionError, NameError)  # of values the capture knows


_HERE = folder_of_ours("trace")  # what goes wrong here by itself is a fault of ours


def _raised_by_rewritten(recorder: Recorder, error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` of rewritten code, be that the user's or torch's."""
    trace = _innermost(error)
    return trace is not None and recorder.is_rewritten(trace.tb_frame.f_code) and _is_raise(trace)


def raised_by_user(error: BaseException) -> bool:
    """Whether an exception comes from a ``raise`` or ``assert`` of the user's, or is one that eager would raise too."""
    trace = _innermost(error)
    if isinstance(error, SystemExit) or (isinstance(error, TypeError) and str(error) in _OF_NO_DIMENSION):
        return True
    if isinstance(error, _PYTHONS_OWN):
        return trace is None or not trace.tb_frame.f_code.co_filename.startswith(_HERE) or _is_raise(trace)
    if trace is None:
        return False
    code = trace.tb_frame.f_code
    if is_torch(code.co_filename):
        return False
    if is_ours(code.co_filename):
        return isinstance(error, AssertionError)
    return _is_raise(trace)


def _innermost(error: BaseException) -> TracebackType | None:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def _is_raise(trace: TracebackType) -> bool:
    return dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]] in ("RAISE_VARARGS", "RERAISE")


def leaf_node(recorder: Recorder, value: Any, type_: Type, name: str) -> Any:
    """A leaf as an output of the open region, converted to the joined type."""
    if value is DEAD:
        return None
    if isinstance(type_, TableType):
        return as_argument(recorder, recorder.entry_of(value))
    if value is None:
        return None
    if value is MISSING:
        return recorder.emit("call_function", unbound, (name,), {})
    if isinstance(type_, ListType) and isinstance(value, Items):
        cells = (
            leaf_node(recorder, item, type_ if index in value.spread else type_.element, name)
            for index, item in enumerate(value.items)
        )
        node = as_argument(recorder, Items(tuple(cells), value.spread))
        node.meta.setdefault("val", type_)
        return node
    if isinstance(type_, ListType) and isinstance(value, Alike):
        count = recorder.fresh_result(int, recorder.emit("call_function", len, (value.column,), {}))
        one = leaf_node(recorder, value.value, type_.element, name)
        single = as_argument(recorder, Items((one,), ()))
        node = recorder.emit("call_function", repeated, (single, count), {})
        single.meta["val"] = node.meta["val"] = type_
        return node
    if isinstance(type_, TensorType) and is_number(value):
        node = recorder.emit("call_function", as_tensor, (value, type_.dtype, type_.device), {})
        node.meta["val"] = recorder.symbolic.empty((), type_.dtype, type_.device, False)
        return node
    if isinstance(type_, NumberType) and type_.kind is float and isinstance(value, bool):
        return value
    return as_argument(recorder, value)


def unify_captures(recorder: Recorder, regions: list[Region]) -> list[fx.Node]:
    """Give all regions the same closed-over placeholders in the same order; return the outer nodes for them."""
    values: dict[int, Any] = {}
    for region in regions:
        for value, _ in region.captures:
            values.setdefault(id(value), value)
    for region in regions:
        mine = {id(value): node for value, node in region.captures}
        ordered = []
        for key, value in values.items():
            node = mine.get(key)
            if node is None:
                outer = recorder.region.node_of(value)
                node = region.placeholder(outer.name, outer.meta["val"])
            ordered.append((value, node))
        region.captures = ordered
        reorder(region, [node for _, node in ordered])
    return [recorder.region.node_of(value) for value in values.values()]


def reorder(region: Region, nodes: list[fx.Node]) -> None:
    """Put these placeholders behind the others, in this order."""
    others = [n for n in region.graph.nodes if n.op == "placeholder" and n not in set(nodes)]
    last = others[-1] if others else None
    for node in nodes:
        if last is None:
            first = next(iter(region.graph.nodes))
            if first is not node:
                first.prepend(node)
        else:
            last.append(node)
        last = node
