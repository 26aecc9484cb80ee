"""What every test starts from: one thread, the same random numbers, reproducible hypothesis examples."""
from __future__ import annotations

import collections
import logging
import os
from pathlib import Path

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


# ---- what `make test` leaves to `make test-all`
def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="do not look into shares.txt, by which tests are slow")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what is beyond a test's share of the fast suite."""
    if config.getoption("--whole"):
        return
    lines = Path(__file__).with_name("shares.txt").read_text().splitlines()
    shares = dict(line.split() for line in lines if not line.startswith("#"))
    turns: collections.Counter[str] = collections.Counter()
    for item in items:
        test = item.nodeid.partition("[")[0].removeprefix("tests/")
        if test in shares and item.get_closest_marker("slow") is None:
            share = int(shares[test])
            if share == 0 or turns[test] % share:
                item.add_marker(pytest.mark.slow)
            turns[test] += 1
