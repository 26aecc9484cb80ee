"""Does an artefact give what the program gives?"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import ExampleTimeout, ExportError, refuse
from stillgraph.core.faults import unwinds
from stillgraph.core.progress import doing
from stillgraph.core.quiet import quiet
from stillgraph.core.time_limit import TimeIsUp, time_limit
from stillgraph.deploy.description.entries import Entry
from stillgraph.deploy.description.other_sizes import OTHER_SIZES
from stillgraph.deploy.description.signature import place_key, written_place
from stillgraph.deploy.description.structure import leaves_of, leaves_that_count, of_widest_kind
from stillgraph.deploy.exporting.iterations import check_iterations
from stillgraph.passes.lists.lists import rows_of
from stillgraph.passes.regions.regions import all_nodes, control_of, outputs
from stillgraph.passes.regions.values import dtype_of, kind_of, storage_of, value_of
from stillgraph.program.facts.schemas import draws
from stillgraph.program.facts.writes import written_arguments
from stillgraph.program.guards import ModeGuard
from stillgraph.program.outputs import Constant, Output
from stillgraph.program.program import Program
from stillgraph.program.types import ListType
from stillgraph.runtime.native.function_writer import read_source
from stillgraph.runtime.native.modes import entered
from stillgraph.runtime.native.native import lower

_SEED = 20240229
_TRIES = 8  # how often what failed alone runs again, for it drew other numbers
_ANYTHING = object()  # stands for what depends on draws, of which no more is known
_NOTHING = object()  # a leaf of the result that means nothing: it stands beside a flag that says None


def check_artefact(
    program: Program,
    run: Callable[[], Sequence[torch.Tensor]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    same_generator: bool = True,
    written: Mapping[str, Any] | None = None,
    seconds: float | None = None,
) -> None:
    """Compare an artefact with the program on the example call.

    Args:
        program: as captured; its native lowering says what is right.
        run: runs the artefact once on the example call.
        args, kwargs: the example call; it is left as it is.
        written: by name, places (`signature.place_key`) of which the artefact gives, behind the results, what the call
            leaves in them.
        same_generator: whether the artefact draws from torch's generator; if not, random values are not compared.
        seconds: how long both together may run; None for no bound.

    Raises:
        ExportError: they differ, or the call takes more iterations than the artefact has.
        ExampleTimeout: they run for longer than they may.
    """
    places = written or {}
    reference = functools.partial(_reference, program, args, kwargs, [*places.values()])
    checking = doing("checking the file on the example")
    with checking, example_run(program, seconds), torch.random.fork_rng(devices=[]), torch.no_grad(), quiet():
        torch.manual_seed(_SEED)
        expected = _outcome(reference)
        torch.manual_seed(_SEED)
        actual = _outcome(run)
    if isinstance(expected, BaseException) or isinstance(actual, BaseException):
        failed = run if isinstance(actual, BaseException) else reference
        one = not (isinstance(expected, BaseException) and isinstance(actual, BaseException))
        if one and (same_generator or not _fails_by_draws(program, failed)):
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(_SEED)
                check_iterations(program, _inputs(program, args, kwargs))
            raise refuse("SG403", f"the program gives {_shown(expected)}, the artefact {_shown(actual)}")
        return
    random = {} if same_generator else _drawn(program)
    leaves = [leaf.index if isinstance(leaf, Output) else None for leaf in leaves_of(program.result)] or [None]
    drawn = [random.get(leaf) for leaf in leaves] + [_ANYTHING if random else None] * len(places)
    names = [f"output {index} of the artefact" for index, _ in enumerate(leaves)]
    names += [f"what the artefact leaves in {name!r}" for name in places]
    for name, want, got, each in zip(names, expected, actual, drawn):  # without results there still is an output
        _compare(name, want, got, each)


def check_sizes(entry: Entry, check: Callable[[tuple[Any, ...], dict[str, Any]], None]) -> None:
    """See that an artefact gives what the program gives for other sizes than the example's.

    Args:
        entry: the program, and sizes that it serves.
        check: compares the artefact with the program on a call, by `check_artefact`.

    Raises:
        ExportError: the artefact does not serve a size that the program serves.
    """
    for served in entry.served:
        args, kwargs = served.call(entry.args, entry.kwargs)
        with torch.random.fork_rng(devices=[]), torch.no_grad(), quiet():
            expected = _outcome(functools.partial(_reference, entry.program, args, kwargs, ()))
        if isinstance(expected, BaseException):
            continue  # as the function raises it
        try:
            check(args, kwargs)
        except ExportError as error:
            message = f"the file would not serve every size of an open dimension: for {served.text}, {error.message}"
            raise refuse("SG501", message, location=entry.program.location, hint=OTHER_SIZES) from error


@contextlib.contextmanager
def example_run(program: Program, seconds: float | None) -> Iterator[None]:
    """Around what runs a program, or a file of it, on the example call.

    Raises:
        ExampleTimeout: it takes longer than so many seconds.
    """
    try:
        with time_limit(seconds):
            yield
    except TimeIsUp:
        message = f"the program runs for more than {seconds:g} s on the example arguments: a loop may never end"
        hint = "Give example arguments that it ends for, or a larger time_limit."
        raise refuse("SG501", message, location=program.location, hint=hint, kind=ExampleTimeout) from None


def _fails_by_draws(program: Program, failed: Callable[[], Sequence[Any]]) -> bool:
    """Whether what failed, the program or the artefact, may have failed for what it drew: it does not always fail."""
    if not any(draws(node) for node in all_nodes(program.graph)):
        return False
    with torch.random.fork_rng(devices=[]), torch.no_grad(), quiet():
        return any(not isinstance(_outcome(failed), BaseException) for _ in range(_TRIES))


def _drawn(program: Program) -> dict[int | None, Any]:
    """The outputs of a program's graph that may depend on what it draws, with what stands for them."""
    drawn: set[fx.Node] = set()
    memory: set[int | None] = set()
    for node in program.graph.graph.nodes:
        control = control_of(program.graph, node)
        inner = [each for region in control.regions for each in all_nodes(region)] if control else []
        given = node.all_input_nodes
        depends = any(each in drawn or storage_of(each.meta.get("val")) in memory for each in given)
        if depends or draws(node) or any(draws(each) for each in inner):
            writes = any(written_arguments(each) for each in inner)
            changed = {node, *written_arguments(node), *(given if writes else ())}
            drawn |= changed
            memory |= {storage_of(each.meta.get("val")) for each in changed} - {None}
    return {
        index: value_of(value)
        for index, value in enumerate(outputs(program.graph))
        if isinstance(value, fx.Node) and (value in drawn or storage_of(value_of(value)) in memory)
    }


