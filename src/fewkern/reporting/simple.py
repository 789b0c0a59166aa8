"""The names that summaries of tables import; they are in :mod:`fewkern.reporting.evaluation`."""

from fewkern.reporting.evaluation import linear_predictions, wilson

__all__ = ["linear_predictions", "wilson"]
