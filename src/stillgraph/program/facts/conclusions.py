"""What torch remembers of symbolic sizes, beyond the programs that have them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from stillgraph.program.facts import torch_symbols


@contextlib.contextmanager
def without_lasting_conclusions() -> Iterator[None]:
    """Let torch forget, at the end of the block, what it concluded of symbols.

    It remembers that without bound in caches of the class's (there is no public way to them), and with each conclusion
    the environment of the symbol and all that is known in it.
    """
    try:
        yield
    finally:
        for method in vars(torch_symbols.ShapeEnv).values():
            forget = getattr(method, "cache_clear", None)
            if forget is not None:
                forget()
