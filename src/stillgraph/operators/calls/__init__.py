"""Calls: the tables by which a call goes, and how its arguments are bound.

Gives `call`.
It must not know syntax.
"""
