"""`python -m geval_adapters` is `geval`."""

from .cli import main

main()
