"""From a program to `torch.export`'s: weights, state, checks, and the test that a file gives what the program gives.

Gives the exported program that every format is made of.
It must not know a format.
"""
