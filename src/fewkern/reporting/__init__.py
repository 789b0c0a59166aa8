"""A page about a fitted model: findings first (plain values), then pictures, then HTML."""

from fewkern.reporting.make import Report, report
from fewkern.reporting.settings import ReportSettings

__all__ = ["Report", "ReportSettings", "report"]
