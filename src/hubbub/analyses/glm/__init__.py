"""Generalised linear models (yes or no, counts) in a few private Newton steps, with posteriors that count the noise."""
