"""What rewritten code's operators mean, on plain Python values and on staged ones."""
