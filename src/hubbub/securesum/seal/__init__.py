"""Sealing shares to their Computes."""
