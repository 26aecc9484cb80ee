"""What every test starts from: one thread, the same random numbers, reproducible hypothesis examples."""
from __future__ import annotations

import collections
import logging
import os
from pathlib import Path

import hypothesis
import pytest

from tests.sampling import is_taken

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


# ---- what `make test` leaves to `make test-all`, and that to `make test-whole`
SHARES = Path(__file__).with_name("shares.txt")
MECHANISMS = ("front_end", "way", "full_graph", "full", "cut", "backend", "lowering", "suffix", "writer")
"""Parameters by which a test goes through other code of ours: of each of them a share is taken, rather than of all."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="take all parameters of each test, whatever shares.txt says")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark as slow what is beyond a test's share of `make test`; leave out what is beyond that of `make test-all`."""
    if config.getoption("--whole") or "STILLGRAPH_UPDATE_GOLDEN" in os.environ:
        return
    lines = (line.split() for line in SHARES.read_text().splitlines() if not line.startswith("#"))
    shares = {test: (int(fast), int(slow)) for test, fast, slow in lines}
    turns: collections.Counter[tuple[str, ...]] = collections.Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        test = item.nodeid.partition("[")[0].removeprefix("tests/")
        fast, slow = shares.get(test, (1, 1))
        if item.get_closest_marker("slow") is None and not is_taken(_turn(turns, test, "fast"), fast):
            item.add_marker(pytest.mark.slow)
        is_slow = item.get_closest_marker("slow") is not None
        taken = not is_slow or is_taken(_turn(turns, test, "slow", *_mechanisms(item)), slow)
        (kept if taken else left).append(item)
    items[:] = kept
    if left:
        config.hook.pytest_deselected(items=left)


def _mechanisms(item: pytest.Item) -> list[str]:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return [str(params[name]) for name in MECHANISMS if name in params]


def _turn(turns: collections.Counter[tuple[str, ...]], *what: str) -> int:
    turns[what] += 1
    return turns[what] - 1
