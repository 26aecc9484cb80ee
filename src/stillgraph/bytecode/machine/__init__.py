"""The machine that is interpreted: frames, iteration, tracebacks, the table of instructions.

Gives `Frame` and `HANDLERS`.
It must not know of segments.
"""
