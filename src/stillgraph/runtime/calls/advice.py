"""What to do where each call needs another program."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stillgraph.program.guards import TensorGuard
from stillgraph.program.input_spec import InputSpec
from stillgraph.program.program import Program
from stillgraph.program.sources import Argument


def advice(reason: str, programs: Sequence[Program]) -> str:
    """What to do, without the full stop.

    Args:
        reason: on what differs: a sentence of `runtime/guards/explaining.py`.
        programs: those that were made for calls of the user's own, the newest first.
    """
    spec = _open_spec(programs[0], programs[1:]) if programs else None
    if spec is not None:
        return f"Leave its sizes open, with {spec} in input_spec: if something takes one size alone, an error says what"
    return next(advice for pattern, advice in _ADVICE if re.search(pattern, reason))


_TENSOR = r"\w+ \w+\[[^]]*\] on "
_ADVICE = (
    (
        rf"should be {_TENSOR}.*, but is {_TENSOR}|\.shape\[\d+\] should be ",
        "Pass tensors of few shapes and dtypes, padded say, or raise cache_size",
    ),
    (
        "should be the same|are the same object|should run the code of",
        "Pass the same object in each call, or what is needed of it, or raise cache_size",
    ),
    (
        r"^len\(|^the keys of| the key |should (not )?hold",
        "Pass as many entries in each call, or a tensor in their place, or raise cache_size",
    ),
    (
        r"should be an? .*, but is an? |should be .* \(\w+\), but is .* \(\w+\)$|, but is " + _TENSOR,
        "Pass one type of value there, or have a function for each, or raise cache_size",
    ),
    ("", "Pass what changes as a tensor, keep it out of the function, or raise cache_size"),
)


def _open_spec(newest: Program, others: Sequence[Program]) -> InputSpec | None:
    """What leaves open the sizes by which the first argument that is a tensor differs; None where they do not."""
    theirs = [each for program in others for each in program.guards if isinstance(each, TensorGuard)]
    for guard in newest.guards:
        if not isinstance(guard, TensorGuard) or not isinstance(guard.source, Argument):
            continue
        like = [each.shape for each in theirs if (each.source, each.dtype) == (guard.source, guard.dtype)]
        like = [each for each in like if len(each) == len(guard.shape)]
        shape = [size if {size}.issuperset(sizes) else None for size, *sizes in zip(guard.shape, *like)]
        if shape != [*guard.shape]:
            return InputSpec(shape, guard.dtype)
    return None
