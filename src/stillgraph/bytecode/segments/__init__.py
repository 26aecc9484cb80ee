"""Where a program ends, and why: what a capture leaves to Python.

Gives segments, and the breaks between them.
It must not know how instructions are carried out.
"""
