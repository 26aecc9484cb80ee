"""Values of many kinds, asked in a capture: they answer as eager PyTorch's, or the capture is refused."""

from __future__ import annotations

import contextlib
import itertools
import re
import warnings
from pathlib import Path

import pytest
import torch

from tests.front_ends import through_bytecode
from tests.property.kinds import KINDS
from tests.property.refused_kinds import REFUSED as MAY_BE_REFUSED
from tests.property.test_stand_ins import NEGATIVE, POSITIVE, REFUSED, WAYS, static, told, told_or_refused
from tests.property.written_kinds import written
from tests.sampling import few

ASKED = [(kind, asked) for kind, (_, all_asked) in KINDS.items() for asked in all_asked]


@pytest.mark.parametrize(
    ("kind", "asked", "way"), few([(*each, way) for each, way in itertools.product(ASKED, WAYS)], every=29)
)
def test_values_of_many_kinds_answer_as_eagers(tmp_path: Path, kind: str, asked: str, way: str) -> None:
    function = written(tmp_path, kind, asked)
    with through_bytecode() if way == "bytecode" else contextlib.nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # by which a call is told that was made in plain PyTorch
        compiled = static(function, way)
        for values in (POSITIVE, NEGATIVE):
            found = told_or_refused(compiled, torch.tensor(values))
            assert "SG307" not in found  # which says that eager PyTorch does not raise what the capture has raised
            refused = found.startswith(REFUSED)
            assert refused or _seen(found) == _seen(told(function(torch.tensor(values))))
            assert not refused or way != "source" or asked in MAY_BE_REFUSED[kind], found


def _seen(text: str) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", text)
