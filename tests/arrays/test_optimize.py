import numpy as np
import scipy.optimize

from fewkern.arrays.optimize import falling_root, minimize_smooth


def bowl(x):
    if not np.all(np.isfinite(x)):
        raise ValueError("asked for a point that is no number")
    return float(x @ x), 2 * x


def test_a_point_that_is_no_number_is_not_evaluated(monkeypatch):
    """SciPy's search can ask for NaN after a line search that failed; the best point so far is kept."""

    def broken(function, start, **_):
        for x in (start, start / 2, np.array([np.nan, 0.0])):
            value, gradient = function(x)
        assert value > 1e9
        assert np.all(gradient == 0)
        return scipy.optimize.OptimizeResult(x=x, status=2, nit=2)

    monkeypatch.setattr(scipy.optimize, "minimize", broken)
    x, _ = minimize_smooth(bowl, np.array([3.0, 2.0]), max_iter=50, tol=0.0)
    np.testing.assert_array_equal(x, [1.5, 1.0])


def test_a_root_is_found_at_any_scale_and_an_end_where_there_is_none():
    for root in (1e-9, 0.3, 1.0, 7e11):
        assert abs(falling_root(lambda a: 1 - a / root, 1.0, 1e-12, 1e12) / root - 1) < 1e-9
    assert (falling_root(lambda a: -a, 1.0, 0.01, 50.0), falling_root(lambda a: a, 1.0, 0.01, 50.0)) == (0.01, 50.0)
