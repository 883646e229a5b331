"""Shares and reports as bytes."""
