"""The sampler of the noise-aware posterior: a small state, and one kernel for each move, in a file of its own.

A kernel is a function (rng, state, target) -> (state, info). It leaves the target's law as it is, changes nothing in
place, and knows nothing of the other kernels; `chains.py` puts them in order.
"""
