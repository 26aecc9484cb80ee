"""Segments: a program of a part of a call, which ends where Python itself has to do something.

A capture that cannot go on at an instruction ends there: the frames are handed out as they are, Python carries out the
instruction, and another capture goes on behind it. Where that is, one learns: `Breaks` is kept from capture to capture.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CellType, CodeType
from typing import Any

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.bytecode.machine.parcels import open_rest, read
from stillgraph.bytecode.machine.table import MOVES, taken
from stillgraph.bytecode.segments import instructions
from stillgraph.bytecode.segments.breaks import Breaks, Ended, EndedAnyway, Learned, Region, Unreachable, place_of
from stillgraph.bytecode.segments.called import SHOWING_VARIABLES, called, code_called
from stillgraph.bytecode.segments.deciding import Decided, decided
from stillgraph.bytecode.segments.depth_of_reading import goes_deep
from stillgraph.bytecode.segments.layouts import Layout
from stillgraph.bytecode.segments.leaving import (
    kind_of,
)
from stillgraph.bytecode.segments.lifetimes import Watching
from stillgraph.bytecode.segments.needs_python import CALLS, is_let_go, let_go, why_python
from stillgraph.bytecode.segments.opening import open_moved, open_operands
from stillgraph.bytecode.segments.origins import note_made, note_met
from stillgraph.bytecode.segments.showing import (
    NAMING,
    SHOWING,
    look,
    look_into,
    name_read,
    note_name,
    note_operands,
    only_moved,
)
from stillgraph.bytecode.segments.unseen import UNSEEN, refuse_users
from stillgraph.bytecode.segments.whys import Why, because, refused, why_of
from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.parcel import Parcel
from stillgraph.core.rewritten import Holder
from stillgraph.trace.capture.session import Session, capturing, session
from stillgraph.trace.values.callables import contents


@dataclass(eq=False)
class Segment(Holder):
    """An attempt at a segment.

    Attributes:
        breaks: what is known.
        is_residual: asked of a function: whether Python is to call it, for it does something outside the program.
        number: gives each layout a number.
        closed: the names of parcels that are not opened: what is in them is another in each call.
        unread: the names of globals, attributes and free variables that programs do not read, for the same reason.
        root: the code whose result is that of the whole segment; None where something comes between.
        frames: those that are being run, the outermost first.
        regions: what they are in, the outermost first.
        calling: the frame whose instruction calls, and the code that it calls, whose result is its own.
        callee: the code that the last instruction calls, if its frame has not been entered.
        doubt: whether the last instruction goes deeper into objects than what is noted of it, unless it enters a frame.
        given: the containers that the last instruction got and that nothing has looked into before.
        made: by the id of an object that an instruction has given first, which one; one of the user's, if there is.
        foreign: the ids of those among them that may have been there before.
        generators: the frames of generators that were made, as long as there are these.
        decisions: the statements behind which only the run knows whether some variables have values.
    """

    breaks: Breaks
    is_residual: Callable[[Any], bool]
    number: Callable[[Layout], int]
    root: CodeType | None = None
    closed: frozenset[str] = frozenset()
    unread: frozenset[str] = frozenset()
    frames: list[Frame] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    calling: tuple[Frame, CodeType] | None = None
    callee: CodeType | None = None
    given: list[Any] = field(default_factory=list)
    doubt: bool = False
    made: dict[int, tuple[Any, Frame, int]] = field(default_factory=dict)
    foreign: set[int] = field(default_factory=set)
    generators: weakref.WeakSet[Frame] = field(default_factory=weakref.WeakSet)
    decisions: list[Decided] = field(default_factory=list)
    passed: list[tuple[CodeType, int]] = field(default_factory=list)
    culprits: dict[int, tuple[BaseException, Frame, int]] = field(default_factory=dict)
    known: int = 0  # how much was, when the attempt began

    # ---- frames
    def begin(self, capture: Session) -> None:
        """Forget an attempt before: a capture may begin anew by itself."""
        capture.executed.calling = UNSEEN
        capture.executed.beginning = functools.partial(refuse_users, capture)
        capture.identities.place, capture.identities.refusing = self._here, self.copied_at
        self.forget()
        self.known = self.breaks.count

    def forget(self) -> None:
        """Let go of the user's objects: generators, say, end when nobody has them any more."""
        self.calling, self.callee, self.given, self.doubt = None, None, [], False
        for each in (self.frames, self.regions, self.made, self.foreign, self.generators, self.decisions, self.passed):
            each.clear()
        self.culprits.clear()

    def enter(self, frame: Frame) -> None:
        """A frame begins to run."""
        calling, self.calling = self.calling, None
        capture = capturing()
        if not self.frames:
            self.begin(capture)
            open_rest(frame)
            frame.transparent = frame.code is self.root and frame.code not in capture.knowledge.recursive
        else:
            is_called = calling is not None and calling[0] is self.frames[-1] and calling[1] is frame.code
            if self.callee is frame.code:  # the last instruction has done no more than to call it
                self.doubt = False
                if not frame.code.co_flags & instructions.TAKING_ANY:
                    only_moved(self.given)  # to variables of the frame
            frame.transparent = is_called and frame.code not in capture.knowledge.recursive
        self.callee = None
        self.frames.append(frame)
        capture.reads.followed.setdefault(frame.code, set())

    def leave(self, frame: Frame) -> None:
        """A frame has ended."""
        self.frames.remove(frame)

    def leave_all_above(self, frame: Frame) -> None:
        """What a frame has called has ended."""
        del self.frames[self.frames.index(frame) + 1 :]

    # ---- generators
    def begins(self, frame: Frame) -> None:
        """A generator is made: by the instruction that the innermost frame is at."""
        if self.frames:
            frame.maker = self.frames[-1].code, self.frames[-1].next
            self.generators.add(frame)

    def closes(self, frame: Frame) -> None:
        """To be called before a generator is closed. When Python does that is hard to tell: nobody has it any more.

        Raises:
            Learned: it has something to clean up. In the next attempt Python makes it, advances and closes it.
        """
        if self.frames and frame.maker is not None and frame.waits_in_block:
            code, index = frame.maker
            frame.maker = None  # what it cleans up now is undone with all the rest
            if index in self.breaks.residual.get(code, ()):
                raise Unreachable(why_of("unmade"), place_of(code, index))
            self.breaks.leave(code, index, why_of("closing"))
            raise Learned

    def require_closed(self) -> None:
        """To be called where a segment ends: no generator is to be left that Python would have closed.

        Raises:
            Learned: as `closes`.
        """
        for each in tuple(self.generators):
            self.closes(each)

    @property
    def can_end(self) -> bool:
        """Whether it may end here."""
        return not self.regions and all(frame.transparent for frame in self.frames)

    # ---- instructions
    def before(self, frame: Frame, index: int) -> None:
        """To be called before an instruction.

        Raises:
            Ended: it is Python's.
            Learned: it is, and what is around it has to be run otherwise.
        """
        self.calling = None  # what was called before may have made a generator, which something else runs
        capture = session()
        if capture is not None:
            capture.finalised.require_none()
        self._settle_doubt()
        each = frame.prepared.decoded.instructions[index]
        reasons = self.breaks.residual.get(frame.code)
        if reasons is not None and index in reasons:
            self.end(frame, index, reasons[index])
        name = name_read(frame, each)
        if name is not None:
            if name in self.unread and each.name in NAMING:
                self.end(frame, index, why_of("value", name))
            note_name(frame.code, name)
        if self.regions:
            open_moved(self, frame, index, each)
        gone = next(let_go(self, frame, each), None)
        if gone is not None:
            self.end(frame, index, why_of("gone", kind_of(gone)))
        if each.name in MOVES:
            return
        count = taken(each)
        if not self.regions and frame in self.frames and self.can_end:
            self.passed.append((frame.code, index))
        why = why_python(self, frame, each)
        if why is not None:
            self.end(frame, index, why)
        operands = frame.stack[frame.depth - count : frame.depth] if count else []
        if each.name in instructions.ADDING:
            del operands[1 : -instructions.ADDING[each.name]]  # the iterator of the comprehension's loop, say
        if each.name in SHOWING:
            look(each, [cell.cell_contents for cell in operands])
        if each.name == "SET_FUNCTION_ATTRIBUTE" and type(frame.peek()) is Parcel:
            self.end(frame, index, why_of("completes"))
        values = open_operands(self, frame, index, operands)
        self.given, self.callee = note_operands(each, values), None
        self.doubt = goes_deep(each, values)
        if each.name in CALLS:
            self._note_called(frame, called(frame, each))
        if each.name == "DELETE_DEREF":
            self.end(frame, index, why_of("deletes"))
        if each.name in instructions.OF_CELLS:
            cell = frame.slots[each.argument].cell_contents
            if type(cell) is Parcel and cell.name in self.closed:
                self.end(frame, index, why_of("variable", frame.name(each.argument)))
            frame.slots[each.argument].cell_contents = read(cell)

    def _note_called(self, frame: Frame, function: Any) -> None:
        """Note which code an instruction calls, and what a function looks at that is shown the variables."""
        if any(function is shown for shown in SHOWING_VARIABLES):
            for value in map(contents, frame.slots):
                look_into(contents(value) if isinstance(value, CellType) else value)
        code = code_called(function)
        if code is not None:
            self.calling, self.callee = (frame, code), code

    def before_cut(self, frame: Frame, index: int, depth: int) -> None:
        """To be called before an instruction's exception goes to a handler, which drops what is above it on the stack.

        Raises:
            Learned: something is done when that is gone. In the next attempt, Python carries out the instruction.
        """
        for value in map(contents, frame.stack[depth : frame.depth]):
            if is_let_go(self, value):
                why = why_of("gone", kind_of(value.value))
                self.breaks.leave(frame.code, index, why)
                raise Learned

    def _settle_doubt(self) -> None:
        """Note that the last instruction went deeper into objects than what is noted of it."""
        capture = session()
        if self.doubt and capture is not None:
            capture.reads.deep = True
        self.doubt = False

    def after(self, frame: Frame, index: int) -> None:
        """To be called behind an instruction that went well, which may have made what cannot leave the segment.

        Raises:
            BaseException: what was refused in code that it has called, which has handled that.
            Learned: in the next attempt, Python carries out the instruction.
        """
        self.require_none_refused()
        self._settle_doubt()
        each = frame.prepared.decoded.instructions[index]
        note_met(frame, each)
        note_made(self, frame, index, each)

    def require_none_refused(self) -> None:
        """To be called behind an instruction that may have called anything: as `ExecutedCode.require_none_refused`."""
        capture = session()
        if capture is not None:
            capture.executed.require_none_refused()

    def has_made(self, value: Any) -> bool:
        """Whether an instruction of the segment has given an object."""
        return id(value) in self.made

    def end(self, frame: Frame, index: int, why: Why) -> None:
        """End the segment at an instruction, or find out how the next attempt can.

        Raises:
            Ended: always, unless
            Learned: this attempt cannot end here.
            EndedAnyway: or nowhere.
        """
        capture = session()
        if capture is not None and capture.cannot_end:
            raise EndedAnyway
        raising = frame
        frame, index = self.seen_by_python(frame, index, why)
        below = self.frames[: self.frames.index(frame) + 1] if frame in self.frames else []
        regions = [each for each in self.regions if each.frame in below]
        if self.regions or frame is not raising or frame is not self.frames[-1]:
            self.breaks.leave(frame.code, index, why)
            for region in regions:
                self.breaks.open(region, why)
            raise Learned
        self.breaks.leave(frame.code, index, why)
        raise Ended

    def seen_by_python(self, frame: Frame, index: int, why: Why) -> tuple[Frame, int]:
        """Where Python sees an instruction: in a frame that something else than a frame has called, at that call.

        A generator's frame is none of those that are handed out: Python sees what takes its next value.
        """
        for position, each in enumerate(self.frames):
            if not each.transparent:
                if position == 0:
                    raise Unreachable(why, place_of(frame.code, index))
                return self.frames[position - 1], self.frames[position - 1].next
            if each is frame:
                return frame, index
        if self.frames:
            return self.frames[-1], self.frames[-1].next  # which asks a generator for its next value
        for value, maker, at in self.made.values():  # one that nobody has asked to the end is being closed
            if isinstance(value, (Iterator, Watching)) and at not in self.breaks.residual.get(maker.code, ()):
                return maker, at
        if self.breaks.count > self.known:
            raise Learned  # while an attempt is left that had to begin anew
        raise Unreachable(why, place_of(frame.code, index))

    def staged(self, region: Region) -> None:
        """To be called behind a branch, loop or ``try`` that the program has as a whole."""
        found = None if self.regions else decided(region, self.frames)
        if found is not None:
            self.decisions.append(found)

    def before_fork(self, frame: Frame, *ways: int) -> None:
        """To be called before a branch: one that leaves a loop that is run by its jumps would never come to an end.

        Raises:
            Learned: the jump is Python's in the next attempt.
        """
        for header in self.breaks.plain[frame.code]:
            nodes = frame.prepared.flow.loop(header).nodes
            if frame.next in nodes and not nodes.issuperset(ways):
                why = why_of("loop")
                self.breaks.leave(frame.code, frame.next, why)
                for region in self.regions:
                    self.breaks.open(region, why)
                raise Learned

    def _here(self) -> tuple[list[Region], CodeType, int] | None:
        """What is being staged, and the instruction that is being run."""
        return ([*self.regions], self.frames[-1].code, self.frames[-1].next) if self.frames else None

    def copied_at(self, here: tuple[list[Region], CodeType, int] | None) -> None:
        """To be called before a program is refused that would hand out a copy instead of one object with two names.

        Args:
            here: where the copy was made, as `_here` told then.

        Raises:
            Learned: the branches and loops around are run by their jumps in the next attempt, or the instruction is
                Python's.
        """
        if here is None:
            return
        regions, code, index = here
        before = self.breaks.count
        if regions:
            for region in regions:
                self.breaks.open(region, why_of("copies"))
        else:
            self.breaks.leave(code, index, why_of("copies"))
        if self.breaks.count > before:
            raise Learned

    def cut(self, error: CaptureError) -> bool:
        """To be called where a segment has been run through, but cannot become a program: what it gives or writes
        cannot leave it. It will end half way; whether there is such a place.

        Args:
            error: what refuses the program.
        """
        places = [each for each in self.passed if each[1] not in self.breaks.residual.get(each[0], ())]
        if not places:
            return False
        code, index = places[len(places) // 2]
        self.breaks.leave(code, index, because("cut", refused(error)))
        return True
