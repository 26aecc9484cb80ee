"""Every way in which generated programs fail: ``python -m tests.property.survey [COUNT] [--seed N] [--way WAY]``.

The tests stop at one failure and shrink it; this goes on, and prints each kind of problem with how often it came and
the shortest program that shows it.
"""
from __future__ import annotations

import argparse
import re
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import torch

from tests.property.containers import container_programs
from tests.property.programs import programs
from tests.property.test_programs import Inputs, inputs, load
from tests.property.ways import BYTECODE, SEGMENTS, SOURCE, STEPS, Way, going

WRITERS = {"plain": programs, "containers": container_programs}
WAYS = {way.name: way for way in (SOURCE, BYTECODE, SEGMENTS, STEPS)}


def main() -> int:
    """Print the survey; the exit status is 1 if a program fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.property.survey", description="How generated programs fail.")
    parser.add_argument("count", nargs="?", type=int, default=200, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    parser.add_argument("--writer", choices=WRITERS, default="plain", help="what programs are about")
    parser.add_argument("--way", choices=WAYS, default="source", help="how they are captured")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with going(WAYS[options.way]) as way:
        problems, tried = survey(options.count, options.seed, WRITERS[options.writer], way)
    for problem, sources in sorted(problems.items(), key=lambda item: -len(item[1])):
        print(f"{len(sources)} × {problem}\n\n{min(sources, key=len)}")
    print(f"{tried - sum(map(len, problems.values()))} of {tried} agree with eager")
    return 1 if problems else 0


def survey(count: int, seed: int, writer: Callable[[], Any], way: Way) -> tuple[dict[str, list[str]], int]:
    """The sources of the programs that fail, by problem, and how many programs were tried."""
    problems: dict[str, list[str]] = defaultdict(list)
    tried: set[str] = set()

    with tempfile.TemporaryDirectory() as folder:

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.given(way.written(writer()), inputs(), hypothesis.strategies.booleans())
        def collect(source: str, calls: Inputs, grad: bool) -> None:
            hypothesis.assume(source not in tried)
            tried.add(source)
            try:
                way.check(lambda: load(source, Path(folder)), calls, grad)
            except Exception as error:  # each kind is counted
                problems[_kind(error)].append(source)

        collect()
    return problems, len(tried)


def _kind(error: Exception) -> str:
    """What the error says before it comes to places, and without numbers, which differ in every program."""
    text = re.split(r"\n\s*File |\(in '", str(error))[0]
    return re.sub(r"0x\w+|\d+(\.\d+)?", "N", " ".join(text.split()))[:160]


if __name__ == "__main__":
    sys.exit(main())
