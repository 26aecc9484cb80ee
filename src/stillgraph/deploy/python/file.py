"""The text of a written file: head, imports, helpers, the module or function, ``load``."""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx, nn

from stillgraph.core.diagnostics import InternalError, refuse, shown_lines
from stillgraph.deploy.description.signature import place_key, refuse_arrays, written_place
from stillgraph.deploy.python.calls import Call, call_of, is_given
from stillgraph.deploy.python.checks import checks_of
from stillgraph.deploy.python.head import head_of
from stillgraph.deploy.python.helpers import HELPERS
from stillgraph.deploy.python.lines import Lines, wrapped
from stillgraph.deploy.python.places import Places
from stillgraph.deploy.python.python_regions import PythonRegions
from stillgraph.deploy.python.regions import Regions
from stillgraph.deploy.python.results import Results
from stillgraph.deploy.python.scopes import Scope
from stillgraph.deploy.python.spelling import BUILTINS, Spelling
from stillgraph.deploy.python.stand_ins import stand_ins
from stillgraph.deploy.python.style import Style
from stillgraph.deploy.python.torch_regions import TorchRegions
from stillgraph.deploy.python.variables import UserLines
from stillgraph.passes.regions.regions import all_regions, placeholders
from stillgraph.passes.regions.regions import outputs as outputs_of
from stillgraph.passes.regions.values import is_number, value_of
from stillgraph.program.context import Context
from stillgraph.program.guards import ConstantGuard, ModeGuard
from stillgraph.program.operations import unbound
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument, Attribute, Item, Slot

_IMPORTED = {"torch", "F", "nn", "math", "operator", "collections", "dataclasses", "enum", "Path", "while_loop"}
_MODULES = {*_IMPORTED, "self", "load"}


@dataclass(frozen=True)
class File:
    """A written file.

    Attributes:
        text: of the file.
        name: of its function or class.
        is_class: whether it is a class, which ``load()`` gives an instance of.
        weights: the tensors that lie beside the file.
        places: where the file keeps what is not an argument.
    """

    text: str
    name: str
    is_class: bool
    weights: dict[str, torch.Tensor]
    places: Places


def file_of(
    program: Program,
    style: Style,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    function: Any,
    receiver: int,
    weights_name: str,
) -> File:
    """Write a program as a file.

    Args:
        program: as captured.
        style: how its control flow is written.
        args, kwargs: the example call, a receiver first.
        function: what was called, whose parameters the written function takes; None where it is not known.
        receiver: 1 if ``args[0]`` is the receiver.
        weights_name: of the file with the weights.

    Raises:
        ExportError: Python with torch alone cannot say what the program does.
    """
    refuse_arrays(program)
    spelling = Spelling(program.location)
    call = call_of(program, function, args, kwargs, receiver, spelling)
    places = Places(call, args, kwargs, spelling, not style.torch, program.location)
    places.build(program)
    if places.is_class and "self" in call.names:
        message = "Python source: a parameter called 'self' beside the module's own; give it another name"
        raise refuse("SG402", message, location=program.location)
    name = _class_name(program, args, receiver) if places.is_class else _identifier(program.name)
    spelling.taken |= {name, *call.names}
    body = _Function(program, style, call, places, spelling, name).written()
    modules = {line.split()[-1].partition(".")[0] for line in spelling.imports}
    shadowed = next((each for each in call.names if each in modules), None)
    if shadowed is not None:
        message = f"Python source: a parameter called {shadowed!r}, which is a module that the file needs"
        raise refuse("SG402", message, location=program.location, hint="Give it another name, or save as .pt2.")
    parts = [head_of(program, style, call, places, name, weights_name)]
    definition = _class(places, call, body) if places.is_class else [*wrapped(f"def {name}({call.header}):", ""), *body]
    definition = [definition[0].replace("CLASS", name), *definition[1:]]
    extra = [_load(name, weights_name, places)] if places.is_class else []
    if places.is_class:
        spelling.imports.add("from torch import nn")
        if places.weights:
            spelling.imports.add("from pathlib import Path")
    stands = stand_ins(spelling)  # which may need imports and helpers
    parts += [_imports(spelling), *spelling.helper_texts(), *stands, "\n".join(definition), *extra]
    head, imports, *rest = parts
    text = "\n\n\n".join([f"{head}\n\n{imports}", *rest]) + "\n"
    return File(text, name, places.is_class, places.weights, places)


