"""Learning in many steps, each a noisy sum: variational inference, expected statistics, Langevin sampling."""
