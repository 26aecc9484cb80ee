"""Functions of Python's and its libraries: what they read, draw, print, or ask of the process.

Gives what each means in a capture, or the reason it has none.
It must not know of syntax.
"""