# ---- the function
@dataclass
class _Function:
    program: Program
    style: Style
    call: Call
    places: Places
    spelling: Spelling
    name: str

    def written(self) -> list[str]:
        """The lines of the function's body, without indentation of the class."""
        lines, scope = Lines(depth=1), self._scope()
        program = self.style.program
        inputs = placeholders(program.graph)
        for line in checks_of(self.program, self.places, self.spelling):
            lines.add(line)
        self._mode_checks(lines)
        self._inputs(lines, scope, inputs)
        kind = TorchRegions if self.style.torch else PythonRegions
        holder: list[Regions] = []

        def leave(index: int, values: list[str]) -> None:
            self._results(lines, holder[0].scope, values).write(None, self.program.midway[index])

        writer = kind(scope, lines, self.spelling, UserLines(), leave)
        holder.append(writer)
        try:
            outputs = writer.write(program.graph, self._ambient())
        except KeyError as error:
            place = writer.at or self.program.location
            shown = "" if place is None else "\n".join(["", *shown_lines(place)])
            message = f"Python source has no name for {error}; please report this program{shown}"
            raise InternalError(message) from error
        if outputs is not None:
            outputs = self._numbers(outputs)
            scope.locked |= {text for text in outputs if text.isidentifier()}
            returned = self._results(lines, scope, outputs).write(self.program.result, self.program.effects)
            lines.add(f"return {returned}")
        return _tidied(lines.lines)

    def _scope(self) -> Scope:
        helpers = set(HELPERS) | {"_bound"}
        return Scope(_MODULES | BUILTINS | helpers | {self.name, *keyword.kwlist})

    def _results(self, lines: Lines, scope: Scope, values: Sequence[str]) -> Results:
        return Results(self.places, self.spelling, lines, scope, values, self.program.location)

    def _ambient(self) -> Context | None:
        found = (guard.context for guard in self.program.guards if isinstance(guard, ModeGuard))
        return next(found, None)

    def _mode_checks(self, lines: Lines) -> None:
        if self.style.torch:
            tensors = [
                self.places.text(item.source)
                for item in self.program.inputs
                if is_given(item.source, self.call.receiver) and isinstance(item.value, torch.Tensor)
            ]
            if tensors:
                lines.add(f"{self.spelling.helper('_without_gradients')}({', '.join(tensors)})")
        modes = next((guard for guard in self.program.guards if isinstance(guard, ModeGuard)), None)
        if modes is not None and modes.context.autocast:
            message = "Python source does not know whether it will run under autocast: save outside of it"
            raise refuse("SG402", message, location=self.program.location)
        if modes is not None and _makes_tensors(self.program):
            check = self.spelling.helper("_expect_value")
            lines.add(f'{check}("the default dtype", torch.get_default_dtype(), {modes.default_dtype})')
        training = _training(self.program)
        if training is not None and self.call.receiver:
            check = self.spelling.helper("_expect_value")
            lines.add(f'{check}("training", self.training, {training})')

    def _inputs(self, lines: Lines, scope: Scope, inputs: list[fx.Node]) -> None:
        """Name the inputs: what is written in the call is read at its beginning, the rest where it is used."""
        effects = [*self.program.effects, *(each for group in self.program.midway for each in group)]
        written = {place_key(place) for place in map(written_place, effects) if place is not None}
        for name in self.call.names:
            scope.reserved.add(name)
        for item in self.program.inputs:
            if isinstance(item.source, Argument):
                scope.reserved.discard(self.places.text(item.source))
        for node, item in zip(inputs, self.program.inputs):
            text = self.places.text(item.source)
            if isinstance(item.source, Argument) and text.isidentifier():
                scope.hold(node, text)
            elif node.users:
                handed_down = self.style.torch and any(user.target in _HANDING for user in node.users)
                changing = place_key(item.source) in written or isinstance(item.source, Item)
                if is_number(item.value) or changing or handed_down:
                    name = scope.choose(_local_name(item.name))
                    lines.add(f"{name} = {text}")
                    scope.assign(node, name)
                else:
                    scope.names[node] = text
            else:
                scope.names[node] = text

    def _numbers(self, outputs: list[str]) -> list[str]:
        """Numbers as numbers, where tensors stand for them; what leaves must have a value."""
        if any(node.target is unbound for module in all_regions(self.program.graph) for node in module.graph.nodes):
            return [f"{self.spelling.helper('_bound')}({text})" for text in outputs]
        if not self.style.torch:
            return outputs
        kinds = [is_number(value_of(value)) and isinstance(value, fx.Node) for value in outputs_of(self.program.graph)]
        return [f"{text}.item()" if number else text for text, number in zip(outputs, kinds)]


