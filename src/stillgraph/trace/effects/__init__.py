"""What code does besides computing: writes to objects, modules, iterators, locks, and the environment of a call.

Gives the journal's clients: who notes a write, and who settles it at the end.
It must not know which guards become of it.
"""
