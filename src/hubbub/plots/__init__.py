"""Rows in, picture out: numpy and matplotlib only."""
