"""Numbers that only the run knows, as tensors, with Python's rules for their kinds.

Gives passes that leave no Python number in a graph.
It must not know of lists.
"""
