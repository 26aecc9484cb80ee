"""Conditions: the truth of a value, and the two ways behind it.

Gives `truth_number`, `if_`, `if_exp`, `select`.
It must not know loops.
"""
