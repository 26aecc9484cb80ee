"""Turning a function into rewritten code (see docs/dev/rewriting.md for what that is).

The dear part, from source text to a code object, is done once per code object and set of watched attributes; binding
the result to one function's closure and defaults is cheap.
"""
from __future__ import annotations

import ast
import functools
import threading
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stillgraph.core.diagnostics import refuse
from stillgraph.source import assigning
from stillgraph.source.callees import Callee, Path, known_callees
from stillgraph.source.compiled import Origin, bind, compile_function, is_converted
from stillgraph.source.comprehensions import apart
from stillgraph.source.generators import Place, Turn, Twin, inside_out, with_twins
from stillgraph.source.names import Names
from stillgraph.source.parse import FunctionSource, find_function, location
from stillgraph.source.pipeline import STEPS, STRUCTURE, is_known
from stillgraph.source.places import Request, Step
from stillgraph.source.rewriter import Rewriter
from stillgraph.source.scopes import INLINES_COMPREHENSIONS, FunctionNode, analyse, steady_names
from stillgraph.source.source_map import Listing, listing
from stillgraph.source.steps import functions, matching
from stillgraph.source.tree import with_fields
from stillgraph.source.unset import unset_reads

__all__ = ["Converted", "convert", "convert_generator", "is_converted"]

_GENERATOR = 0x20                   # CO_GENERATOR
_ASYNCHRONOUS = 0x80 | 0x200        # CO_COROUTINE | CO_ASYNC_GENERATOR


@dataclass(frozen=True)
class Converted:
    """A rewritten function.

    Attributes:
        function: the function to call.
        file: the user's file.
        steps: (name of a rewrite step, source after it), if they were asked for.
        written_cells: names of the original function's free variables that it assigns, at any depth.
        emit: of a generator turned inside out, the parameter that takes what it yields.
    """

    function: types.FunctionType
    file: str
    steps: tuple[tuple[str, str], ...]
    written_cells: tuple[str, ...]
    _rewritten: _Rewritten = field(repr=False)
    emit: str | None = None

    @property
    def code(self) -> str:
        """Readable source of the rewritten function."""
        return self._rewritten.listing.text

    @property
    def source_map(self) -> Mapping[int, int]:
        """Line of `code` -> line of the user's file."""
        return self._rewritten.listing.lines


def convert(fn: types.FunctionType, operators: Mapping[str, object], *, watched: frozenset[str] = frozenset(),
            plain_callee: Callable[[object], bool] | None = None, keep_steps: bool = False,
            tries: bool = False) -> Converted:
    """Rewrite a function so that its control flow, calls and stores go through operators.

    Args:
        fn: a function written in Python.
        operators: operator name -> its meaning. `set_global` and `del_global` get the function's globals as their
            first argument; the others are called as in docs/dev/rewriting.md.
        watched: names of attributes whose reads are to go through `attr`.
        plain_callee: whether an object that a dotted name stands for now is to be called without `call`.
        keep_steps: record the source after each rewrite step.
        tries: make operators of `try` statements too; otherwise they stay Python.

    Raises:
        CaptureError: SG1xx, for source that cannot be read or rewritten.
    """
    if not isinstance(fn, types.FunctionType):
        raise refuse("SG101", f"{fn!r} is not a function written in Python")
    converted = _converted(fn, None, operators, _Way(watched, tries), plain_callee, keep_steps)
    assert converted is not None
    return converted


def convert_generator(fn: types.FunctionType, operators: Mapping[str, object], *, watched: frozenset[str] = frozenset(),
                      plain_callee: Callable[[object], bool] | None = None, tries: bool = False,
                      turn: Turn = inside_out) -> Converted | None:
    """Turn a generator inside out (see `source.generators`) and rewrite it as `convert` does.

    ``turn`` is `inside_out`, or `around_block` for the function of a context manager.

    Returns:
        A function with a further keyword, `Converted.emit`; None for a generator with which that cannot be done.

    Raises:
        CaptureError: as `convert`.
    """
    return _converted(fn, turn, operators, _Way(watched, tries), plain_callee, False)


class _Way(NamedTuple):
    """What a conversion depends on besides the function."""

    watched: frozenset[str]
    tries: bool


