"""torch's callables that are no operation on tensors: modules, optimizers, transforms, wrappers.

Gives what each means in a capture.
It must not know how a call is made.
"""
