"""Branches, loops, recursion and `try` in the graph; below them `joined`, for values that differ by path.

Gives `branch`, `stage_loop`.
It must not know what leaves the call, or which guards there are.
"""
