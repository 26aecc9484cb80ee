"""What was captured and why, as data and as text."""
