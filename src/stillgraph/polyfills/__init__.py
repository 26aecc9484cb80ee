"""Functions of torch's written once more in plain Python: what they mean, for a capture to follow.

A capture calls one of these in place of torch's own function, and follows it as it follows the user's code. Their files
count as torch's: errors and operations are at the line of the user's that calls.
"""
