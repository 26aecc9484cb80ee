"""Calls: what is called, how its arguments are bound, and what the call means.

Gives `call`.
Kinds of callees have rooms of their own.
"""
