"""Surgery on regions, and what all passes ask of a node.

Gives regions as objects, dead-code elimination, and purity.
It must not know any pass.
"""
