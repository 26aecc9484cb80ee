"""numpy's arrays and numbers that only the run knows.

Gives `StagedArray`, and numpy's functions on it by way of torch's numpy layer. Knows nothing of where arrays come from.
"""
