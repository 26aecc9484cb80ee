"""f-strings, ``assert`` and ``print``."""

from __future__ import annotations

import functools
import io
import itertools
import string
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any

import torch

from stillgraph.core.diagnostics import refuse
from stillgraph.core.faults import ends_capture
from stillgraph.core.lookup import class_member
from stillgraph.operators.conditions.branches import places
from stillgraph.operators.conditions.methods import method_of
from stillgraph.operators.conditions.truth import truth
from stillgraph.operators.control_flow.loop_attempts import Context
from stillgraph.operators.control_flow.trials import Trial
from stillgraph.operators.dispatch import raised
from stillgraph.operators.outside.handed_out import shown, text_by, text_method
from stillgraph.operators.outside.streams import may_print_to
from stillgraph.operators.outside.texts_of_errors import template_of
from stillgraph.passes.regions.purity import is_pure
from stillgraph.program.blocks import CONSTRUCTS
from stillgraph.program.operations import assert_ as run_assert
from stillgraph.program.operations import percent as run_percent
from stillgraph.program.operations import print_ as run_print
from stillgraph.trace.capture.session import Session, session
from stillgraph.trace.code.frames import here
from stillgraph.trace.control_flow.both_sides import several_in
from stillgraph.trace.control_flow.caught_kinds import exception_of
from stillgraph.trace.control_flow.joined.unjoined import Unjoined
from stillgraph.trace.control_flow.narrowing import exchanged, leaves
from stillgraph.trace.control_flow.staging import branch
from stillgraph.trace.heap.places import Place
from stillgraph.trace.values.arrays.staged_array import StagedArray
from stillgraph.trace.values.caught import Caught
from stillgraph.trace.values.complexes import StagedComplex
from stillgraph.trace.values.errors import in_eagers_words
from stillgraph.trace.values.numbers import StagedNumber
from stillgraph.trace.values.operands import sample
from stillgraph.trace.values.raised import Raised
from stillgraph.trace.values.several import known_in
from stillgraph.trace.values.text import StagedText, escaped


def text(template: str, *values: Any) -> Any:
    """An f-string."""
    capture = session()
    if capture is not None:
        values = with_chosen(capture, tuple(told(capture, value) for value in values))
        several = several_in(values)
        if several is not None:
            return several.either(lambda one: text(template, *exchanged(values, several, one)))
    if capture is not None and any(is_staged(value) or _makes_text(value) for value in values):
        template, values = _with_texts(template, values)
        if any(is_staged(value) for value in values):
            return StagedText(capture, template, values)
    return template.format(*values)


