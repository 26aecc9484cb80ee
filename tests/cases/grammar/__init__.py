"""One construct per function. The first letter of a name tells its family.

A: the grammar of Python and PyTorch; M: constant and variable conditions, shape join; S: what model code does (state,
attributes, classes, contexts); G: gradients through control flow.
"""
