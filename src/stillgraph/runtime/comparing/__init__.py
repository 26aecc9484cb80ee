"""All that can be seen of two calls, and in what they differ.

Gives outcomes, and copies of all that a call can reach.
It must not know of programs' caches.
"""
