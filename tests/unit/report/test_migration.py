"""What `stillgraph migrate` tells. `STILLGRAPH_UPDATE_GOLDEN=1` writes what its golden file is now."""

import importlib
import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from stillgraph.api.migration import migrate
from stillgraph.report.torchscript_idioms import KNOWN
from tests.unit.operators import written_for_torchscript as written
from tests.unit.report.torchscript_example import Decoder

GOLDEN = Path(__file__).parents[2] / "golden" / "report" / "migrate.txt"
SOURCE = Path(__file__).parent / "torchscript_example.py"
CALLS = {
    "forward": (([torch.ones(4), torch.ones(4)],), {}, None),
    "encode": ((torch.ones(2, 4),), {}, None),
    "measure": ((torch.ones(2),), {}, None),
}

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="columns differ between versions")
def test_an_example_with_every_idiom() -> None:
    text = str(migrate(Decoder(4), CALLS))
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_the_example_has_every_idiom_and_each_is_found_on_its_lines() -> None:
    found = {idiom.name: idiom for idiom in migrate(Decoder(4), {}).idioms}
    assert set(found) == set(KNOWN)
    lines = SOURCE.read_text().splitlines()
    for name, idiom in found.items():
        assert {place.file for place in idiom.places} == {str(SOURCE)}
        word = "is not None" if name.startswith("assert") else name.rpartition(".")[2]
        assert all(re.search(rf"\b{re.escape(word)}\b", lines[place.line - 1]) for place in idiom.places), name


def _line(text: str) -> int:
    return next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line)


def test_what_becomes_of_each_entry_point() -> None:
    migration = migrate(Decoder(4), CALLS)
    forward, encode, measure = migration.entries
    assert (forward.name, encode.name, measure.name) == ("forward", "encode", "measure")
    assert encode.regions == 3
    assert forward.regions is not None
    assert measure.refused is not None
    assert (measure.refused.code, measure.refused.place.line) == ("SG305", _line("open("))
    assert not migration.is_one_program
    assert migrate(Decoder(4), {"forward": CALLS["forward"]}).entries[1].is_tried is False


def test_a_scripted_function_is_its_python() -> None:
    migration = migrate(written.scripted, {"forward": ((torch.ones(2), 2), {}, None)})
    assert migration.is_one_program
    assert [entry.name for entry in migration.entries] == ["scripted"]
    assert [(idiom.name, idiom.verdict) for idiom in migration.idioms] == [("torch.jit.script", "delete")]


def test_a_scripted_module_is_told_of_by_its_class() -> None:
    calls = {"forward": ((torch.ones(2, 3),), {}, None)}
    migration = migrate(torch.jit.script(written.Exported()), calls)
    assert migration.name == "Exported"
    forward, encode = migration.entries
    assert forward.refused is not None
    assert forward.refused.code == "SG105"
    assert "the Exported of tests.unit.operators.written_for_torchscript" in forward.refused.hint
    assert (encode.name, encode.is_tried) == ("encode", False)
    assert [idiom.name for idiom in migration.idioms] == ["torch.jit.export"]


def test_a_module_read_from_a_file_has_no_source(tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(written.Inner()), str(tmp_path / "it.pt"))
    migration = migrate(torch.jit.load(str(tmp_path / "it.pt")), {"forward": ((torch.ones(2),), {}, None)})
    assert (migration.name, migration.place, migration.idioms) == ("Inner", None, ())
    assert migration.entries[0].refused.code == "SG105"


def fails(x: Tensor) -> Tensor:
    return x.reshape(7, 7)


def test_what_the_code_raises_itself_is_told() -> None:
    migration = migrate(fails, {"forward": ((torch.ones(2),), {}, None)})
    assert str(migration.entries[0]).startswith("fails: RuntimeError: ")
    assert not migration.is_one_program


def test_modules_without_idioms_and_without_source() -> None:
    migration = migrate(nn.Linear(2, 2), {"forward": ((torch.ones(2),), {}, None)})
    assert (migration.name, migration.idioms, migration.is_one_program) == ("Linear", (), True)
    assert str(migration) == "Linear\n  forward  one program, 1 region\n"


def test_json_has_all_of_it() -> None:
    data = json.loads(migrate(Decoder(4), CALLS).to_json())
    assert (data["schema"], data["is_one_program"], data["name"]) == (1, False, "Decoder")
    assert [entry["name"] for entry in data["entries"]] == ["forward", "encode", "measure"]
    (fork,) = [idiom for idiom in data["idioms"] if idiom["name"] == "torch.jit.fork"]
    assert (fork["verdict"], len(fork["places"])) == ("delete", 1)


def test_an_installed_package_is_told_of_where_it_is_what_is_asked_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "installed_one.py").write_text("import torch\n\n@torch.jit.unused\ndef scaled(x):\n    return x * 2\n")
    (installed / "installed_two.py").write_text("import installed_one as a\n\ndef twice(x):\n    return a.scaled(x)\n")
    monkeypatch.syspath_prepend(installed)
    one, two = importlib.import_module("installed_one"), importlib.import_module("installed_two")
    assert [idiom.name for idiom in migrate(one.scaled, {}).idioms] == ["torch.jit.unused"]
    assert migrate(two.twice, {}).idioms == ()


class Counting(nn.Module):
    """With a method that takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.seen

    @torch.jit.export
    def mean(self) -> Tensor:
        return self.seen.mean() if self.seen.sum() > 0 else self.seen[0]


def test_a_method_without_arguments_is_captured() -> None:
    found = {entry.name: entry for entry in migrate(Counting(), {"forward": ((torch.ones(2),), {}, None)}).entries}
    assert str(found["mean"]) == "one program, 3 regions"
    migration = migrate(Counting(), {})
    assert [(entry.name, entry.is_tried) for entry in migration.entries] == [("forward", False), ("mean", True)]
    assert not migration.is_one_program
