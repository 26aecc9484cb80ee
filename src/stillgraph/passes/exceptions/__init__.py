"""What a program raises, catches, asserts and prints, where a target has none of these.

Gives passes that make results of it.
It must not know of lists and loops' bounds.
"""
