"""Torch functions that are more than an operation on tensors: what they ask, raise, write, or compose.

Gives one rule for each such function, and the tables that find it.
It must not know of branches and loops, or of the capture.
"""
