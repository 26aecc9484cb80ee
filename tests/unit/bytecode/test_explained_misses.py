"""Looking for the guard that fails runs no code of the user's, and changes nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import torch

from tests.unit.bytecode.segmented import Record, agrees, to_partial


class Endless:
    """A sequence of the old kind, which never ends."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __getitem__(self, key: Any) -> Any:
        self.asked.append(key)
        assert len(self.asked) < 20
        return torch.ones(1)


def test_objects_of_another_class_are_not_asked(recwarn: Any) -> None:
    def f(given: Any) -> Any:
        if isinstance(given, dict):
            return given["b"]["c"][0] * 2
        return torch.ones(2)

    for options in ({}, {"full_graph": True, "strict": False}):
        static, endless = to_partial(f, **options), Endless()
        for given in ({"a": torch.ones(2), "b": {"c": [torch.ones(3), 1]}}, torch.ones(5), endless):
            assert torch.equal(static(given), f(given))
        assert static.explain_miss(Endless()) is None
        assert endless.asked == []
    assert not recwarn.list


@pytest.mark.slow
def test_a_default_is_not_made() -> None:
    def make(record: Record) -> Any:
        def f(x: Any, keys: str) -> Any:
            made: Any = defaultdict(dict)
            for key in keys:
                made[key][0] = 1
            print("p")
            made["z"][x.sum().item()] = 1
            return {key: dict(value) for key, value in made.items()}

        return f

    x = torch.ones(2)
    agrees(make, *((x, keys) for keys in ("abab", "a", "", "zzb")), times=4, settled=9)
