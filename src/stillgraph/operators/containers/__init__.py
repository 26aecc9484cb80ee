"""Containers: dicts, sets and iterators, by key or element, and what runs over them.

Gives `as_sequence`, `drawn`, and the methods of dicts and sets with keys of the run.
It must not know loops.
"""
