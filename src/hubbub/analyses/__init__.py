"""From a noisy sum to a posterior: linear regression and conjugate families."""
