"""One structure for every path: what an artefact returns has one signature."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.list_results import two_tensors_for_lists
from stillgraph.passes.exceptions.catching import hand_out_failures
from stillgraph.passes.loops.after_loops import is_accumulator, is_true_behind
from stillgraph.passes.numbers.kinds import Kinds, kinds_given
from stillgraph.passes.regions.regions import call, copied, outputs, set_outputs
from stillgraph.passes.regions.values import Fakes, is_optional, value_of
from stillgraph.passes.state.growing import expression
from stillgraph.program.constants import Known, is_constant
from stillgraph.program.effects import Effect
from stillgraph.program.facts.info import info
from stillgraph.program.graphs import arguments
from stillgraph.program.guards import LengthGuard, TypeGuard
from stillgraph.program.operations import kind_code
from stillgraph.program.outputs import (
    Choice,
    Constant,
    Container,
    Instance,
    Maybe,
    OfKind,
    OneOf,
    OrNone,
    Output,
    Same,
    Template,
)
from stillgraph.program.program import Program
from stillgraph.program.sources import Item, Source
from stillgraph.program.types import show_shape


def one_structure(program: Program) -> Program:
    """The program with a result of one structure.

    Where one path returns ``None`` and another a value, the result is the value, and an output that tells whether it
    is ``None``. Of a number whose type depends on the path an output tells the type. Where both paths return the same
    structure of tensors, of which one is an argument, the tensors are chosen. A list of tensors whose sizes differ
    becomes two tensors.

    Raises:
        ExportError: two paths return different structures, dtypes or numbers of dimensions.
    """
    if any(isinstance(template, Maybe) for template in _templates(program.result)):
        raise _refused_keys(program)
    settle = _Settle(copied(program), kinds_given(hand_out_failures(program).graph))
    settled = settle.program(program.result, program.effects)
    return two_tensors_for_lists(program if settled is None else settled)


def _templates(template: Template) -> Iterator[Template]:
    """A template and all those in it, down to what is chosen."""
    yield template
    for child in _children(template):
        yield from _templates(child)


def _children(template: Template) -> tuple[Template, ...]:
    if isinstance(template, Container):
        return template.children
    return tuple(value for _, value in template.attributes) if isinstance(template, Instance) else ()


class _Settle:
    """Writes a result anew; ``kinds`` are those that each output of the program may be of."""

    def __init__(self, program: Program, kinds: list[Kinds]) -> None:
        self._program = program
        self._kinds = kinds
        self._fakes = Fakes(program.graph)
        self._settled: dict[int, Template] = {}  # what stands for each output
        self._has_changed = False
        effects = (getattr(effect, "value", None) for effect in program.effects)
        self._written = {value.index for value in effects if isinstance(value, Output)}

    def program(self, result: Template, effects: tuple[Effect, ...]) -> Program | None:
        """The program with another result, and other effects; None where it need not have others."""
        result, effects = self.template(result), tuple(map(self._effect, effects))
        return replace(self._program, result=result, effects=effects) if self._has_changed else None

    def _effect(self, effect: Effect) -> Effect:
        value: Any = getattr(effect, "value", None)
        if not isinstance(value, Output):
            return effect
        changed: Effect = replace(effect, value=self._leaf(value))  # type: ignore[arg-type]  # it has a value
        return changed

    def template(self, template: Template) -> Template:
        if isinstance(template, Output):
            return self._leaf(template)
        if isinstance(template, Choice):
            self._has_changed = True
            return self._choice(template)
        if isinstance(template, Container):
            return replace(template, children=tuple(self.template(child) for child in template.children))
        if isinstance(template, Instance):
            return replace(template, attributes=tuple((n, self.template(v)) for n, v in template.attributes))
        return template

    def _choice(self, choice: Choice) -> Template:
        if _is_none(choice.left) == _is_none(choice.right):
            merged = self._merged(choice.flag, choice.left, choice.right)
            if merged is None:
                raise _refused(self._program, choice)
            return merged
        flag = outputs(self._program.graph)[choice.flag.index]
        if is_true_behind(self._program.graph, flag):
            return self.template(choice.left)
        if _is_none(choice.left):
            return OrNone(choice.flag, self.template(choice.right))
        return OrNone(self._asked(operator.not_, (flag,), bool), self.template(choice.left))

    def _leaf(self, output: Output) -> Template:
        """An output, with others that tell whether it is ``None`` and of which kind, where they are needed."""
        if output.index not in self._settled:
            self._settled[output.index] = self._told(output)
        return self._settled[output.index]

    def _told(self, output: Output) -> Template:
        value = outputs(self._program.graph)[output.index]
        none, unbound = _absences(value)
        if none and unbound:
            raise _refused_unbound(self._program)
        told: Template = output
        if len(self._kinds[output.index]) > 1:
            told = OfKind(output, self._asked(kind_code, (value,), int))
        if none and (output.index in self._written or not is_accumulator(self._program.graph, value)):
            told = OrNone(self._asked(operator.is_, (value, None), bool), told)
        self._has_changed = self._has_changed or told is not output
        return told

    def _asked(self, function: Any, args: tuple[Any, ...], kind: type) -> Output:
        """An output for what a function of Python's says."""
        return self._output(self._computed(function, args, kind))

    def _computed(self, function: Any, args: tuple[Any, ...], kind: type) -> fx.Node:
        end = self._program.graph.graph.output_node()
        with end.graph.inserting_before(end):
            return call(end, function, args, self._fakes.number(kind))

    def _entry(self, template: Template, table: dict[Known, int]) -> int | fx.Node | None:
        """The number of the entry of a table that a result is; None for what is not one of some constants."""
        if isinstance(template, Constant):
            return table.setdefault(Known(template.value), len(table)) if is_constant(template.value) else None
        if not isinstance(template, Choice):
            return None
        left, right = self._entry(template.left, table), self._entry(template.right, table)
        if left is None or right is None or left == right:
            return left if left == right else None
        flag = outputs(self._program.graph)[template.flag.index]
        return self._added(right, self._computed(operator.mul, (flag, self._added(left, right, -1)), int), 1)

    def _added(self, first: int | fx.Node, second: int | fx.Node, sign: int) -> int | fx.Node:
        if isinstance(first, int) and isinstance(second, int):
            return first + sign * second
        return self._computed(operator.add if sign > 0 else operator.sub, (first, second), int)

    def _in_table(self, choice: Choice) -> Template | None:
        """A choice among constants as an entry of a table of them."""
        table: dict[Known, int] = {}
        number = self._entry(choice, table)
        if not isinstance(number, fx.Node):
            return None if number is None else Constant(next(iter(table)).value)
        return OneOf(self._output(number), tuple((at, Constant(entry.value)) for entry, at in table.items()))

    def _merged(self, flag: Output, left: Template, right: Template) -> Template | None:
        """One template for two of the same structure, each tensor chosen by the flag, each constant by its number."""
        constants = self._in_table(Choice(flag, left, right))
        if constants is not None:
            return constants
        left, right = self._opened(left), self._opened(right)
        if isinstance(left, Output) and isinstance(right, Output):
            return self._chosen(flag, left, right)
        if not isinstance(left, Container) or not isinstance(right, Container):
            return None
        if left.type is not right.type or len(left.children) != len(right.children):
            return None
        if left.type not in (list, tuple) and left.context != right.context:
            return None
        children = [self._merged(flag, a, b) for a, b in zip(left.children, right.children)]
        joined = tuple(child for child in children if child is not None)
        return replace(left, children=joined) if len(joined) == len(children) else None

    def _opened(self, template: Template) -> Template:
        """An argument that is handed back, as the tensors in it."""
        if not isinstance(template, Same):
            return template
        places = self._program.graph.graph.find_nodes(op="placeholder")
        for given, place in zip(self._program.inputs, places):
            if given.source == template.source:
                return self._output(place)
        for guard in self._program.guards:
            if isinstance(guard, LengthGuard) and guard.source == template.source:
                parts = tuple(self._opened(Same(Item(template.source, i))) for i in range(guard.length))
                return Container(self._type_of(template.source), None, parts)
        return template

    def _type_of(self, source: Source) -> type:
        guards = self._program.guards
        return next((g.type for g in guards if isinstance(g, TypeGuard) and g.source == source), tuple)

    def _output(self, node: fx.Node) -> Output:
        values = outputs(self._program.graph)
        set_outputs(self._program.graph, [*values, node])
        return Output(len(values))

    def _chosen(self, flag: Output, left: Output, right: Output) -> Output | None:
        values = outputs(self._program.graph)
        condition, first, second = (values[output.index] for output in (flag, left, right))
        given, other = value_of(first), value_of(second)
        if any(map(is_optional, (given, other))):
            return None
        if not isinstance(given, torch.Tensor) or not isinstance(other, torch.Tensor):
            return None
        if given.dtype != other.dtype or [*map(expression, given.shape)] != [*map(expression, other.shape)]:
            return None
        graph = self._program.graph.graph
        with graph.inserting_before(graph.output_node()):
            truth = graph.call_function(bool, (condition,))
            truth.meta["val"] = self._fakes.number(bool)
            mask = graph.call_function(torch.scalar_tensor, (truth,), {"dtype": torch.bool})
            mask.meta["val"] = self._fakes.scalar(bool)
            node = graph.call_function(torch.where, (mask, first, second))
            node.meta["val"] = self._fakes.like(given)
        return self._output(node)


