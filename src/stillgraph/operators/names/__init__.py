"""Names and attributes: variables, globals, namespaces, what is read of objects, and truth values of these.

Gives the operators for them.
It must not know of loops.
"""
