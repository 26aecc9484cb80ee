"""A capture from beginning to end: its attempts, what it learns between them, and the program that comes out.

Gives `capture`, and `Session`, which is one attempt.
It may know all of `trace`; nothing of `trace` may import it.
"""
