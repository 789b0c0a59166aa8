"""Sparse kernel Fisher discriminants (KFD): kFDA_q and kFDA_OLS."""
