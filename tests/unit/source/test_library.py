"""Code that was not written for us: the standard library, converted and run."""
from __future__ import annotations

import time

from stillgraph.source import convert as module
from tests.unit.source import library


def test_whole_modules_are_converted() -> None:
    assert library.convert_all() > 800


def test_rewritten_functions_do_the_same() -> None:
    assert library.check_calls() > 120


def test_conversion_is_quick() -> None:
    library.convert_all(("argparse",))              # whatever has to be imported first
    module._analyses.clear()
    start = time.process_time()
    count = library.convert_all(("argparse",))
    assert count > 100
    assert (time.process_time() - start) / count < 0.02
