"""AOTInductor packages: programs compiled to libraries.

Gives the writer and the loader of `.aoti.pt2`.
It must not know the other formats.
"""
