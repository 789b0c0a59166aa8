"""Table II of the FCR paper (Hong, Chen and Harris 2008), and the improved variants beside it.

Samples and 10,000 test points are drawn anew in every run; the error is the L1 error (24). Nothing is chosen on test
points, save the constants that the rows of protocol "paper" were given by trial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fewkern import ForwardDensity, OrthogonalForwardDensity, ParzenDensity, ReducedSetDensity
from fewkern.datasets import (
    gaussian_laplacian_density,
    make_gaussian_laplacian,
    make_three_gaussians,
    three_gaussians_density,
)

Values = dict[str, Any]

# generator, density, number of samples, unit of the error
EXAMPLES: dict[int, tuple[Callable[..., Any], Callable[..., Any], int, float]] = {
    1: (make_gaussian_laplacian, gaussian_laplacian_density, 500, 1e-3),
    2: (make_three_gaussians, three_gaussians_density, 600, 1e-5),
}
MODELS: dict[str, Callable[..., Any]] = {
    "parzen": ParzenDensity,
    "forward": ForwardDensity,
    "reduced": ReducedSetDensity,
    "orthogonal": OrthogonalForwardDensity,
}


def density(settings: Values, run: int) -> Values:
    """L1 error (24), number of kernels and mean log density of the test points."""
    make, truth, n, unit = EXAMPLES[settings["example"]]
    model = MODELS[settings["model"]](**{k: v for k, v in settings.items() if k not in ("example", "model")})
    X, T = make(n, random_state=2 * run), make(10_000, random_state=2 * run + 1)
    log_p = model.fit(X).score_samples(T)
    error = float(np.mean(np.abs(np.exp(log_p) - truth(T)))) / unit
    return {"l1": error, "kernels": model.n_vectors_, "log_density": float(np.mean(log_p))}
