"""`.pt2`: torch's archive of exported programs, read without running what its author wrote.

Gives the writer and the loader of `.pt2`.
It must not know the other formats.
"""