def _is_none(template: Template) -> bool:
    return isinstance(template, Constant) and template.value is None


def _absences(value: Any) -> tuple[bool, bool]:
    """Whether an output may be ``None``, and whether it may be unbound."""
    found = value_of(value)
    if isinstance(value, fx.Node) and value.target is operator.getitem:
        source, index = arguments(value)
        given = value_of(source) if isinstance(source, fx.Node) else None
        found = given[index] if isinstance(given, tuple) else found  # a number says it here alone
    return info(found).may_be_none, info(found).may_be_unbound


def _refused_unbound(program: Program) -> BaseException:
    message = "the result is None on one path, and a variable without a value on another"
    return refuse("SG401", message, location=program.location, hint="Give the variable a value before the branch.")


def _refused(program: Program, choice: Choice) -> BaseException:
    message = _difference(program, choice)
    hint = "Return the same structure of tensors from every path: one number of dimensions, one dtype, as many values."
    return refuse("SG401", message, location=program.location, hint=hint, sides=choice.sides)


def _refused_keys(program: Program) -> BaseException:
    keys = [
        repr(key)
        for template in _templates(program.result)
        if isinstance(template, Container) and issubclass(template.type, dict)
        for key, child in zip(template.context, template.children)
        if isinstance(child, Maybe)
    ]
    named = f"the {'key' if len(keys) == 1 else 'keys'} {', '.join(keys)}" if keys else "an element"
    message = f"the result has {named} on some paths only"
    hint = "Give the result all its keys before the branch: a tensor of the same shape, where there is nothing to say."
    return refuse("SG401", message, location=program.location, hint=hint)


