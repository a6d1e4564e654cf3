"""`python -m tessella` is `tessella`."""

from .cli import main

main()
