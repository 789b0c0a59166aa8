"""A slice of Table II of the FCR paper: a few runs with fixed seeds, figures with wide margins.

The whole table, 100 runs each, is printed by ``python -m experiments.fcr_table``.
"""

import numpy as np
import pytest

from experiments.fcr_table import EXAMPLES, models, run, summary

RUNS = 2
# error and number of kernels, means over 100 runs; SPREAD is by how much a mean of two runs may differ
EXPECTED = [
    {
        "PW, B": (4.16, 500),
        "SDC": (4.01, 13.1),
        "SKD, B": (3.73, 16.5),
        "RSDE, MNQP": (4.34, 137.6),
        "RSDE, exact": (4.34, 79.5),
        "FCR, literal widths, B": (4.09, 34.5),
        "FCR, B": (4.03, 47.9),
        "FCR, refitted, B": (3.91, 25.0),
        "FCR-ML": (2.76, 3.2),
    },
    {
        "PW, B": (3.52, 600),
        "SDC": (4.37, 16.0),
        "SKD, B": (3.09, 7.3),
        "RSDE, MNQP": (2.23, 31.3),
        "RSDE, exact": (2.23, 31.3),
        "FCR, literal widths, B": (3.11, 6.1),
        "FCR, B": (2.68, 7.8),
        "FCR, refitted, B": (2.38, 7.5),
        "FCR-ISE, EM": (1.81, 11.6),
        "FCR-ML": (1.99, 2.5),
    },
]
SPREAD = [1.2, 0.6]
ROWS = {"PW", "FCR-ISE, EM", "FCR-ISE, 5 kernels", *EXPECTED[0]}


@pytest.fixture(scope="module", params=[0, 1], ids=["example 1", "example 2"])
def table(request):
    example = EXAMPLES[request.param]
    return request.param, example, [run(example, seed, ROWS) for seed in range(RUNS)]


def test_figures_of_the_table(table):
    number, _, results = table
    for name, (error, kernels) in EXPECTED[number].items():
        values = np.array([result[name] for result in results]).mean(axis=0)
        slack = SPREAD[number] * (2 if name == "SDC" else 1)
        assert values[0] == pytest.approx(error, abs=slack), name
        assert 0.5 * kernels <= values[1] <= 2.0 * kernels + 1, name


def test_few_kernels_are_as_good_as_all_of_them(table):
    _, _, results = table
    mean = {name: np.mean([result[name][0] for result in results]) for name in results[0]}
    assert mean["FCR, refitted, B"] < mean["PW"]
    assert mean["FCR-ML"] < mean["PW"]
    assert all(result["FCR-ML"][1] <= 6 for result in results)


def test_the_improved_variant_is_ahead_of_every_published_row_in_six_dimensions(table):
    number, example, results = table
    if number == 0:
        pytest.skip("in example 1 two runs are too few to tell")
    for name in ("FCR-ISE, EM", "FCR-ISE, 5 kernels", "FCR-ML"):
        error = np.mean([result[name][0] for result in results])
        assert error < min(published for published, _ in example.paper.values())


def test_summary_has_a_line_per_method(table):
    _, example, results = table
    text = summary(example, results)
    names = [name for name, _ in models(example, example.make(100, random_state=0)) if name in ROWS]
    assert set(names) == ROWS
    assert [line[:26].strip() for line in text.splitlines()[1:]] == names
