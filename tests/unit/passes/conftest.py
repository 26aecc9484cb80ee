"""Whole exports take minutes together: they belong to ``make test-all``; saving and loading stay in ``make test``."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests as slow, all but the quick file."""
    for item in items:
        if HERE in item.path.parents and item.path.name != "test_archive.py":
            item.add_marker(pytest.mark.slow)
