"""Mutation testing: ``python -m tests.mutate``."""

import os

# as in tests/conftest.py, before NumPy is imported
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
