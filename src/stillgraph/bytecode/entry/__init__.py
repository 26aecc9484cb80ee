"""The front end for bytecode as the rest of the product sees it.

Gives `convert`.
Nothing of `bytecode` may import it.
"""
