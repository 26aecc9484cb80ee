"""What the first call under Inductor costs in a second process, with torch's caches and without.

``python -m bench.caches [--json FILE]``. A decoder is called once in a fresh process: with empty caches, with those on
disk that the first process has left, and with empty ones into which its artefacts are loaded
(`torch.compiler.save_cache_artifacts`). The seconds are of the first call, and do not contain imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # to run as a script, beside ``python -m bench.caches``

from bench._timing import machine, write_json

ROOT = Path(__file__).resolve().parents[1]
_CALL = """
import sys, time
from pathlib import Path
import torch
import stillgraph as sg
from bench.models import MODELS
from torch._dynamo.utils import counters
artefacts = Path(sys.argv[1])
case = next(case for case in MODELS if case.name == "greedy, static cache")
target, args = case.target(), case.inputs[0]
with torch.no_grad():
    expected = target(*args)
    if artefacts.exists():
        torch.compiler.load_cache_artifacts(artefacts.read_bytes())
    static = sg.to_static(target.forward, backend="inductor")
    start = time.perf_counter()
    given = static(*args)
    seconds = time.perf_counter() - start
torch.testing.assert_close(given, expected)
if len(sys.argv) > 2:
    Path(sys.argv[2]).write_bytes(torch.compiler.save_cache_artifacts()[0])
print(seconds, counters["inductor"]["fxgraph_cache_hit"], counters["inductor"]["fxgraph_cache_miss"])
"""


def first_call(caches: Path, *artefacts: Path) -> dict[str, Any]:
    """Seconds of the first call in a fresh process, and how many graphs it found in the caches.

    Args:
        caches: folder of the caches.
        artefacts: a file whose artefacts are loaded, if it exists, and one to write them to.
    """
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(caches), "PYTHONPATH": paths}
    command = [sys.executable, "-c", _CALL, *map(str, artefacts)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    seconds, hits, misses = done.stdout.split()[-3:]
    return {"seconds": float(seconds), "found": int(hits), "compiled": int(misses)}


@click.command()
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the figures to a file as well.")
def main(json_path: Path | None) -> None:
    """Time first calls."""
    console = Console()
    console.print(machine())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        artefacts = folder / "artefacts"
        rows = {
            "empty caches": first_call(folder / "first", folder / "none", artefacts),
            "caches on disk": first_call(folder / "first", folder / "none"),
            "artefacts loaded": first_call(folder / "second", artefacts),
        }
    table = Table("", "seconds", "graphs found", "compiled", title="The first call of a process")
    for row, found in rows.items():
        table.add_row(row, f"{found['seconds']:.1f}", str(found["found"]), str(found["compiled"]))
    console.print(table)
    write_json(json_path, rows)


if __name__ == "__main__":
    main()
