"""Sparse kernel Fisher discriminants (KFD): kFDA_q and kFDA_OLS."""

from fewkern.fisher.path import FisherPath, fisher_path
from fewkern.fisher.variant import FisherVariant

__all__ = ["FisherPath", "FisherVariant", "fisher_path"]
