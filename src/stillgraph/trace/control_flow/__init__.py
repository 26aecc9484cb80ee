"""Branches, loops, recursion and `try` in the graph, and values that differ by path.

Gives `branch`, `stage_loop`, `Joiner`, `Unjoined`.
It must not know what leaves the call, or which guards there are.
"""
