"""A page about a fitted model: findings first (plain values), then figures, then HTML."""

from fewkern.reporting.evaluation import ReportSettings
from fewkern.reporting.make import Report, report

__all__ = ["Report", "ReportSettings", "report"]
