"""Our automatic models beside boosting, SVM, forest and others on real tables; tables of figures and a picture.

The folder that ``FEWKERN_DATA`` names has the tables. ``--rows`` says how many rows train: at most 1,000, at most 3,000
(57 tables each), or all (17 tables of 8,000 to 39,000). ``--ida`` runs the 13 IDA sets instead, ``--uci`` sets of
numbers on their published splits, ``--talent`` whole tables; the last two beside published results. Results are kept in
``benchmarks/results`` as they come: a run that was stopped goes on where it was.
"""

from benchmarks.tables.command import main

__all__ = ["main"]
