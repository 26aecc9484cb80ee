"""Saving as `api.save` does, for tests of what is saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

import stillgraph as sg
from stillgraph.deploy.archive import save_program


def save(target: Any, path: Path, args: tuple[Any, ...], **options: Any) -> None:
    """Capture a function or module and save the program."""
    receiver = (target,) if isinstance(target, nn.Module) else ()
    program = sg.export(target, args, **options)
    called = target.forward if receiver else target
    save_program(program, path, (*receiver, *args), {}, function=called, has_receiver=bool(receiver))
