"""The calls of the user's functions that the frames of a capture stand for.

A rewritten function runs in many frames: its own, and one for each of its blocks, which operators call. The body of a
loop over a generator that is turned inside out runs below the generator's frame, and a comprehension has no frame at
all. Here they are put together to what Python has when it runs the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from types import CodeType, FrameType

from stillgraph.core.files import is_ours, is_written_by_us
from stillgraph.core.rewritten import is_block

Step = tuple[FrameType, int]
"""A frame, and the offset of the instruction that it is at."""


@dataclass(frozen=True)
class Call:
    """A call of a user's function.

    Attributes:
        inside: the frame that runs. A function has one for each block that is being run.
        outside: the function's own frame.
        function: its name: that of the frame, or what Python calls a comprehension.
    """

    inside: Step
    outside: FrameType
    function: str

    @property
    def file(self) -> str:
        """Where the user wrote it."""
        return self.inside[0].f_code.co_filename


def calls(steps: Iterable[Step], counts: Callable[[str], bool], twice: Set[int] = frozenset()) -> list[Call]:
    """The calls of functions in files that count, up to where the capture begins, the innermost first.

    Outside of a capture only the innermost one is told: there is no end to the others.

    Args:
        steps: the frames, the innermost first.
        counts: asked of a file.
        twice: see `caught_in`.
    """
    calls = _Calls(twice)
    suspended = 0  # generators that stand at a ``yield``, which here call the body of their loop
    for step in steps:
        code = step[0].f_code
        name = code.co_qualname
        if calls.outside is None and name not in _TELLING and not (suspended or counts(code.co_filename)):
            continue  # by far the most of them: this runs for each operation that is recorded
        if name == _YIELDING:
            suspended += 1
        elif suspended and name == _GENERATING:
            suspended -= 1
        elif name == _RESUMING:
            calls.resume(step[0])
        elif not suspended:
            calls.reach(step[0])
            if name in _BEGINNINGS:
                return calls.found
            if counts(code.co_filename):
                calls.enter(step)
            else:
                calls.comprehend(step[0])
    calls.end()
    return calls.found[:1]


class _Calls:
    """Puts the frames of a function and of its blocks together, from the innermost frame on."""

    def __init__(self, twice: Set[int]) -> None:
        self.found: list[Call] = []
        self._inside: Step | None = None
        self.outside: FrameType | None = None  # the function's own, unless what calls it runs a block, or is unknown
        self._frame: FrameType | None = None  # the last of the user's
        self._comprehensions: list[str] = []  # of which no part of the user's is being run, the innermost first
        self._twice = twice
        self._bodies: dict[int, Step | None] = {}  # by the frame that has caught what they raised
        self._raised_again: list[Step] = []  # of the function whose own frame is to come, the innermost first
        self._is_inner = False  # whether a comprehension was found, in whatever ran last

    def reach(self, frame: FrameType) -> None:
        """Go on to the frame that has called the last one."""
        if self.outside is not None and not _runs_a_part(frame.f_code, self.outside.f_code):
            self.end()
        self.outside = None
        if id(frame) in self._twice and frame.f_code.co_qualname == _CATCHING:
            self._catch(id(frame))

    def _catch(self, frame: int) -> None:
        """A frame has caught what its body raised, and the handler has raised it once more: ``raise`` adds no line."""
        if frame not in self._bodies:
            self._bodies[frame], self._inside = self._inside, None
            return
        body = self._bodies.pop(frame)
        if self._inside is None:
            self._inside = body
        elif body is not None:
            self._raised_again.append(body)

    def enter(self, step: Step) -> None:
        """The frame is the user's. That of a block is there twice if a ``try`` in it has caught what it raised."""
        frame = id(step[0])
        if frame in self._twice:
            if frame in self._bodies and self._inside is not None:
                self._raised_again.append(self._inside)
                self._inside = None
            self._bodies[frame] = None
        self._inside = self._inside or step
        self.outside = self._frame = step[0]

    def end(self) -> None:
        """The frame before was the function's own, if it was the user's."""
        if self.outside is None or self._inside is None:
            return
        name = self.outside.f_code.co_name
        self.found += [Call(body, self.outside, name) for body in self._raised_again]
        self.found += [Call(self._inside, self.outside, each) for each in self._comprehensions]
        self.found.append(Call(self._inside, self.outside, name))
        self._inside, self._raised_again, self._comprehensions, self._is_inner = None, [], [], False

    def resume(self, frame: FrameType) -> None:
        """The frame goes on in a function that another one has called, whose own frame is gone."""
        if frame.f_locals["position"]:
            self.outside = self._frame
            self.end()
        self.outside = None

    def comprehend(self, frame: FrameType) -> None:
        """The frame may be what makes a comprehension, of which Python makes a function: one for all its ``for``s."""
        name = _comprehension(frame)
        if name is None:
            return
        if self._is_inner and frame.f_locals.get("flat"):
            self._inside = None
            return
        self._is_inner = True
        if self._inside is None or self._frame is None:
            self._comprehensions.append(name)
            return
        self.found.append(Call(self._inside, self._frame, name))
        self._inside = None


