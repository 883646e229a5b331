"""`python -m hubbub` is `hubbub`."""

from hubbub.cli import entry

if __name__ == "__main__":  # worker processes import this module too
    entry()
