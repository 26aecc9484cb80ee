"""Operations of our own as Python writes them: ``print``, ``raise``, ``assert``, text, random generators."""

from __future__ import annotations

import enum
import functools
import logging
import string
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.python.lines import Lines
from stillgraph.deploy.python.spelling import Spelling, is_literal, quoted
from stillgraph.deploy.python.stand_ins import shows_itself
from stillgraph.passes.regions.values import value_of
from stillgraph.program import exceptions, operations
from stillgraph.program.acts import Calling, Logging, StandardStream, Warning_
from stillgraph.program.graphs import arguments


class Writer(Protocol):
    """What a statement needs of the one who writes the region."""

    lines: Lines
    spelling: Spelling
    functions: dict[Any, str]
    at: Any
    leave: Callable[[int, list[str]], None]

    def value(self, value: Any) -> str:
        """An argument as Python."""

    def tuple_text(self, values: Any) -> str:
        """Several arguments as a tuple."""


# ---- text
def format_text(writer: Writer, template: str, values: Any, names: Any) -> str:
    """An f-string, or a call of ``format`` where its parts are not to be put in one."""
    texts = [writer.value(each) for each in values]
    if not names:
        made = _f_string(template, texts)
        if made is not None:
            return made
    keywords = [f"{name}={writer.value(each)}" for name, each in names.items()]
    return f"{quoted(template)}.format({', '.join(texts + keywords)})"


def _f_string(template: str, texts: list[str]) -> str | None:
    parts, count = [], 0
    for literal, name, spec, conversion in string.Formatter().parse(template):
        parts.append(repr(literal)[1:-1].replace("{", "{{").replace("}", "}}"))
        if name is None:
            continue
        if (name and not name.isdigit()) or "{" in (spec or ""):
            return None
        index = int(name) if name else count
        count += 1
        if index >= len(texts) or any(c in texts[index] for c in "\"'\\{}"):
            return None
        parts.append("{" + texts[index] + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}")
    text = "".join(parts)
    return None if '"' in text or "\\'" in text or count == 0 else f'f"{text}"'


def shown(spelling: Spelling, member: enum.Enum, at: Any) -> str:
    """A member of an enumeration where it is shown: a class that says how has its texts here."""
    if not shows_itself(member):
        return spelling.constant(member, at)
    return f"{spelling.helper('_Shown')}({quoted(str(member))}, {quoted(repr(member))})"


def _print(writer: Writer, node: fx.Node) -> None:
    template, values, options = arguments(node)
    given = [writer.value(each) for each in values] if template is None else [format_text(writer, template, values, {})]
    given += [f"{name}={writer.value(each)}" for name, each in options.items()]
    writer.lines.add(f"print({', '.join(given)})", writer.at)


def _format(writer: Writer, node: fx.Node) -> str:
    template, *values = arguments(node)
    return format_text(writer, template, values, node.kwargs)


# ---- exceptions
def _assert(writer: Writer, node: fx.Node) -> None:
    test, message, has_message = arguments(node)
    said = f", {writer.value(message)}" if has_message else ""
    writer.lines.add(f"if not {writer.value(test)}:", writer.at)
    writer.lines.add(f"    raise AssertionError({said.removeprefix(', ')})" if said else "    raise AssertionError")


def exception_type(spelling: Spelling, kind: type[BaseException], at: Any) -> str:
    """An exception's type: one of Python's or torch's, or the file's own in the place of the user's."""
    module = kind.__module__
    if module == "builtins" or module.partition(".")[0] == "torch":
        return spelling.function(kind, at)
    own = [vars(base) for base in kind.__mro__ if base.__module__ != "builtins"]
    if any("__init__" in names or "__new__" in names for names in own):
        said = f"'{kind.__qualname__}' has a constructor of its own, which Python source cannot call"
        raise refuse("SG402", said, location=at)
    return spelling.stand_in(kind)


def _raise(writer: Writer, node: fx.Node) -> None:
    error = value_of(arguments(node)[0])
    made = _made_anew(writer, error, own_cause=not node.kwargs.get("itself"))
    suppress = node.kwargs.get("suppress") if node.kwargs.get("itself") else error.__suppress_context__
    _leaving(writer, made, node, bool(suppress))


def _made_anew(writer: Writer, error: Any, own_cause: bool = True) -> str:
    """What makes an exception like one that the program holds; ``own_cause``: with the cause that it has."""
    assert isinstance(error, BaseException)
    kind = exception_type(writer.spelling, type(error), writer.at)
    spelled = all(is_literal(each) or _is_plain_member(each) for each in error.args)
    if not spelled or (own_cause and error.__cause__ is not None):
        raise refuse("SG402", f"Python source cannot make this {type(error).__name__} anew", location=writer.at)
    return f"{kind}({', '.join(writer.spelling.literal(each) for each in error.args)})"


