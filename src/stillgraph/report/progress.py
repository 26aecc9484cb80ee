"""A line in the terminal that says what is being done, once that takes longer than a second."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.spinner import Spinner

from stillgraph.core.progress import Phase, is_heard, listening

PATIENCE = 1.0  # seconds
Clock = Callable[[], float]


class Line:
    """What is being done, and for how long; nothing at first.

    Args:
        clock: tells the seconds.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._spinner = Spinner("dots")
        self._began = self._phase_began = clock()
        self._phase: Phase | None = None

    def tell(self, phase: Phase | None) -> None:
        """Take note of what is done now."""
        if (phase and phase.what) != (self._phase and self._phase.what):
            self._phase_began = self._clock()
        self._phase = phase

    @property
    def text(self) -> str:
        """The words; empty before a second is over, and where nothing is done."""
        now = self._clock()
        if self._phase is None or now - self._began < PATIENCE:
            return ""
        return f"{self._phase} ({now - self._phase_began:.0f} s, {now - self._began:.0f} s in all)"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.text:
            self._spinner.update(text=self.text)
            yield self._spinner


@contextlib.contextmanager
def showing(wanted: bool, console: Console | None = None) -> Iterator[None]:
    """Within it a terminal shows what is done. A pipe or file stays as it is, and the line goes at the end.

    Args:
        wanted: whether it does at all.
        console: by default the one of stderr.
    """
    if not wanted or is_heard():
        yield
        return
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    line = Line()
    live = Live(
        line, console=console, refresh_per_second=5, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    with live, listening(line.tell):
        yield
