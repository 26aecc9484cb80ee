"""``python -m bench.zoo [NAME ...] [--no-files] [--limit SECONDS] [--json FILE] [--known FILE] [--markdown FILE]``.

Each program has its own process. What ``--json`` has written so far, ``--known`` takes up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # to run as a script, beside ``python -m bench.zoo``

from bench._timing import write_json
from bench.zoo.entries import Entry, entries
from bench.zoo.judge import FORMATS, judged
from bench.zoo.page import is_right, page


def apart(entry: Entry, files: bool, limit: float) -> dict[str, Any]:
    """What is found of a program in a process of its own."""
    command = [sys.executable, "-m", "bench.zoo", "--alone", entry.name, *([] if files else ["--no-files"])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"refused": f"not done after {limit:g} s"}
    if done.returncode:
        return {"broken": " ".join(done.stderr.strip()[-300:].split())}  # the library itself, in this environment
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def state(found: dict[str, Any], length: int = 600) -> str:
    """Whole and right, or what is not."""
    if found.get("broken"):
        return f"not run: {found['broken']}"[:length]
    if found.get("wrong"):
        return f"WRONG: {found['wrong']}"[:length]
    return f"refused: {found['refused']}"[:length] if found.get("refused") else "whole, right"


def row(entry: Entry, found: dict[str, Any]) -> tuple[str, ...]:
    """A program's cells."""
    if not is_right(found):
        return entry.name, entry.library, state(found, 60), "", "", "", "", ""
    files = found.get("files") or {}
    cells = tuple((files[kind][:60] or "verified") if kind in files else "" for kind in FORMATS)
    counted = str(found["programs"]), f"{found['first']:.1f} s", f"{found['ratio']:.2f}"
    return entry.name, entry.library, state(found), *counted, *cells


@click.command()
@click.argument("names", nargs=-1)
@click.option("--files/--no-files", default=True, help="Save each program, too.")
@click.option("--alone", is_flag=True, help="Judge the one program in this process, and print what is found as JSON.")
@click.option("--limit", type=float, default=300, show_default=True, help="Seconds for one program.")
@click.option("--json", "path", type=click.Path(path_type=Path), help="Write what is found to this file, too.")
@click.option("--known", type=click.Path(path_type=Path, exists=True), help="Take what this file has found already.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the page of docs/guide/ to this file, too.")
def main(
    names: tuple[str, ...],
    files: bool,
    alone: bool,
    limit: float,
    path: Path | None,
    known: Path | None,
    markdown: Path | None,
) -> None:
    """Print a row for each program whose library is installed."""
    every = entries()
    chosen = [every[name] for name in names] if names else [each for each in every.values() if each.installed]
    if alone:
        print(json.dumps(judged(chosen[0], files=files).as_dict()))
        return
    results: dict[str, Any] = json.loads(known.read_text())["results"] if known else {}
    table = Table("program", "library", "full graph", "programs", "first call", "warm, of eager's", ".pt2", ".onnx")
    for entry in chosen:
        if names or entry.name not in results:
            results[entry.name] = apart(entry, files, limit)
            write_json(path, results)
        table.add_row(*row(entry, results[entry.name]))
        print(entry.name, state(results[entry.name]), flush=True)
    Console().print(table)
    right = sum(map(is_right, results.values()))
    print(f"{right} of {len(results)} are whole and right")
    if markdown is not None:
        markdown.write_text(page(every, results))


if __name__ == "__main__":
    main()
