"""Statements and expressions that decide: branches, loops, `try`, `with`, `match`, generators.

Gives the operators for them.
It must not know which callable means what.
"""
