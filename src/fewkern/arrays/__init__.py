"""The only place that knows array libraries."""
