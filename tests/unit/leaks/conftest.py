"""Tests of what is freed collect often: what was there before them need not be gone through each time."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def _set_aside() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
