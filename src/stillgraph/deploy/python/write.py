"""Python source on disk: written beside its place, run there, compared with the program, and only then moved."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from torch import nn

from stillgraph.core.diagnostics import refuse
from stillgraph.deploy.description.identities import refuse_compared
from stillgraph.deploy.description.left_behind import refuse_absent, refuse_advanced, refuse_shared, without_persistence
from stillgraph.deploy.description.other_sizes import OTHER_SIZES, Served
from stillgraph.deploy.description.shared_memory import refuse_shared_memory
from stillgraph.deploy.description.whereabouts import Whereabouts
from stillgraph.deploy.exporting.verification import example_run
from stillgraph.deploy.python.file import file_of
from stillgraph.deploy.python.style import Style, style_of
from stillgraph.deploy.python.trial import try_out
from stillgraph.program.facts.module_tables import entered
from stillgraph.program.program import Program


def write_python(
    program: Program,
    target: Path,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    function: Any,
    receiver: int,
    control_flow: str | None,
    seconds: float | None = None,
    served: tuple[Served, ...] = (),
) -> None:
    """Save a program as Python source, and its weights beside it.

    Args:
        program: what to write.
        target: of the file; the weights go to ``<stem>_weights.pt`` in the same folder.
        args, kwargs: the example call, a receiver first.
        function: what was called, without its receiver; None where it is not known.
        receiver: 1 if ``args[0]`` is the receiver.
        control_flow: ``"torch"``, ``"python"``, or None for torch's operators wherever they say the same.
        seconds: how long a trial of the file may run on the example call; None for no bound.
        served: sizes that the program serves besides the example's.

    Raises:
        ExportError: Python with torch alone cannot say what the program does, or the file differs from it.
        ValueError: the file is one that the program was made from.
    """
    _check_not_the_source(program, target)
    program = without_persistence(program)
    refuse_advanced(program)
    refuse_absent(program)
    refuse_shared(program)
    refuse_shared_memory(program)
    refuse_compared(program, args, kwargs)
    if function is None and args and isinstance(args[0], nn.Module):
        function, receiver = entered(args[0]), 1
    weights_name = f"{target.stem}_weights.pt"
    style = style_of(program, control_flow, Whereabouts(args, kwargs))
    folder = Path(tempfile.mkdtemp(prefix=f".{target.stem}-", dir=target.parent))
    try:
        paths = folder / target.name, folder / weights_name
        file = file_of(program, style, args, kwargs, function, receiver, weights_name)
        with example_run(program, seconds):
            wrong = try_out(program, file, *paths, args, kwargs, served)
        if wrong is not None and style.torch and control_flow is None:
            verb = "do not take it" if wrong.raised else "give something else"
            style = Style(False, program, f"torch's operators {verb} ({wrong.text})")
            file = file_of(program, style, args, kwargs, function, receiver, weights_name)
            with example_run(program, seconds):
                wrong = try_out(program, file, *paths, args, kwargs, served)
        if wrong is not None and wrong.sizes:
            message = f"the file would not serve every size of an open dimension: for {wrong.sizes}, {wrong.text}"
            raise refuse("SG501", message, location=program.location, hint=OTHER_SIZES)
        if wrong is not None and wrong.raised and style.torch:
            message = f"torch.cond and while_loop cannot express this: {wrong.text}"
            raise refuse("SG402", message, location=program.location)
        if wrong is not None:
            message = f"the written file differs from the program: {wrong.text}"
            raise refuse("SG403", message, location=program.location)
        if file.weights:
            os.replace(folder / weights_name, target.with_name(weights_name))
        os.replace(folder / target.name, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_not_the_source(program: Program, target: Path) -> None:
    places = [program.location, *program.source_map.values()]
    files = {Path(place.file) for place in places if place is not None}
    if any(file.exists() and target.exists() and file.samefile(target) for file in files):
        raise ValueError(f"{target.name!r} is a file that the program was made from: save it under another name")
