"""The command line: look at what a function becomes, and save it.

Exit status: 0 all went well, 1 the function cannot be captured, saved or run, 2 the command was wrong.
"""
from __future__ import annotations

from stillgraph.cli.commands import main

__all__ = ["main"]
