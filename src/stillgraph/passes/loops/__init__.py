"""Loops for targets that lack them: bounded, unrolled, with their tests and what is known behind them.

Gives passes over the loops of a program.
It may use the other rooms; none of them may import it.
"""
