"""Lists of which only the run knows the length, and places that may hold nothing, as tensors.

Gives passes that leave no list in a graph.
It must not know how loops are written out.
"""
