"""The tests of operators run through both front ends: through bytecode in the slow suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.front_ends import through_bytecode
from tests.unit.operators.differences import DIFFERENCES


@pytest.fixture(autouse=True, params=["source", pytest.param("bytecode", marks=pytest.mark.slow)])
def front_end(request: pytest.FixtureRequest) -> Iterator[None]:
    """By which front end a test captures."""
    if request.param == "source":
        yield
    else:
        with through_bytecode():
            yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are not as through source when they go through bytecode."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        if callspec is None or callspec.params.get("front_end") != "bytecode":
            continue
        function = getattr(item, "originalname", item.name)
        own = item.name.removeprefix(f"{function}[").removesuffix("]").removeprefix("bytecode").removeprefix("-")
        why = DIFFERENCES.get((item.path.stem, function, own)) or DIFFERENCES.get((item.path.stem, function, ""))
        if why is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
