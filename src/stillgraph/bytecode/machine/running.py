"""How the interpreter goes on, for what interprets a statement as a whole. `interpreter` defines it."""

from __future__ import annotations

from stillgraph.bytecode.machine.frame import Frame
from stillgraph.core.operation import Operation
from stillgraph.trace.heap.exits import Exit

carry_out: Operation[[Frame], None] = Operation("carry_out")
is_handled: Operation[[Frame, int, BaseException], bool] = Operation("is_handled")
run_block: Operation[..., Exit | None] = Operation("run_block")
