"""The kinds of guards: for each class of guards, how it is checked, explained, ordered and weakened.

Gives the table `table.KINDS`.
It must not know of programs, nor of the order of checking.
"""
