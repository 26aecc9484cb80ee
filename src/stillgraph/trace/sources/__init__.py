"""Where the values of a call come from: arguments, attributes, globals, the environment.

Gives `Finder` and the paths it finds.
It must not know of the graph.
"""
