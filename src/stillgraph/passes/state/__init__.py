"""Memory: what is written in place, what shares memory, what grows.

Gives passes that leave no write in a branch or loop.
It must not know of numbers.
"""
