"""Mutation testing: ``python -m tests.mutate``."""
