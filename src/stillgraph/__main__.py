"""``python -m stillgraph`` is the command ``stillgraph``."""
from stillgraph.cli import main

main(prog_name="stillgraph")
