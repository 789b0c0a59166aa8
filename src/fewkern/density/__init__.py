"""Densities from a few kernels (FCR), and their baselines."""
