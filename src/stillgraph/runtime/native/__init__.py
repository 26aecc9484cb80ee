"""The native lowering: a program as readable Python around compiled regions.

Gives the driver of a program, and what it returns and leaves behind.
It must not know of guards.
"""
