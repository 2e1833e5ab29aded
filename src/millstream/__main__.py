"""``python -m millstream`` is the command."""

from millstream.cli import main

main()