def _converted(fn: types.FunctionType, turn: Turn | None, operators: Mapping[str, object], way: _Way,
               plain_callee: Callable[[object], bool] | None, keep_steps: bool) -> Converted | None:
    try:
        analysis = _analysis(fn, turn)
        if turn is not None and analysis.emit is None:
            return None
        callees = known_callees(analysis.scopes.callees, fn, plain_callee)
        rewritten = analysis.rewritten(way, callees)
    except RecursionError:
        raise refuse("SG106", f"'{fn.__name__}' is nested too deeply", location=location(fn.__code__)) from None
    supplied = {local: _operator(name, operators, fn) for name, local in rewritten.operators.items()}
    steps = analysis.steps(way, callees) if keep_steps else ()
    function = bind(rewritten.code, fn, supplied)
    return Converted(function, fn.__code__.co_filename, steps, analysis.written_cells, rewritten, analysis.emit)


def _operator(name: str, operators: Mapping[str, object], fn: types.FunctionType) -> object:
    if name == "slice_":
        return operators.get(name, slice)
    operator: Any = operators[name]
    if name in ("before_global", "del_global"):
        return functools.partial(operator, fn.__globals__)
    if name == "set_global":
        return functools.partial(_set_global, operator, fn.__globals__)
    return operator


def _set_global(operator: Callable[..., object], namespace: dict[str, Any], name: str, value: object) -> object:
    """Store a global and give the value back, so that `:=` can be written with it."""
    operator(namespace, name, value)
    return value


@dataclass(frozen=True)
class _Rewritten:
    """The result of rewriting: everything that does not depend on one function's closure and defaults."""

    code: types.CodeType
    operators: Mapping[str, str]
    shown: FunctionNode

    @functools.cached_property
    def listing(self) -> Listing:
        return listing(self.shown)


