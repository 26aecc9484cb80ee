"""Outside: calls that reach what a program cannot hold: files, streams, locks, random state, other threads, C.

Gives what is asked before such a call, and the steps that stand for it.
It must not know the user's control flow.
"""
