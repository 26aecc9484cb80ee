"""What the code asks a logger, another call may find changed: its level, whether it is off, its handlers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stillgraph as sg

LOGGER = logging.getLogger("stillgraph.tests.loggers")


class Trainer:
    def __init__(self) -> None:
        self.logger = LOGGER


TRAINER = Trainer()
QUESTIONS: dict[str, Callable[[], Any]] = {
    "its level": lambda: LOGGER.level <= logging.DEBUG,
    "whether it is off": lambda: LOGGER.disabled,
    "its handlers": lambda: len(LOGGER.handlers),
    "an object's": lambda: TRAINER.logger.level,
    "one by its name": lambda: logging.getLogger("stillgraph.tests.loggers").level,
    "the root's": lambda: logging.root.level,
    "the effective level": lambda: LOGGER.getEffectiveLevel(),
    "whether it speaks": lambda: LOGGER.isEnabledFor(logging.DEBUG),
}


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("what", QUESTIONS)
def test_it_is_asked_again(what: str, full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = QUESTIONS[what]

    def function(x: Any) -> Any:
        return ask(), x + 1

    monkeypatch.setattr(LOGGER, "handlers", [])
    static = sg.to_static(function, backend="eager", full_graph=full)
    before = LOGGER.level, logging.root.level
    try:
        for level in (10, 30, 30, 10):
            LOGGER.setLevel(level)
            logging.root.setLevel(level)
            LOGGER.disabled = level == 30
            LOGGER.handlers[:] = [logging.NullHandler()] * (level // 10)
            assert static(torch.ones(1))[0] == ask()
    finally:
        LOGGER.setLevel(before[0])
        logging.root.setLevel(before[1])
        LOGGER.disabled = False

