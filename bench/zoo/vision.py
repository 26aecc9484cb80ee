"""Programs of the zoo: vision."""

from __future__ import annotations

from bench.zoo.entries import Entry

ENTRIES: tuple[Entry, ...] = ()