def _makes_tensors(program: Program) -> bool:
    """Whether a program makes tensors of which torch's default says the dtype."""
    return any(
        node.op == "call_function"
        and isinstance(value_of(node), torch.Tensor)
        and node.target is not operator.getitem  # a part of what a construct gives
        and value_of(node).is_floating_point()
        and node.kwargs.get("dtype") is None
        and not any(isinstance(value_of(each), torch.Tensor) for each in node.all_input_nodes)
        for module in all_regions(program.graph)
        for node in module.graph.nodes
    )


_HANDING = (torch.ops.higher_order.cond, torch.ops.higher_order.while_loop)


def _local_name(name: str) -> str:
    return re.sub(r"^self_", "", name)


def _tidied(lines: list[str]) -> list[str]:
    """Lines without empty ones at the end of blocks."""
    found: list[str] = []
    for line, following in zip(lines, [*lines[1:], None]):
        if not line.strip() and (following is None or not following.strip()):
            continue
        found.append(line.rstrip())
    return found


# ---- the class
def _class(places: Places, call: Call, body: list[str]) -> list[str]:
    lines = Lines(depth=2)
    for line in places.lines:
        lines.add(line)
    return [
        f"class CLASS({places.base}):",
        "    def __init__(self):",
        f"        super().__init__({places.begin})",
        *lines.lines,
        "",
        *wrapped(f"def forward(self{', ' if call.header else ''}{call.header}):", "    "),
        *(f"    {line}" if line else "" for line in body),
    ]


def _load(name: str, weights_name: str, places: Places) -> str:
    training = "" if _is_training(places) else ".eval()"
    if not places.weights:
        return f'def load():\n    """The module as it was saved."""\n    return {name}(){training}'
    device = '"cpu"' if all(t.device.type == "cpu" for t in places.weights.values()) else "None"
    return "\n".join(
        (
            "def load(path=None):",
            f'    """The module with the weights of {weights_name} beside this file, or of another file."""',
            f'    path = Path(__file__).with_name("{weights_name}") if path is None else path',
            f"    weights = torch.load(path, map_location={device}, weights_only=True)",
            f"    module = {name}()",
            "    with torch.no_grad():",
            "        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:",
            "            if name in weights:",
            "                tensor.copy_(weights[name])",
            f"    return module{training}",
        )
    )


def _is_training(places: Places) -> bool:
    receiver = places.args[0] if places.call.receiver else None
    return receiver.training if isinstance(receiver, nn.Module) else True


def _training(program: Program) -> bool | None:
    """Whether training is on, where the program depends on it and on it alone."""
    known = {
        guard.value
        for guard in program.guards
        if isinstance(guard, ConstantGuard)
        and isinstance(guard.source, (Slot, Attribute))
        and guard.source.name == "training"
    }
    return known.pop() if len(known) == 1 else None


def _imports(spelling: Spelling) -> str:
    standard = sorted(each for each in spelling.imports if "torch" not in each)
    others = sorted((each for each in spelling.imports if "torch" in each), key=lambda e: (e.startswith("from"), e))
    standard.sort(key=lambda each: (each.startswith("from"), each))
    return "\n\n".join("\n".join(group) for group in (standard, others) if group)


# ---- names
def _identifier(name: str) -> str:
    cleaned = re.sub(r"\W", "_", name.rpartition(".")[2] or name)
    cleaned = cleaned.strip("_") or "program"
    return cleaned if cleaned.isidentifier() and not keyword.iskeyword(cleaned) else f"program_{cleaned}"


def _class_name(program: Program, args: tuple[Any, ...], receiver: int) -> str:
    if receiver and isinstance(args[0], nn.Module):
        return _identifier(type(args[0]).__name__)
    words = _identifier(program.name).split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)
