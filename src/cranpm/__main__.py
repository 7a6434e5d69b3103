"""`python -m cranpm`."""

from cranpm.cli import main

main()
