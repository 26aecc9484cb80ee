"""The optimiser: passes that make a lowered program of tensors smaller or faster and keep its results bit for bit.

Gives passes over branches, loops and what they compute, and the cost model.
It may use the other rooms; none of them may import it.
"""
