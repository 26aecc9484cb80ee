"""Consumers: what draws all of an iterable, or takes a value apart: comprehensions, unpacking, patterns, sorting.

Gives `list_of`, `unpack`, `taken` ….
It must not know what a call means.
"""
