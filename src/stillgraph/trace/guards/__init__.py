"""The facts that a program is specialised on: found while the code runs, and written down as guards.

Gives `facts`, `collector`, and the inputs of the program.
It must not know how an attempt begins or ends.
"""