def _is_plain_member(value: Any) -> bool:
    """Whether a value is a member of an enumeration whose text in an exception is that of the file's own."""
    return isinstance(value, enum.Enum) and not shows_itself(value)


def _raise_made(writer: Writer, node: fx.Node) -> None:
    kind, args, state = arguments(node)
    if state:
        raise refuse("SG402", f"Python source cannot make a {value_of(kind).__name__} anew", location=writer.at)
    given = ", ".join(writer.value(each) for each in args)
    made = f"{exception_type(writer.spelling, value_of(kind), writer.at)}({given})"
    _leaving(writer, made, node, bool(node.kwargs.get("suppress")))


def _leave(writer: Writer, node: fx.Node) -> None:
    """Write down what the path did before it raises."""
    left: Any = node.kwargs.get("left")
    if left is not None:
        writer.leave(left[0], [writer.value(each) for each in left[1]])


def _leaving(writer: Writer, made: str, node: fx.Node, suppress: bool) -> None:
    _leave(writer, node)
    cause = node.kwargs.get("cause")
    source = f" from {writer.value(cause)}" if cause is not None else " from None" if suppress else ""
    writer.lines.add(f"raise {made}{source}", writer.at)


def _reraise(writer: Writer, node: fx.Node) -> None:
    (error,) = arguments(node)
    cause = node.kwargs.get("cause")
    source = " from None" if node.kwargs.get("suppress") else ""
    if cause is not None:
        made = writer.value(cause) if node.kwargs.get("outer") else _made_anew(writer, value_of(cause))
        source = f" from {made}"
    _leave(writer, node)
    writer.lines.add(f"raise {writer.value(error)}{source}", writer.at)


def _without_traceback(writer: Writer, node: fx.Node) -> None:
    writer.lines.add(f"{writer.value(arguments(node)[0])}.__traceback__ = None", writer.at)


def _keep(writer: Writer, node: fx.Node) -> None:
    name, values = arguments(node)
    if writer.functions[name]:  # otherwise its handler asks for nothing
        writer.lines.add(f"{writer.functions[name]} = {writer.tuple_text(values)}")


def _settle(writer: Writer, node: fx.Node) -> None:
    index, values = arguments(node)
    writer.leave(index, [writer.value(each) for each in values])


# ---- the world outside
def _act(writer: Writer, node: fx.Node) -> None:
    step, args, kwargs = arguments(node)
    given = [writer.value(each) for each in args] + [f"{name}={writer.value(each)}" for name, each in kwargs.items()]
    call, first = _step(writer, value_of(step))
    writer.lines.add(f"{call}({', '.join((*first, *given))})", writer.at)


def _logging(writer: Writer, function: Any) -> tuple[str, tuple[str, ...]]:
    logger = getattr(function, "__self__", None)
    module = writer.spelling.imported("logging")
    place = f"{module}.getLogger({quoted(logger.name)})" if isinstance(logger, logging.Logger) else module
    if function.__name__ in _LOGGING:
        return f"{place}.{function.__name__}", ()
    method = _logs_once_by(function)
    if method is None:
        message = f"a file of torch alone cannot call '{function.__name__}', which Python's loggers do not have"
        raise refuse("SG402", message, location=writer.at, hint="Log by debug, info, warning, error or critical.")
    writer.spelling.imported("functools")
    return writer.spelling.helper("_logged_once"), (place, quoted(method))


def _logs_once_by(function: Any) -> str | None:
    """The method of Python's loggers that one with a cache passes on to, as transformers' ``warning_once`` does."""
    kept = getattr(function, "__func__", None)
    code = getattr(getattr(kept, "__wrapped__", None), "__code__", None)
    if not isinstance(kept, functools._lru_cache_wrapper) or code is None or len(code.co_names) != 1:
        return None
    passes_on = code.co_code in (_passing_on.__code__.co_code, _passing_on_told.__code__.co_code)
    return code.co_names[0] if passes_on and code.co_names[0] in _LOGGING else None


def _passing_on(self: Any, *args: Any, **kwargs: Any) -> None:
    self.warning(*args, **kwargs)


def _passing_on_told(self: Any, *args: Any, **kwargs: Any) -> None:
    """Its first constant is this text."""
    self.warning(*args, **kwargs)


_LOGGING = frozenset(["debug", "info", "warning", "warn", "error", "critical", "fatal", "exception", "log"])


