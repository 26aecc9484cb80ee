"""What a file says of a program besides its operations: signature, structure, constants, conditions.

Gives this as JSON and back.
It must not know how a program is exported.
"""
