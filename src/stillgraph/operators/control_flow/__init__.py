"""Control flow: loops, `try`, `with`, `raise`, generators, recursion.

Gives `for_`, `while_`, `try_`, `with_`, `raised` ….
It must not know attributes and items.
"""
