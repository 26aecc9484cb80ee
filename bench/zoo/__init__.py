"""Other people's programs, as their libraries have them: what is captured, whether it is right, and what it costs.

``python -m bench.zoo`` prints the table. A program is an entry of a module in this folder; ``entries.py`` says what
one has. Libraries that are not installed are left out.
"""