def caught_in(steps: Iterable[Step]) -> frozenset[int]:
    """The frames that stand twice in a traceback: they have called what raised, and then the handler."""
    frames = [id(frame) for frame, _ in steps]
    return frozenset(each for each in frames if frames.count(each) > 1)


_CATCHING = "attempt"  # the operator


_YIELDING = "Produced.run.<locals>.watched"  # what a generator calls that is turned inside out, and what calls it
_GENERATING = "Produced.run"


_RESUMING = "_run_through"  # what goes on in a function in the midst of it

_GENERATORS = ("generator_of.<locals>.run", "generator_of.<locals>.draw.<locals>.<genexpr>")
_COMPREHENDED = "_comprehended"


def _comprehension(frame: FrameType) -> str | None:
    """What Python calls the function of a comprehension that one of our frames makes, where it makes one."""
    code = frame.f_code
    is_generator = code.co_qualname in _GENERATORS
    if not is_generator and (code.co_qualname != _COMPREHENDED or _ARE_INLINE):
        return None
    variables = frame.f_locals
    if is_ours(variables["element"].__code__.co_filename):  # an operator is at it, such as ``map``
        return None
    if is_generator:
        return "<genexpr>"
    return next(name for kind, name in _CONTAINERS if type(variables["result"]) is kind)


_FUNCTION = (lambda numbers: [-number for number in numbers]).__code__
_ARE_INLINE = not any(isinstance(each, CodeType) for each in _FUNCTION.co_consts)  # as from Python 3.12 on
_CONTAINERS = ((list, "<listcomp>"), (set, "<setcomp>"), (dict, "<dictcomp>"))


_BEGINNINGS = ("CaptureAttempt.run", "_call_traced")  # of a capture, of a trace
_TELLING = frozenset({_CATCHING, _RESUMING, _YIELDING, _GENERATING, _COMPREHENDED, *_GENERATORS, *_BEGINNINGS})
"""The names of functions of ours that stand for something in the stack, besides those that call the user's."""

_CALLING = frozenset(
    {
        *("_call_traced", "_call_noted", "_call_in_arm", "_call", "call"),
        *("_call_object", "_of_no_container", "call_module"),
    }
)


def runs_a_block(code: CodeType) -> bool:
    """Whether what a code object calls is a block of a function, and not a function of the user's."""
    file = code.co_filename
    return is_ours(file) and not is_written_by_us(file) and code.co_name not in _CALLING


def _runs_a_part(code: CodeType, called: CodeType) -> bool:
    """Whether what a code object calls is a part of a function, such as a branch, an operand or a pattern."""
    return is_block(called) or (called.co_name == "<lambda>" and runs_a_block(code))
