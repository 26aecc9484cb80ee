"""Instructions as data: decoded, with their depths, flow, lines and tables of handlers.

Gives `decode` and questions about code.
It must not know that anything runs.
"""
