"""Measurements against the tools that people use today: ``python -m benchmarks NAME``."""