def _reference(
    program: Program, args: tuple[Any, ...], kwargs: dict[str, Any], written: Sequence[Any]
) -> Sequence[Any]:
    inputs = _inputs(program, args, kwargs)
    driver = lower(program, None)
    with contextlib.ExitStack() as modes:
        for guard in program.guards:
            if isinstance(guard, ModeGuard):
                modes.enter_context(entered(guard.context))
        given = driver.run(*inputs)
    declared = outputs(program.graph)
    counts = leaves_that_count(program.result, lambda output: given[output.index])
    widest = of_widest_kind(program.result)

    def of_leaf(leaf: Output | Constant) -> Any:
        if isinstance(leaf, Constant):
            return leaf.value
        kind = kind_of(value_of(declared[leaf.index])) if leaf in widest else None
        found = given[leaf.index]
        return _declared(found, value_of(declared[leaf.index])) if kind is None else kind(found)

    leaves = zip(leaves_of(program.result), counts, strict=True)
    values = [of_leaf(leaf) if each else _NOTHING for leaf, each in leaves]
    if not written:
        return values
    state = {place_key(each.source): value for each, value in zip(program.inputs, inputs)}
    for effect in program.effects:
        place, value = written_place(effect), getattr(effect, "value", None)
        if place is not None and isinstance(value, (Output, Constant)):
            state[place_key(place)] = given[value.index] if isinstance(value, Output) else value.value
    return [*(values or [0]), *(state[place] for place in written)]


def _inputs(program: Program, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    return [_copy(read_source(given.source, args, kwargs)) for given in program.inputs]


def _declared(value: Any, declared: Any) -> Any:
    """A value as an artefact has it: a list as a tensor, a number as one where other paths have a tensor."""
    if isinstance(declared, ListType):
        return rows_of(value, declared) if len(value) else _EmptyList(rows_of(value, declared), declared)
    if isinstance(declared, torch.Tensor) and not isinstance(value, torch.Tensor):
        return torch.tensor(value, dtype=declared.dtype)
    return value


@dataclass(frozen=True)
class _EmptyList:
    """A list without elements: of what size they would be, nobody can say of a size that only the run knows."""

    rows: torch.Tensor
    type: ListType

    def like(self, got: torch.Tensor) -> torch.Tensor:
        """The rows, with the sizes of another tensor where any would do."""
        sizes = getattr(self.type.element, "shape", ())
        if got.dim() != self.rows.dim():
            return self.rows
        known = [size if isinstance(size, int) else found for size, found in zip(sizes, got.shape[1:], strict=True)]
        return self.rows.new_zeros((0, *known))


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.copy(value)


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except BaseException as error:
        if unwinds(error):
            raise
        return error


def _shown(outcome: Any) -> str:
    if isinstance(outcome, BaseException):
        text = str(outcome).strip().splitlines()
        return f"{type(outcome).__name__}({text[0] if text else ''})"[:300]
    return f"{len(outcome)} outputs"


def _compare(name: str, want: Any, got: torch.Tensor, random: Any) -> None:
    """Compare one output; ``random`` is what stands for one that depends on draws, None for any other."""
    if want is _NOTHING:
        return
    if isinstance(want, _EmptyList):
        want = want.like(got)
    if not isinstance(want, torch.Tensor):
        want = torch.tensor(want, dtype=dtype_of(type(want)))
    want = want.detach()
    rtol, atol = (1e-4, 1e-5) if want.dtype == torch.float32 else (None, None)  # None: torch's own for the dtype
    try:
        if random is not None:
            same = want.dtype == got.dtype and _has_shape(got, want, random)
            assert same, f"{want.dtype}{list(want.shape)} and {got.dtype}{list(got.shape)}"
        else:
            torch.testing.assert_close(got.detach(), want, equal_nan=True, rtol=rtol, atol=atol)
    except AssertionError as error:
        text = " ".join(str(error).split())
        raise refuse("SG403", f"{name} differs from the program's: {text}") from error


def _has_shape(got: torch.Tensor, want: torch.Tensor, declared: Any) -> bool:
    """Whether a tensor has the sizes of another one, but for those that the draws may decide."""
    sizes = declared.shape if isinstance(declared, torch.Tensor) else ()
    known = [isinstance(size, int) for size in sizes] if len(sizes) == want.dim() else [False] * want.dim()
    return got.dim() == want.dim() and all(a == b for a, b, same in zip(got.shape, want.shape, known) if same)
