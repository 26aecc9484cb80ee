"""The recorder: from operations on staged values to nodes of the open region.

Gives `Recorder` and `Region`.
It must not know of branches and loops.
"""
