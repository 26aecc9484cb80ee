"""Many calls of one program at once: it is run by groups of lanes.

Gives the batched run of a program, and calls under the transforms of `torch.func`.
It must not know of guards, nor of programs' caches.
"""
