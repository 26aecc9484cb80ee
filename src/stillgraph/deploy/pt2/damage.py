"""Whether an archive is as it was written."""

from __future__ import annotations

import zipfile
from typing import IO

from stillgraph.core.diagnostics import load_error


def check_sums(file: IO[bytes]) -> None:
    """Refuse an archive in which a record is not as it was written: torch's reader does not look at checksums.

    Raises:
        LoadError: there is such a record.
        zipfile.BadZipFile: it is no archive.
    """
    with zipfile.ZipFile(file) as archive:
        wrong = archive.testzip()
    if wrong is not None:
        raise load_error(f"it is damaged ({wrong.partition('/')[2]!r} is not as it was written)")
