"""Recursive margins and graph embedding (RSVM, RSM)."""
