"""What a handler asks of the exception that it has caught: no graph has one, so the handler gets a number instead.

The number is that of the place that raised it, which `passes.raising` gives each.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.core.location import Location
from stillgraph.passes.regions.marks import ASKED, again, is_of, which_of
from stillgraph.passes.regions.regions import attribute, call, control_of, placeholders
from stillgraph.passes.regions.values import Fakes
from stillgraph.program.exceptions import raise_, raise_made, reraise, which
from stillgraph.program.graphs import arguments

_MEANINGS: dict[Any, tuple[Callable[..., Any], type | None]] = {
    isinstance: (is_of, bool),
    which: (which_of, int),
    reraise: (again, None),
}


def tell(handler: fx.GraphModule, error: fx.Node, attempt: int, fakes: Fakes) -> fx.Node | None:
    """Let a handler know its exception by a number.

    Args:
        handler: the region, whose inner ``try`` have been taken out.
        error: its placeholder of the exception.
        attempt: the number of the ``try``.
        fakes: makes what stands for the number.

    Returns:
        What uses the exception otherwise, if anything does.
    """
    error.meta["val"] = fakes.number(int)
    for user in list(error.users):
        if user.target in (raise_, raise_made, reraise) and user.kwargs.get("cause") is error:
            user.kwargs = {name: given for name, given in user.kwargs.items() if name != "cause"}  # a file tells none
    for user in list(error.users):
        control = control_of(handler, user)
        if control is not None:
            given = arguments(user)[3] if error in arguments(user)[3] else ()  # no loop carries an exception
            before = len(placeholders(control.regions[0])) - len(given)
            places = [before + index for index, each in enumerate(given) if each is error]
            inner = [(region, placeholders(region)[place]) for region in control.regions for place in places]
            found = [tell(region, each, attempt, fakes) for region, each in inner] if inner else [user]
            other = next((each for each in found if each is not None), None)
        else:
            other = None if user.target in _MEANINGS and arguments(user)[0] is error else user
            if other is None:
                _replace(handler, user, error, attempt, fakes)
        if other is not None:
            return other
    return None


def _replace(handler: fx.GraphModule, node: fx.Node, error: fx.Node, attempt: int, fakes: Fakes) -> None:
    operation, kind = _MEANINGS[node.target]
    with handler.graph.inserting_before(node):
        fresh = call(node, operation, (error, attempt), None if kind is None else fakes.number(kind))
    if kind is not None:
        kinds, *texts = fx.map_arg(arguments(node)[1:], lambda each: attribute(handler, each))
        fresh.meta[ASKED] = kinds, texts[0] if texts else None
    node.replace_all_uses_with(fresh)
    handler.graph.erase_node(node)


@dataclass(frozen=True)
class Site:
    """A place that raises.

    Attributes:
        kind: of what it raises.
        text: what that says, as far as it is known.
        shown: what ``repr`` gives for the arguments; None where the run alone knows.
        location: in the user's code.
    """

    kind: type[BaseException]
    text: str
    shown: str | None
    location: Location | None


def answered(node: fx.Node, reaching: Sequence[tuple[int, Site]], fakes: Fakes) -> Any:
    """What a handler is told: a constant where all that may reach it agree, or a node made where the graph inserts now.

    Args:
        node: of one of the operations `TOLD`.
        reaching: what may reach the handler.
        fakes: makes what stands for new values.

    Raises:
        ExportError: something may reach it of which its code does not ask.
    """
    number = arguments(node)[0]
    kinds, texts = node.meta[ASKED]
    if node.target is is_of:
        yes = [each for each, site in reaching if issubclass(site.kind, kinds)]
        if len(yes) in (0, len(reaching)):
            return bool(yes)
        same = [call(node, operator.eq, (number, each), fakes.number(bool)) for each in yes]
        return reduce(lambda left, right: call(node, operator.or_, (left, right), fakes.number(bool)), same)
    places = [(each, _place(site, kinds, texts)) for each, site in reaching]
    parts = []
    for each, place in places:
        if place:
            flag = call(node, operator.eq, (number, each), fakes.number(bool))
            parts.append(call(node, operator.mul, (flag, place), fakes.number(int)))
    return reduce(lambda left, right: call(node, operator.add, (left, right), fakes.number(int)), parts) if parts else 0


def _place(site: Site, kinds: Sequence[type[BaseException]], texts: Sequence[str] | None) -> int:
    """Where what a site raises stands among the exceptions that a handler tells apart."""
    for place, kind in enumerate(kinds):
        if kind is site.kind and (texts is None or texts[place] == site.shown):
            return place
    message = f"an except block tells exceptions apart, and {site.text.partition(':')[0]} may reach it too"
    raise refuse("SG402", message, location=site.location)
