"""The source front end: a function's syntax tree becomes plain Python in which operators decide."""
