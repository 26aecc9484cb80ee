"""What stands for a value of the run in a capture: numbers, texts, arrays, lists, dicts, exceptions.

Gives the staged classes and what Python sees of them.
It must not know who records them.
"""
