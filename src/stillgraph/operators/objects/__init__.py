"""Objects: attributes, items, variables, texts and comparisons, of what the user's code has in its hands.

Gives an operator for each: `attr`, `set_item`, `is_` ….
It must not know how an iterator is drawn to its end, nor what a call means.
"""
