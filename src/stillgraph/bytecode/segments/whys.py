"""Why Python carries out an instruction, in words, and what to do about it: one table of the kinds of reasons."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stillgraph.core.diagnostics import CaptureError
from stillgraph.core.location import Location


@dataclass(frozen=True)
class Why:
    """Why Python carries out an instruction.

    Attributes:
        text: in words.
        code: of the refusal that a program with it would be; None where it is none.
        advice: what to do for a program to go on there; None where there is nothing to be done.
        cause: the line that a program is refused for, be it in what is called here; None where it is none.
    """

    text: str
    code: str | None = None
    advice: str | None = None
    cause: Location | None = None


@dataclass(frozen=True)
class Kind:
    """A kind of reason.

    Attributes:
        text: with ``{}`` for what differs.
        advice: what to do; None where that depends on what the text is about.
    """

    text: str
    advice: str | None


_ITS_VALUE = "Pass it as a tensor or a number, or call with few different ones."
_IN_A_TENSOR = "Keep what changes in a tensor, or take what is needed out of it before the call, and pass that."
_SAME = "Pass the same one in each call, or make it in the function, of what is passed as a tensor or a number."
_OUTSIDE = "Make it outside of the function and pass it, or make and use it up behind the last step of Python's."

KINDS: dict[str, Kind] = {
    "outside": Kind(
        "{} does something outside the program",
        "Do it once, behind the call, with what the function returns; or only every so many steps.",
    ),
    "changes": Kind(
        "{} may change {} that was there before the call",
        "Work on an object that the function makes, and return it.",
    ),
    "lock": Kind(
        "it takes {} that was there before the call",
        "Take it around the call, or only around what has to be done alone.",
    ),
    "mode": Kind("{} begins or ends a mode of torch's by hand", "Enter it by `with`, around the call."),
    "opaque": Kind("only Python can work with {}", "Take out of it what is needed before the call, and pass that."),
    "leaves": Kind(
        "Python leaves the block that it has entered",
        "Move Python's step out of the block, or the block around the call.",
    ),
    "inside": Kind(
        "a program ends inside of this block, so Python enters and leaves it",
        "Move Python's step out of the block, or the block around the call.",
    ),
    "variables": Kind("{} may show all variables", "Name the variables that are needed."),
    "makes": Kind("it makes {} that no program can hand on", _OUTSIDE),
    "raised": Kind(
        "it makes {} to be raised, which no program can hand on",
        "Ask for what it is raised for with an `if`, instead of handling it.",
    ),
    "closing": Kind("it makes a generator that has something to clean up, which Python closes", _OUTSIDE),
    "unmade": Kind("a generator is closed that Python cannot make", _OUTSIDE),
    "cache": Kind("{} has a cache, which only Python may fill", "Ask it before the call, and pass what it gives."),
    "value": Kind("'{}' is another value in each call", _ITS_VALUE),
    "variable": Kind("what the variable '{}' holds differs from call to call", "Pass that as an argument."),
    "differs": Kind("{} that it needs differs from call to call", _ITS_VALUE),
    "contents": Kind("what {} holds differs from call to call", _IN_A_TENSOR),
    "another": Kind("it needs {} that is another one in each call", _SAME),
    "joined": Kind("{} that it joins differs from call to call", _ITS_VALUE),
    "contents joined": Kind("what {} holds that it joins differs from call to call", _IN_A_TENSOR),
    "another joined": Kind("it joins {} that is another one in each call", _SAME),
    "gone": Kind("something may be done when {} is gone", "Let the caller hold it until the call has ended."),
    "loop": Kind(
        "it leaves a loop in which Python does something",
        "Move Python's step out of the loop, or leave the loop by its condition.",
    ),
    "raises": Kind("it raises {}", "Ask for what it is raised for with an `if`, instead of handling it."),
    "completes": Kind("it completes a function that Python has made", "Define the function outside."),
    "deletes": Kind("it deletes a variable that functions share", "Leave the `del` out, or set the variable to None."),
    "kept": Kind(
        "'{}' has a cache: what it has given, it gives again",
        "Make the function static that the cache is of (`__wrapped__`).",
    ),
    "way": Kind("one of the ways on from here cannot be in a program: {}", None),
    "cut": Kind("a program that goes on from here is refused: {}", None),
    "copies": Kind(
        "a program would make a copy of an object that has another name",
        "Put into the list what has no other name: a tensor, or a new list.",
    ),
    "other": Kind("only Python can do it", None),
}
"""By what the rest of this package calls them. The guide (``docs/guide/partial.md``) tells them to people."""


def why_of(kind: str, *about: str) -> Why:
    """A reason of a kind, with what differs."""
    found = KINDS[kind]
    return Why(found.text.format(*about), None, found.advice)


def because(kind: str, inner: Why) -> Why:
    """A reason of a kind that is about another reason."""
    return replace(inner, text=KINDS[kind].text.format(inner.text))


def refused(error: CaptureError) -> Why:
    """The reason of a refusal."""
    return Why(error.message, error.reason.code, error.hint, error.location)
