"""What is known of tensors, sizes, operators and modules, as data that programs and guards refer to.

Gives facts, schemas and fingerprints.
It must not know of programs.
"""
