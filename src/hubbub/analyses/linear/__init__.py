"""Bayesian linear regression."""
