"""Artefacts: what each capture made, as files in a directory of the user's choice."""

from __future__ import annotations

import re
from pathlib import Path

from stillgraph.program.program import Program
from stillgraph.report.explain import explain
from stillgraph.runtime.native.native import lower


class Artefacts:
    """A directory with rewritten functions in ``code/``, and one numbered folder for each program or refusal."""

    def __init__(self, directory: Path) -> None:
        """Use a directory, which is made where it is missing.

        Raises:
            OSError: it cannot be made.
        """
        self.directory = directory
        (directory / "code").mkdir(parents=True, exist_ok=True)

    def rewritten(self, module: str, name: str, line: int, code: str) -> None:
        """Write a rewritten function: ``code/<module>.<name>.<line>.py``."""
        _write(self.directory / "code" / f"{_plain(f'{module}.{name}')}.{line}.py", code)

    def captured(self, program: Program, guards: str, seconds: float) -> None:
        """Write a program: ``program.txt``, ``driver.py``, ``guards.py`` and ``explanation.txt``."""
        folder = self._folder(program.name)
        _write(folder / "program.txt", str(program))
        _write(folder / "driver.py", lower(program, None).code)
        _write(folder / "guards.py", guards)
        _write(folder / "explanation.txt", str(explain(program, seconds)))

    def refused(self, name: str, text: str) -> None:
        """Write why something is refused: ``refused.txt``."""
        _write(self._folder(name) / "refused.txt", text)

    def _folder(self, name: str) -> Path:
        number = 1 + max((int(each.name[:4]) for each in self.directory.glob("[0-9]" * 4 + "-*")), default=0)
        while True:
            folder = self.directory / f"{number:04}-{_plain(name)}"
            try:
                folder.mkdir()
            except FileExistsError:  # another process was faster
                number += 1
            else:
                return folder


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name)[:80]


def _write(path: Path, text: str) -> None:
    path.write_text(text + "\n" if not text.endswith("\n") else text, encoding="utf-8")
