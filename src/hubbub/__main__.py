"""`python -m hubbub` is `hubbub`."""

from hubbub.cli import entry

entry()
