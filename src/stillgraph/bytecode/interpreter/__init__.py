"""Interprets a function, instruction by instruction, and stages its branches, loops and `try`.

Gives the interpreter's loop and its regions.
It must not know where a program ends.
"""
