"""Short ways to the solvers, for tests."""

from types import SimpleNamespace

import numpy as np

from fewkern.core.samples import Samples
from fewkern.fisher.lasso import lasso_rows
from fewkern.fisher.lq import lq_fit
from fewkern.fisher.problem import penalized_problem, ridge_rows


def lasso(problem, lam, start=None, **how):
    """The exact solution for q = 1: rows that differ from zero, objectives, and how it ended."""
    active, objectives, ending = lasso_rows(problem, lam, start, **how)
    return SimpleNamespace(active=active, objectives=objectives, ending=ending)


def fit(K, Y, penalty, weights=None, start=None, **how):
    """kFDA_q on kernel columns; ``start="ridge"`` is the solution for q = 2, where the paper begins."""
    problem = penalized_problem(K, Y, weights)
    if isinstance(start, str):
        start = ridge_rows(problem, penalty * problem.n)
    return lq_fit(problem, penalty, start=start, **how)


def dense(fit, m):
    """Coefficients on all columns, bias first."""
    omega = np.zeros((m + 1, fit.coef.shape[1]))
    omega[0] = fit.offset
    omega[1:][fit.support] = fit.coef
    return omega


def classes(n, C, seed=0):
    """Samples around ``C`` centers, their classes and weights."""
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(C), rng.choice(C, n - C, p=np.arange(1, C + 1) / np.arange(1, C + 1).sum())]
    centers = 2 * rng.standard_normal((C, 3))
    return centers[codes] + rng.standard_normal((n, 3)), codes, rng.uniform(0.5, 2, n)


def labelled(X, codes, weights=None):
    """Samples with classes."""
    return Samples.of(X, weights, codes=codes, n_classes=int(codes.max()) + 1)
