"""What every test starts from: one thread, the same random numbers, reproducible hypothesis examples."""
from __future__ import annotations

import logging
import os

import hypothesis
import pytest

# MKL computes the same matrix product by other instructions where the memory is aligned otherwise; tests that compare
# bit by bit want it to be one way. It asks when it is first used.
os.environ.setdefault("MKL_CBWR", "COMPATIBLE")

import torch

hypothesis.settings.register_profile("stillgraph", deadline=None, derandomize=True)
hypothesis.settings.load_profile("stillgraph")
torch.set_num_threads(1)  # tests run in several processes


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Torch describes each symbol it makes, stack and all, to whoever listens: pytest's recorder of logs does."""
    logging.getLogger("torch.__trace").handlers.clear()
