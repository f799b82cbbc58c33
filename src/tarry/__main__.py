"""`python -m tarry` is the `tarry` command."""

from tarry.edge.cli.main import main

main()
