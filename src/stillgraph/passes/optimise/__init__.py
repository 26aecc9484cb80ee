"""The optimiser: passes that make a lowered program of tensors smaller or faster and keep its results bit for bit.

They know branches, loops and purity, and one module says what they weigh. They know no format and no backend.
"""