def with_chosen(capture: Session, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a text is made of, where the run makes it: of a text that is one of several, the run takes that."""
    return tuple(_chosen(capture, value) for value in values) if is_staged(values) else values


def _chosen(capture: Session, value: Any) -> Any:
    for several in leaves(value):
        if isinstance(several, Unjoined):
            value = exchanged(value, several, _chosen_text(capture, several))
    return value


def _chosen_text(capture: Session, value: Unjoined) -> Any:
    entries = known_in(value)
    if entries is None or any(type(entry.value) is not str for entry in entries):
        return value
    texts = {capture.entry_number(entry): entry.value for entry in entries}
    return StagedText.of_table(capture, texts, capture.entry_of(value))


def told(capture: Session, value: Any) -> Any:
    """An exception that the program has caught as the capture knows it, if it does; anything else as it is."""
    if isinstance(value, Caught):
        known = exception_of(capture, value)
        return value if known is None else known
    _in_eagers_words(value)
    return value


def _in_eagers_words(value: Any) -> None:
    if isinstance(value, BaseException) and not isinstance(value, (Caught, Unjoined)):
        in_eagers_words(value)


def _makes_text(value: Any) -> bool:
    if template_of(value, "__str__") is not None:
        return True
    return text_method(value) is not None or any(_own(value, each) is not None for each in _SHOWING)


_SHOWING = {"s": "__str__", "r": "__repr__", None: "__format__"}
"""The method that a field of an f-string asks for, by its conversion."""


def _own(value: Any, conversion: str | None) -> FunctionType | None:
    """The method of the user's that a field of an f-string asks."""
    if isinstance(value, (torch.nn.Module, BaseException)) or conversion not in _SHOWING:
        return None
    return method_of(value, _SHOWING[conversion])


def _with_texts(template: str, values: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """An f-string with texts in the place of the users' objects that it shows."""
    fields = [(name, (spec or "").count("{}")) for _, name, spec, _ in string.Formatter().parse(template)]
    if any(name for name, _ in fields) or sum(1 + n for name, n in fields if name is not None) != len(values):
        return template, values
    left, parts, given = iter(values), [], list[Any]()
    for literal, name, spec, conversion in string.Formatter().parse(template):
        parts.append(escaped(literal))
        if name is not None:
            nested = [next(left), *itertools.islice(left, (spec or "").count("{}"))]
            field, nested[0] = _field_of(nested[0], spec or "", conversion, len(nested) > 1)
            parts.append(field)
            given += nested
    return "".join(parts), tuple(given)


def _field_of(value: Any, spec: str, conversion: str | None, is_nested: bool) -> tuple[str, Any]:
    """A field of a template, and what is put into it."""
    method = _own(value, conversion)
    if method is not None and conversion is not None:
        return _field(spec, "s"), text_by(method, value, _SHOWING[conversion])
    if method is not None and not is_nested:
        return "{}", text_by(method, value, "__format__", spec)
    if conversion == "r" and template_of(value, "__repr__") is not None:
        return _field(spec, "s"), repr_(value)
    format_method = class_member(type(value), "__format__")
    own = isinstance(value, StagedArray) or format_method is not class_member(object, "__format__")
    is_shown = (conversion == "s" or (not spec and conversion is None)) and not own
    return _field(spec, conversion), str_(value) if is_shown else value


def _field(spec: str, conversion: str | None) -> str:
    return "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"


def percent(template: Any, values: Any) -> Any:
    """``template % values``."""
    capture = session()
    if capture is None or not isinstance(template, str):
        return template % values
    values = _chosen(capture, values) if is_staged(values) else values
    several = several_in(values)
    if several is not None:
        return several.either(lambda one: percent(template, exchanged(values, several, one)))
    if is_staged(values):
        return StagedText(capture, template, (values,), run_percent)
    return template % values


def str_(*args: Any, **kwargs: Any) -> Any:
    """``str(value)``."""
    if len(args) != 1 or kwargs:
        return str(*args, **kwargs)
    capture = session()
    if capture is not None:
        _in_eagers_words(args[0])
    if isinstance(args[0], (Caught, Unjoined)):
        return told_text(str_, args[0])
    if capture is not None and (is_staged(args[0]) or several_in(args[0]) is not None):
        return _shown_whole(capture, "{!s}", args[0])
    told = None if capture is None else template_of(args[0], "__str__")
    if told is not None:
        return text(told[0], *told[1])
    method = None if capture is None else text_method(args[0])
    return str(args[0]) if method is None else text_by(method, args[0])


def _shown_whole(capture: Session, template: str, value: Any) -> Any:
    """``str`` or ``repr`` of a value that only the run knows, or in which paths leave one of several."""
    (value,) = with_chosen(capture, (value,))
    several = several_in(value)
    if several is not None:
        return several.either(lambda one: _shown_whole(capture, template, exchanged(value, several, one)))
    return StagedText(capture, template, (value,)) if is_staged(value) else template.format(value)


def told_text(show: Callable[[Any], Any], value: Any) -> Any:
    """``str`` or ``repr`` of an exception that the program has caught, or of a value that is several."""
    capture = session()
    known = value if capture is None else told(capture, value)
    if isinstance(known, Unjoined):
        return known.either(show)
    if capture is None or known is not value:
        return show(known)
    return StagedText(capture, "{!s}" if show is str_ else "{!r}", (value,))


def repr_(value: Any) -> Any:
    """``repr(value)``: of an object whose class says so in Python, by what that does."""
    capture = session()
    if capture is not None:
        _in_eagers_words(value)
    if isinstance(value, (Caught, Unjoined)):
        return told_text(repr_, value)
    if capture is not None and (is_staged(value) or several_in(value) is not None):
        return _shown_whole(capture, "{!r}", value)
    told = None if capture is None else template_of(value, "__repr__")
    if told is not None:
        return text(told[0], *told[1])
    method = class_member(type(value), "__repr__")
    if capture is None or not isinstance(method, FunctionType) or isinstance(value, (torch.nn.Module, torch.Tensor)):
        return repr(value)
    return text_by(method, value, "__repr__")


def format_(value: Any, spec: Any = "", /) -> Any:
    """``format(value, spec)``."""
    is_text = isinstance(spec, (str, StagedText))
    if not is_text:
        return format(value, spec)
    capture = session()
    method = None if capture is None else method_of(value, "__format__")
    if method is not None:
        return text_by(method, value, "__format__", spec)
    if capture is None or not is_staged((value, spec)):
        return format(value, spec)
    return StagedText(capture, "{:{}}", (value, spec))


def fill(template: str, args: tuple[Any, ...], names: dict[str, Any]) -> Any:
    """``template.format(*args, **names)``."""
    capture = session()
    if capture is None or not (is_staged(args) or is_staged(names)):
        return template.format(*args, **names)
    args = tuple(_chosen(capture, value) for value in args)
    names = {name: _chosen(capture, value) for name, value in names.items()}
    return StagedText(capture, template, args, names=names)


def joined(separator: str, parts: list[Any]) -> Any:
    """``separator.join(parts)``."""
    capture = session()
    if capture is None or not any(isinstance(part, StagedText) for part in parts):
        return separator.join(parts)
    uncertain = next(filter(capture.may_be_none, parts), None)
    if uncertain is not None:
        return capture.with_or_without(uncertain, lambda one: joined(separator, exchanged(parts, uncertain, one)))
    separator.join(map(sample, parts))  # which raises what eager PyTorch raises, where one is no text
    return StagedText(capture, escaped(separator).join("{}" for _ in parts), tuple(parts))


def is_staged(value: Any) -> bool:
    """Whether a value, or anything in a plain container, is only known at run time.

    Raises:
        CaptureError: it is an iterator of which only the run knows where it stands.
    """
    capture = session()
    if capture is not None and isinstance(value, Iterator):
        capture.iterators.require_known(value)
    if isinstance(value, (list, tuple, set)):
        return any(is_staged(v) for v in value)
    if isinstance(value, dict):
        return any(is_staged(v) for v in value.values())
    return isinstance(value, (torch.Tensor, StagedNumber, StagedArray, StagedComplex, StagedText, Caught))


def assert_(test: Any, message: Callable[[], Any] | None = None, *, keeps: tuple[str, ...] = ()) -> None:
    """``assert test, message()``; ``keeps`` are the variables that the message assigns by ``:=``."""
    require(test, message, places(keeps, message))


def require(test: Any, message: Callable[[], Any] | None, assigned: Sequence[Place]) -> None:
    """As `assert_`, with the places of the variables that the message assigns."""
    capture = session()
    known = bool(test) if capture is None else truth(capture, test)
    if known is True:
        return
    if known is False:
        told = () if message is None else (message(),)
        if any(isinstance(each, Unjoined) for each in told):
            _fails(told)
        raise AssertionError(*told)
    assert capture is not None
    said = None if capture.effects_so_far()[0] else _said(capture, message, assigned)
    if said is None:
        branch(capture, known, lambda: None, functools.partial(require, False, message, assigned), assigned, ())
        return
    if any(isinstance(each, Unjoined) for each in said):
        branch(capture, known, lambda: None, functools.partial(_fails, said), (), ())
        return
    error = None if is_staged(said) else AssertionError(*said)
    capture.before_raise(AssertionError, certain=True, raised=(Raised(AssertionError, True, error),))
    capture.emit("call_function", run_assert, (known, said[0] if said else None, message is not None), {})
    capture.learn(known, True)


def _said(
    capture: Session, message: Callable[[], Any] | None, assigned: Sequence[Place]
) -> tuple[Any, ...] | None:
    """What an assertion says if it fails; None where to find that out does more than to compute what cannot fail."""
    if message is None:
        return ()
    context = Context(capture, list(assigned), [])
    before, trial = context.checkpoint(), Trial(context)
    try:
        said = (message(),)
    except Exception as error:  # whatever the user's message raises
        if ends_capture(error):
            raise
        before.rollback()
        return None
    done = capture.region.since(before.region)
    if all(is_pure(node) and node.target not in CONSTRUCTS for node in done) and not trial.has_done_something():
        return said
    before.rollback()
    return None


def _fails(said: tuple[Any, ...]) -> None:
    raise raised(AssertionError(*said))


def _require_options(options: dict[str, Any]) -> None:
    """Raise what ``print`` raises for its keywords, before it prints anything."""
    told = {name: sample(value) for name, value in options.items() if name not in ("file", "flush")}
    print(file=io.StringIO(), **told)


def print_(*values: Any, **options: Any) -> None:
    """``print``: happens at run time, whatever is printed."""
    capture = session()
    if capture is None:
        print(*values, **options)
        return
    several = several_in(values)
    if several is not None:
        several.either(lambda one: print_(*exchanged(values, several, one), **options))
        return
    _require_options(options)
    if not may_print_to(capture, options.get("file")):
        hint = "Print to a file that is open before the call, or outside the static function."
        kind = type(options["file"]).__name__
        message = f"print writes to a {kind} that is not a file or stream from before the call"
        raise refuse("SG305", message, location=here(), hint=hint)
    capture.side_effects.before_act()
    capture.emit("call_function", run_print, (None, [shown(capture, v) for v in values], options), {})
