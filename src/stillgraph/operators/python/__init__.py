"""Python's functions of numbers: `len`, `int`, `isinstance`, `random`, enumerations, complex numbers.

Gives `MEANINGS`: what each means in a capture.
It must not know how a call is made.
"""