def _shown(template: Template, values: list[Any]) -> str:
    """A result as messages name it."""
    if isinstance(template, Output):
        value = value_of(values[template.index])
        if not isinstance(value, torch.Tensor):
            return "a number"
        sizes = tuple(size if isinstance(size, int) else None for size in value.shape)
        return f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {show_shape(sizes)}"
    if isinstance(template, Container):
        return f"a {template.type.__name__} of {len(template.children)}"
    if isinstance(template, Instance):
        return f"a {template.type.__name__}"
    if isinstance(template, Same):
        return f"{template.source} as it was passed in"
    return repr(template.value) if isinstance(template, Constant) else "another result"


def _difference(program: Program, choice: Choice) -> str:
    """How the two results of a choice differ, in the words of seed 002."""
    given = outputs(program.graph)
    sides = (choice.left, choice.right)
    values = [value_of(given[side.index]) if isinstance(side, Output) else None for side in sides]
    if not all(isinstance(value, torch.Tensor) for value in values):
        return f"outputs differ in structure: {_shown(choice.left, given)} and {_shown(choice.right, given)}"
    left, right = (value for value in values if isinstance(value, torch.Tensor))
    if left.dtype != right.dtype:
        return f"outputs differ in dtype: {left.dtype} and {right.dtype}"
    shapes = [tuple(size if isinstance(size, int) else None for size in value.shape) for value in (left, right)]
    shown = ", ".join(f"shape{number} = {show_shape(shape)}" for number, shape in enumerate(shapes, 1))
    if _unknown_rank(*shapes):
        return f"the result is of unknown rank: {shown}; an export has one number of dimensions"
    return f"Shape Join Failed: {shown}"


def _unknown_rank(left: tuple[int | None, ...], right: tuple[int | None, ...]) -> bool:
    """Seed 002, rule 4: shapes of different rank join to an unknown rank if they agree up to an unknown dimension."""
    short, long = sorted((left, right), key=len)
    if None not in short or len(short) == len(long):
        return False
    known = short[: short.index(None)]
    return long[: len(known)] == known