def _step(writer: Writer, step: Any) -> tuple[str, tuple[str, ...]]:
    """What is called, and its first arguments."""
    match step:
        case Warning_():
            return f"{writer.spelling.imported('warnings')}.warn", ()
        case StandardStream(stream=stream, method=method):
            return f"{writer.spelling.imported('sys')}.{stream}.{method}", ()
        case Calling(function=function):
            return writer.spelling.function(function, writer.at), ()
        case Logging(function=function):
            return _logging(writer, function)
    raise refuse("SG402", f"a file of torch alone cannot call '{step!r}'", location=writer.at)


def _invoke(writer: Writer, node: fx.Node) -> str:
    function, args, kwargs = arguments(node)
    given = [writer.value(each) for each in args] + [f"{name}={writer.value(each)}" for name, each in kwargs.items()]
    return f"{writer.spelling.function(value_of(function), writer.at)}({', '.join(given)})"


def _which(writer: Writer, node: fx.Node) -> str:
    """Which of some exceptions was caught: where there is none like it, a ValueError says so."""
    error, kinds, texts = arguments(node)
    of = writer.value(error)
    names = [exception_type(writer.spelling, value_of(kind), writer.at) for kind in kinds]
    if texts is None:
        return f"{_tuple(names)}.index(type({of}))"
    pairs = [f"({name}, {writer.spelling.literal(text)})" for name, text in zip(names, texts, strict=True)]
    return f"{_tuple(pairs)}.index((type({of}), repr({of}.args)))"


def _held_by(writer: Writer, node: fx.Node) -> str:
    error, _, name, position = arguments(node)
    read = f"{writer.value(error)}.{name}"
    return read if position is None else f"{read}[{position}]"


def _tuple(texts: list[str]) -> str:
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


# ---- values
def _unbound(writer: Writer, node: fx.Node) -> str:
    return f"{writer.spelling.helper('_Unbound')}({quoted(str(arguments(node)[0]))})"


def _is_unbound(writer: Writer, node: fx.Node) -> str:
    return f"isinstance({writer.value(arguments(node)[0])}, {writer.spelling.helper('_Unbound')})"


def _made(writer: Writer, node: fx.Node) -> str:
    kind, items = arguments(node)
    return f"{writer.spelling.stand_in(value_of(kind))}({', '.join(writer.value(each) for each in items)})"


def _taken(writer: Writer, node: fx.Node) -> str:
    items, order = (writer.value(each) for each in arguments(node))
    return f"[{items}[i] for i in {order}]"


def _generator_state(writer: Writer, node: fx.Node) -> str:
    (device,) = arguments(node)
    return "torch.get_rng_state()" if device == "cpu" else f"torch.cuda.get_rng_state({quoted(str(device))})"


def _set_generator_state(writer: Writer, node: fx.Node) -> str:
    state, device = arguments(node)
    if device == "cpu":
        return f"torch.set_rng_state({writer.value(state)})"
    return f"torch.cuda.set_rng_state({writer.value(state)}, {quoted(str(device))})"


STATEMENTS: dict[Any, Callable[[Writer, fx.Node], None]] = {
    operations.print_: _print,
    operations.assert_: _assert,
    exceptions.raise_: _raise,
    exceptions.raise_made: _raise_made,
    exceptions.reraise: _reraise,
    exceptions.without_traceback: _without_traceback,
    operations.keep: _keep,
    operations.settle: _settle,
    operations.act: _act,
}
"""What is written as a statement and gives no value."""

SHOWING = frozenset({operations.print_, operations.text, operations.percent})
"""What makes texts of what it is given."""

ENDS = frozenset({exceptions.raise_, exceptions.raise_made, exceptions.reraise})
"""What follows them in a region is never reached."""

WRITTEN: dict[Any, Callable[[Any, fx.Node], str]] = {
    operations.text: _format,
    operations.percent: lambda w, node: " % ".join(w.value(each) for each in arguments(node)),
    operations.as_tensor: lambda w, node: w.value(arguments(node)[0]),
    operations.unbound: _unbound,
    operations.is_unbound: _is_unbound,
    operations.is_integer: lambda w, node: f"float({w.value(arguments(node)[0])}).is_integer()",
    operations.made: _made,
    exceptions.which: _which,
    exceptions.held_by: _held_by,
    exceptions.message_of: lambda w, node: f"str.__str__(*{w.value(arguments(node)[0])}.args)",
    operations.taken: _taken,
    operations.repeated: lambda w, node: " * ".join(w.value(each) for each in arguments(node)),
    operations.invoke: _invoke,
    operations.make_generator: lambda w, node: f"torch.Generator({w.value(arguments(node)[0])})",
    operations.generator_state: _generator_state,
    operations.set_generator_state: _set_generator_state,
    torch.Size: lambda w, node: f"torch.Size({', '.join(w.value(each) for each in arguments(node))})",
}
"""What is written as an expression of Python's."""
