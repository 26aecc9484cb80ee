"""Saving as `api.save` does, for tests of what is saved, and reading any file of one program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import nn

import stillgraph as sg
from stillgraph.deploy.archive import save_program
from stillgraph.deploy.python.trial import imported


def save(target: Any, path: Path, args: tuple[Any, ...], **options: Any) -> None:
    """Capture a function or module and save the program."""
    receiver = (target,) if isinstance(target, nn.Module) else ()
    program = sg.export(target, args, **options)
    called = target.forward if receiver else target
    save_program(program, path, (*receiver, *args), {}, function=called, has_receiver=bool(receiver))


@contextlib.contextmanager
def opened(path: Path, target: Any) -> Iterator[Any]:
    """What a file has for a function or module that was saved."""
    if path.suffix != ".py":
        yield sg.load(path)
        return
    with imported(path) as module:
        yield module.load() if hasattr(module, "load") else getattr(module, target.__name__)
