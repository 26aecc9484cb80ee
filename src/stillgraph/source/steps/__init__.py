"""The rewrite steps: one file per construct, in the order in which they are listed and shown."""
