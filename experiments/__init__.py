"""The papers' tables and figures, by one command: ``python -m experiments``."""
