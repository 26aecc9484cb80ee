"""Calling a program again: guards, cache, drivers, effects."""
