"""Values that differ by path: the join of what two paths left in one place, and values without a join.

Gives `Joiner`, `Unjoined`, `Picked`, `describe`, the errors of joins.
It must not know how branches, loops and `try` are staged.
"""
