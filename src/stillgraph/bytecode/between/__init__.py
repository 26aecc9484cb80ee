"""What happens between two programs of a call: Python goes on with the frame, and comes back.

Gives plans, routes through them, and resumed frames.
It must not know how an instruction is interpreted.
"""
