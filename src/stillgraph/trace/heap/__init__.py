"""Python's objects during a capture: the journal of writes, which objects are new, which are copies.

Gives `Journal`, `Births`, `Identities`, and how a block is left.
It must not know of staged values.
"""
