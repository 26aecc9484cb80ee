"""Elements: one out of several by an index of the run, and what stands for Python's own sequences.

Gives `pick`, `as_index`, `StandIn`, and the methods of lists of unknown length.
It must not know what a branch means.
"""
