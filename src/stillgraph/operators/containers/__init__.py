"""Lists, dicts, sets and iterators: their elements, and what runs over them.

Gives the operators for them.
It must not know which callable means what.
"""