class _Analysis:
    """What is known about one code object, and the ways in which it has been rewritten so far."""

    def __init__(self, code: types.CodeType, source: FunctionSource, turn: Turn | None = None) -> None:
        self._source = source
        self._free = code.co_freevars
        self._origin = Origin.of(code)
        self.node: FunctionNode = source.node
        self.emit: str | None = None
        turned_node = None if turn is None else turn(source.node)
        if turned_node is not None:
            self.node, self.emit = turned_node
        self.scopes = analyse(self.node)
        for kind in self.scopes.node_types:
            if not is_known(kind):
                raise refuse("SG106", f"{kind.__name__} is not known to stillgraph", location=location(code))
        self._subjects: set[str] = set()
        self._twins: dict[Place, Twin] = {}
        makes_generators = {ast.NamedExpr, ast.GeneratorExp} <= self.scopes.node_types
        if isinstance(self.node, ast.FunctionDef) and assigning.may_assign(self.scopes.node_types):
            names = Names(self.scopes.names)
            self.node = assigning.loops_apart(self.node, names)
            self._subjects = self._subjects | names.fresh_names
            self.scopes = analyse(self.node, self._subjects)
        if _defines_generators(code) or makes_generators:
            names = Names(self.scopes.names)
            self.node = with_twins(self.node, names, self._twins)
            self._subjects = self._subjects | names.fresh_names
            self.scopes = analyse(self.node, self._subjects)
        if ast.Match in self.scopes.node_types:
            names = Names(self.scopes.names)
            self.node = matching.desugar(self.node, names, steady_names(self.scopes))
            self._subjects = self._subjects | names.fresh_names
            self.scopes = analyse(self.node, self._subjects)
        self._unset_reads = unset_reads(self.node, self.scopes)
        self.written_cells = tuple(sorted(self.scopes.of[id(self.node)].free_writes))
        self._done: dict[tuple[_Way, frozenset[tuple[Path, Callee]]], _Rewritten] = {}

    def rewritten(self, way: _Way, callees: Mapping[Path, Callee]) -> _Rewritten:
        key = way, frozenset(callees.items())
        done = self._done.get(key)
        if done is None:
            done = self._done.setdefault(key, self.rewrite(way, callees, STEPS))
        return done

    def steps(self, way: _Way, callees: Mapping[Path, Callee]) -> tuple[tuple[str, str], ...]:
        """The function after each of the steps: with the steps up to it, and without the others."""
        shown = []
        for position, step in enumerate(STEPS, 1):
            _, body = self._apply(way, callees, STEPS[:position])
            shown.append((step.name, listing(self._shown(body)).text))
        return tuple(shown)

    def rewrite(self, way: _Way, callees: Mapping[Path, Callee], steps: tuple[Step, ...]) -> _Rewritten:
        """Rewrite and compile, with some or all of the steps."""
        rewriter, body = self._apply(way, callees, steps)
        name = rewriter.names.fresh("function")
        operators = dict(rewriter.names.operators)
        free = [*operators.values(), *(name for name in self._free if name not in operators.values())]
        twins = {twin.name: place.name for place, twin in self._twins.items()}
        bare = self._bare(body, name)
        if INLINES_COMPREHENSIONS:
            bare = apart(bare, rewriter.names.fresh)
        code = compile_function(bare, self._origin, class_name=self._source.class_name, name=name,
                                free=free, helpers=rewriter.names.helpers, twins=twins)
        return _Rewritten(code, operators, self._shown(body))

    def _apply(self, way: _Way, callees: Mapping[Path, Callee],
               steps: tuple[Step, ...]) -> tuple[Rewriter, FunctionNode]:
        names = Names(self.scopes.names | self._subjects | set(self._free))
        names.fresh_names |= self._subjects
        request = Request(self.scopes, names, callees, way.watched, self._source.file, way.tries, self._twins,
                          self._unset_reads)
        rewriter = Rewriter(request, (*STRUCTURE, *steps))
        class_name = self._source.class_name
        if isinstance(self.node, ast.Lambda):
            return rewriter, functions.lambda_with(self.node, self.node.args, class_name, rewriter)
        return rewriter, with_fields(self.node, body=functions.function_body(self.node, class_name, rewriter))

    def _shown(self, node: FunctionNode) -> FunctionNode:
        """As the user would read it: the signature as written, without decorators."""
        return node if isinstance(node, ast.Lambda) else with_fields(node, decorator_list=[])

    def _bare(self, node: FunctionNode, name: str) -> FunctionNode:
        """As it is compiled: defaults and annotations are copied from the function, not evaluated again."""
        args = node.args
        bare = with_fields(
            args, defaults=[], kw_defaults=[None] * len(args.kwonlyargs),
            posonlyargs=[*map(_unannotated, args.posonlyargs)], args=[*map(_unannotated, args.args)],
            kwonlyargs=[*map(_unannotated, args.kwonlyargs)],
            vararg=args.vararg and _unannotated(args.vararg), kwarg=args.kwarg and _unannotated(args.kwarg))
        if isinstance(node, ast.Lambda):
            return with_fields(node, args=bare)
        changes: dict[str, list[ast.AST]] = {"type_params": []} if hasattr(node, "type_params") else {}
        return with_fields(node, name=name, args=bare, decorator_list=[], returns=None, **changes)


def _defines_generators(code: types.CodeType) -> bool:
    """Whether a function has another one in it that is a generator."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    found = any(each.co_flags & _GENERATOR and each.co_name != "<genexpr>" for each in inner)
    return found or any(map(_defines_generators, inner))


def _unannotated(arg: ast.arg) -> ast.arg:
    return with_fields(arg, annotation=None)


_analyses: dict[tuple[int, Turn | None], tuple[weakref.ref[types.CodeType], _Analysis]] = {}
_lock = threading.RLock()


def _analysis(fn: types.FunctionType, turn: Turn | None = None) -> _Analysis:
    """The analysis of a function's code, kept for as long as the code lives.

    Keyed by identity: two code objects are equal if their text and lines are, even if they come from different files.
    """
    code = fn.__code__
    key = (id(code), turn)
    known = _analyses.get(key)
    if known is not None and known[0]() is code:
        return known[1]
    if code.co_flags & _ASYNCHRONOUS:
        hint = "Await outside, and pass what comes of it to a plain function (def), which may be static."
        raise refuse("SG103", f"'{fn.__name__}' is asynchronous", location=location(code), hint=hint)
    with _lock:
        known = _analyses.get(key)
        if known is not None and known[0]() is code:
            return known[1]
        made = _Analysis(code, find_function(code, fn.__globals__), turn)

        def forget(dead: weakref.ref[types.CodeType]) -> None:
            if _analyses.get(key, (None,))[0] is dead:
                _analyses.pop(key, None)

        _analyses[key] = weakref.ref(code, forget), made
        return made
