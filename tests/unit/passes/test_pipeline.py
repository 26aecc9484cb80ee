from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from stillgraph.passes import pipeline
from stillgraph.passes.regions.regions import all_regions
from stillgraph.passes.regions.values import is_number
from stillgraph.program.verify import verify
from tests.unit.passes.captured import SAMPLES, run


@pytest.mark.parametrize("name", SAMPLES)
def test_every_pass_leaves_a_valid_program_of_the_same_meaning(name: str) -> None:
    sample = SAMPLES[name]
    program, args = sample.capture()
    receiver = args[: len(args) - len(sample.calls[0])]
    expected = [run(program, (*receiver, *call)) for call in sample.calls]
    for pass_ in pipeline.WHOLE_GRAPH:
        program = pass_(program)
        verify(program)
        for call, want in zip(sample.calls, expected, strict=True):
            got = run(program, (*receiver, *call))
            torch.testing.assert_close(got[: len(want)], want, msg=lambda text, p=pass_: f"after {p.__name__}: {text}")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_program_is_left_as_it_is(name: str) -> None:
    program, _ = SAMPLES[name].capture()
    before = str(program)
    pipeline.run(program)
    assert str(program) == before


@pytest.mark.parametrize("name", SAMPLES)
def test_no_number_crosses_the_border_of_a_region(name: str) -> None:
    program, _ = SAMPLES[name].capture()
    for module in all_regions(pipeline.run(program).graph):
        for node in module.graph.nodes:
            if node.op == "placeholder":
                assert not is_number(node.meta["val"]), node


def test_the_document_has_the_passes_in_order() -> None:
    text = (Path(__file__).parents[3] / "docs" / "dev" / "lowering.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    run_once = list(dict.fromkeys(pass_.__name__ for pass_ in pipeline.WHOLE_GRAPH))
    assert [name for name in told if name in run_once] == run_once


def test_passes_have_names_and_say_what_they_do() -> None:
    for pass_ in pipeline.WHOLE_GRAPH:
        assert pass_.__doc__ is not None
        assert "::" in pass_.__doc__, f"{pass_.__name__} shows no example"
