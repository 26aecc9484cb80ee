"""The commands of the guide for those who come from TorchScript print what the guide shows.

`STILLGRAPH_UPDATE_GOLDEN=1` writes into the guide what they print now.
"""

from __future__ import annotations

import linecache
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stillgraph.cli import main

GUIDE = Path(__file__).parents[2] / "docs/guide/torchscript.md"
COMMANDS = re.compile(r"^```console\n\$ stillgraph ([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_commands_print_what_the_guide_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = GUIDE.read_text()
    (models,) = [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if ">>>" not in b]
    file = tmp_path / "models.py"
    file.write_text(models)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    statuses = []

    def ran(found: re.Match[str]) -> str:
        result = CliRunner().invoke(main, shlex.split(found[1]))
        sys.modules.pop("models", None)
        file.write_text(models.replace("torch.jit.script(Gate())", "Gate()"))  # as the guide says after the first
        linecache.clearcache()
        statuses.append(result.exit_code)
        return f"```console\n$ stillgraph {found[1]}\n{result.stdout}```"

    now = COMMANDS.sub(ran, text)
    if os.environ.get("STILLGRAPH_UPDATE_GOLDEN"):
        GUIDE.write_text(now)
        text = now
    assert now == text
    assert statuses == [1, 0]
