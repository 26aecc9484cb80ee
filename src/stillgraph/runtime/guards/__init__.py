"""Guards compiled to one function, in order, and told in words.

Gives the check of a program's guards, and why one fails.
It must not know of calls.
"""
