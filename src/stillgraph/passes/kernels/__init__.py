"""Operations in the form that torch's exporters and compilers take.

Gives passes that rewrite single operations.
It must not know what a program raises.
"""
