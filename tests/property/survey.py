"""Every way in which generated programs fail: ``python -m tests.property.survey [COUNT] [--seed N]``.

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
from pathlib import Path

import hypothesis
import torch

from tests.cases.case import Case
from tests.cases.harness import check_static
from tests.property.programs import programs
from tests.property.test_programs import Inputs, inputs, load


def main() -> int:
    """Print the survey; the exit status is 1 if a program fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.property.survey", description="How generated programs fail.")
    parser.add_argument("count", nargs="?", type=int, default=200, help="how many programs")
    parser.add_argument("--seed", type=int, default=0, help="which programs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    problems, tried = survey(options.count, options.seed)
    for problem, sources in sorted(problems.items(), key=lambda item: -len(item[1])):
        print(f"{len(sources)} × {problem}\n\n{min(sources, key=len)}")
    print(f"{tried - sum(map(len, problems.values()))} of {tried} agree with eager")
    return 1 if problems else 0


def survey(count: int, seed: int) -> tuple[dict[str, list[str]], int]:
    """The sources of the programs that fail, by problem, and how many programs were tried."""
    problems: dict[str, list[str]] = defaultdict(list)
    tried: set[str] = set()

    with tempfile.TemporaryDirectory() as folder:

        @hypothesis.seed(seed)
        @hypothesis.settings(
            max_examples=count, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
        )
        @hypothesis.given(programs(), inputs(), hypothesis.strategies.booleans())
        def collect(source: str, calls: Inputs, grad: bool) -> None:
            hypothesis.assume(source not in tried)
            tried.add(source)
            function = load(source, Path(folder))
            try:
                check_static(Case("a generated program", lambda: function, calls, grad=grad))
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
