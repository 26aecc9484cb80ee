"""The code that a capture runs: its frames and lines, who calls whom, what runs unseen.

Gives `here`, `ExecutedCode`, `Restart`, and what belongs to which module.
It must not know of tensors that are staged.
"""
