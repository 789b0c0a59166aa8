import numpy as np
import scipy.optimize

from fewkern.backend.optimize import minimize_bounded

FREE = np.full(2, -np.inf), np.full(2, np.inf)


def bowl(x):
    if not np.all(np.isfinite(x)):
        raise ValueError("asked for a point that is no number")
    return float(x @ x), 2 * x


def test_finds_the_minimum_inside_the_bounds():
    found = minimize_bounded(
        bowl, np.array([3.0, 2.0]), (np.array([1.0, -9.0]), np.array([9.0, 9.0])), max_iter=50, tol=0.0
    )
    np.testing.assert_allclose(found.x, [1.0, 0.0], atol=1e-6)
    assert found.start_value == 13.0


def test_a_point_that_is_no_number_is_not_evaluated(monkeypatch):
    """SciPy's search can ask for NaN after a line search that failed; the best point so far is kept."""

    def broken(function, start, **_):
        for x in (start, start / 2, np.array([np.nan, 0.0])):
            value, gradient = function(x)
        assert value > 1e9
        assert np.all(gradient == 0)
        return scipy.optimize.OptimizeResult(x=x, status=2, nit=2)

    monkeypatch.setattr(scipy.optimize, "minimize", broken)
    found = minimize_bounded(bowl, np.array([3.0, 2.0]), FREE, max_iter=50, tol=0.0)
    np.testing.assert_array_equal(found.x, [1.5, 1.0])
    assert found.status == "stuck"
