"""`Program`: one captured call, as frozen data.

The graph is plain `torch.fx`. Operations stand as the user wrote them (``torch.*``, ``F.*``, tensor methods, Python's
operators on numbers). A branch is a ``torch.ops.higher_order.cond`` node ``cond(predicate, true, false, operands)``; a
loop is a ``torch.ops.higher_order.while_loop`` node ``while_loop(test, body, carried, closed_over)``; ``true``,
``false``, ``test`` and ``body`` are ``get_attr`` nodes of child `GraphModule` regions. What torch has no operator for
is a function of `program.operations`. A value is a tensor or a Python number: a node's ``meta["val"]`` is
the `FakeTensor`, or the ``SymInt`` / ``SymFloat`` / ``SymBool`` / constant that stands for the number.

``meta`` of every node: ``val``; ``context`` (a `program.context.Context`); ``location`` (the user's line, a
`core.location.Location`); of a branch also ``written`` (see `program.blocks.written_as`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from torch import fx, nn

from stillgraph.core.diagnostics import Side
from stillgraph.core.operation import Operation
from stillgraph.program.effects import DeleteAttribute, Effect
from stillgraph.program.graphs import regions
from stillgraph.program.guards import Guard
from stillgraph.program.input_spec import Dim
from stillgraph.program.outputs import Template, unset_in_choices
from stillgraph.program.printer import render
from stillgraph.program.record import Record
from stillgraph.program.sources import Source
from stillgraph.program.verify import verify

if TYPE_CHECKING:
    from torch.export import ExportedProgram


@dataclass(frozen=True)
class Input:
    """One placeholder of the root graph, in order.

    ``kind``: ``"argument"`` (a tensor or number of the call), ``"parameter"``, ``"buffer"``, ``"tensor"`` (any other
    tensor the capture met) or ``"state"`` (a Python number the call reads and writes).
    """

    name: str
    kind: str
    source: Source
    value: Any  # the FakeTensor or symbolic number that stands for it


@dataclass(frozen=True)
class Split:
    """Something that is done once for each of two paths, because what they left in one place has no join.

    Attributes:
        place: the variable, attribute or item.
        why: what is wrong with the two values.
        location: the user's line that does it, a `core.location.Location`; None if there is none.
        sides: the two values and the lines that gave them, as messages show them.
        reason: a code of `core.reasons.REASONS`.
    """

    place: str
    why: str
    location: Any
    sides: tuple[Side, ...] = ()
    reason: str = "SG602"

    def __str__(self) -> str:
        where = "" if self.location is None else f" at {self.location.file.rsplit('/', 1)[-1]}:{self.location.line}"
        return f"'{self.place}' is used once per path{where}: {self.why}"


callable_of: Operation[[Program], Callable[..., Any]] = Operation("callable_of", "stillgraph.runtime.calls.of_program")
"""What runs a program."""

Example = tuple[Sequence[Any], Mapping[str, Any] | None]
"""An example call: its arguments, and those by name."""

_IN_MEMORY = "stillgraph.api.in_memory"
exported_program_of: Operation[[Program, Example], ExportedProgram] = Operation("exported_program_of", _IN_MEMORY)
"""See `Program.to_exported_program`."""
onnx_of: Operation[[Program, Example, int | None], Any] = Operation("onnx_of", _IN_MEMORY)
"""See `Program.to_onnx`."""
module_of: Operation[[Program, Example], nn.Module] = Operation("module_of", _IN_MEMORY)
"""See `Program.module`."""


@dataclass(frozen=True)
class Program:
    """A captured program. Printed by ``str()``; run by calling it; checked by `program.verify.verify`."""

    name: str
    location: Any  # core.location.Location of the function
    inputs: tuple[Input, ...]
    graph: fx.GraphModule
    result: Template
    effects: tuple[Effect, ...]
    guards: tuple[Guard, ...]
    midway: tuple[tuple[Effect, ...], ...] = ()  # the effects before a ``raise``, or before `operations.settle`
    splits: tuple[Split, ...] = ()
    watched: bool = False  # whether a context manager of the user's sees how a block of it ends
    so_far: tuple[tuple[Effect, ...], ...] = ()  # the effects before an operation that may fail, see `program.so_far`
    passes_by: bool = False  # whether an operation that fails does not tell a block that eager PyTorch tells of it
    dims: Mapping[Source, tuple[Dim | None, ...]] = field(default_factory=dict, compare=False, repr=False)
    record: Record = field(default=Record(), compare=False, repr=False)  # how it was captured

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the program. Nothing is captured; of a method's program, the object is the first argument.

        Args:
            args, kwargs: given by position and by name as in the call that was captured.

        Raises:
            ValueError: a guard does not hold, or the arguments are other ones than those of the call.
        """
        return self._called(args, kwargs)

    @functools.cached_property
    def _called(self) -> Callable[..., Any]:
        return callable_of(self)

    def to_exported_program(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> ExportedProgram:
        """The program as `torch.export` has it, with what `stillgraph.save` writes in a ``.pt2``, and checked alike.

        It takes the tensors of the call and gives those of the result, in order. It has copies of the weights.

        Args:
            args, kwargs: an example call; of a module's or method's program, the object is the first argument.

        Raises:
            ExportError: `torch.export` has no form for it, or the exported program gives something else.
            ValueError: the example lacks an argument.
        """
        return exported_program_of(self, (args, kwargs))

    def to_onnx(
        self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, *, opset: int | None = None
    ) -> Any:
        """The program as an ``onnx.ModelProto``: what `stillgraph.save` writes in an ``.onnx``, and checked alike.

        Args:
            args, kwargs: as `to_exported_program` takes them.
            opset: the version of ONNX's operators; by default that of `torch.onnx`.

        Raises:
            ExportError: ONNX has no form for it, or the model gives something else.
            ValueError: the example lacks an argument, or there is no such opset.
        """
        return onnx_of(self, (args, kwargs), opset)

    def module(self, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> nn.Module:
        """The program as a module that needs none of the code it was captured from.

        It is called like the example, without a module that stands first there. It has copies of the parameters and
        buffers that the program reads, under the original's names, and keeps the dtypes of the example. It computes no
        gradients, as what `stillgraph.load` gives of a ``.pt2``.

        Args:
            args, kwargs: as `to_exported_program` takes them.

        Raises:
            ExportError: as `to_exported_program`.
            ValueError: the example lacks an argument.
        """
        return module_of(self, (args, kwargs))

    @property
    def parameters(self) -> tuple[Input, ...]:
        """The inputs that are parameters of modules."""
        return tuple(i for i in self.inputs if i.kind == "parameter")

    @property
    def unset_in_choices(self) -> frozenset[int]:
        """The outputs that may be unset, and that are looked at only where they have a value."""
        values = [effect.value for effect in self.effects if not isinstance(effect, DeleteAttribute)]
        return unset_in_choices([self.result, *values])

    @property
    def regions(self) -> tuple[fx.GraphModule, ...]:
        """The straight-line graphs: the top level, and the bodies of branches and loops."""
        return tuple(regions(self.graph))

    @property
    def source_map(self) -> dict[str, Any]:
        """The user's line (a `core.location.Location`) for each ``"region/node"``, regions numbered in order."""
        return {
            f"{number}/{node.name}": node.meta["location"]
            for number, region in enumerate(self.regions)
            for node in region.graph.nodes
            if node.meta.get("location") is not None
        }

    def verify(self) -> None:
        """Check that the program is well formed.

        Raises:
            InternalError: it is not.
        """
        verify(self)

    def __str__(self) -> str:
        return render(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f'<pre style="line-height: 1.3">{escape(str(self))}</pre>'
