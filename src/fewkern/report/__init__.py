"""A page about a fitted model: findings first (plain values), then pictures, then HTML."""

from fewkern.report.make import Report, report
from fewkern.report.settings import ReportSettings

__all__ = ["Report", "ReportSettings", "report"]
