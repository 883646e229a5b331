"""Generalised linear models (yes or no, counts, positive numbers) in a few private Newton steps, the noise counted."""
