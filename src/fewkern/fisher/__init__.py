"""Sparse kernel Fisher discriminants (KFD): kFDA_q and kFDA_OLS."""

from fewkern.fisher.path import FisherPath, fisher_path

__all__ = ["FisherPath", "fisher_path"]
