import matplotlib
import pytest

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    """Every test closes its pictures."""
    from matplotlib import pyplot

    yield
    pyplot.close("all")
