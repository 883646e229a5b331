"""Rows in, picture out: numpy and matplotlib only."""

from hubbub.plots.models import calibration, forest, noise_sources, predictive_check

__all__ = ["calibration", "forest", "noise_sources", "predictive_check"]
