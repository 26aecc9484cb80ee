"""Python's garbage collector, kept from going through the whole heap while much is made that stays."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def waiting_collector() -> Iterator[None]:
    """In the body nothing is collected. To be used around work of this package's own, which takes a moment."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
