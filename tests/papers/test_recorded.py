"""Figures of the papers, as corrected in the methods pages, against the stored results of all runs.

tests/experiments/test_record.py computes a unit of every method again: the stored results are those of the code.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from experiments.plan import experiments
from experiments.verdict import entries

EXPERIMENTS = {experiment.id: experiment for experiment in experiments()}


@cache
def recorded(name):
    """The values of all runs of an experiment, by the label and the protocol of the row."""
    found = {}
    for row, records in EXPERIMENTS[name].results():
        found[row.label, row.protocol] = [r["values"] for r in sorted(records, key=lambda r: r["run"])]
    return found


def errors(name, label, protocol):
    """Integrated absolute errors of a density, run by run."""
    return np.array([values["l1"] for values in recorded(f"fcr {name}")[label, protocol]])


@pytest.mark.parametrize("better", ["FCR-ISE, EM polish", "FCR-ML"])
@pytest.mark.parametrize("name", ["table2a", "table2b"])
def test_the_improved_densities_are_ahead_of_the_papers_on_the_same_samples(name, better):
    ratio = errors(name, better, "honest") / errors(name, "FCR-SDC, safe widths", "paper")
    assert np.mean(np.log(ratio)) < -0.2


def test_densities_in_six_dimensions():
    """The order in nearly every run; the improved variants are ahead of every published row."""
    order = (
        ("FCR-ISE, EM polish", "honest"),
        ("RSDE, exact", "paper"),
        ("FCR-SDC, safe widths", "paper"),
        ("PW", "paper"),
    )
    for less, more in pairwise(order):
        assert np.mean(errors("table2b", *less) < errors("table2b", *more)) > 0.95
    published = min(row.published["l1"] for row in EXPERIMENTS["fcr table2b"].rows)
    for label in ("FCR-ISE, EM polish", "FCR-ISE, 5 kernels", "FCR-ML"):
        assert np.mean(errors("table2b", label, "honest")) < published


@pytest.mark.parametrize(
    ("name", "kernels"), [("a", (500, 11.9, 15.3, 129.4, 36.23)), ("b", (600, 14.9, 9.4, 29.4, 5.6))]
)
def test_both_tables_of_densities_have_all_rows_of_the_paper(name, kernels):
    assert {row.published["kernels"] for row in EXPERIMENTS[f"fcr table2{name}"].rows} == set(kernels)


# Accuracy of PCA at the printed dimension, FDA (S_b, S_t), RFDA (ridge 1e-8), LPP, UDP: methods B7.
FACES = {
    "yale 2": (52.59, 60.0, 65.93, 48.15, 47.41),
    "yale 3": (59.17, 64.17, 70.0, 50.0, 54.17),
    "yale 4": (63.81, 71.43, 77.14, 53.33, 54.29),
    "orl 2": (71.56, 82.5, 83.12, 61.88, 76.25),
    "orl 3": (76.79, 84.29, 88.57, 63.93, 79.29),
    "orl 4": (85.83, 91.25, 95.42, 72.92, 89.58),
}


@pytest.mark.parametrize("name", FACES)
def test_faces(name):
    found, methods = (
        recorded("rsm faces"),
        (("PCA", "both"), ("FDA", "both"), ("RFDA", "paper"), ("LPP", "paper"), ("UDP", "paper")),
    )
    rates = [found[f"{name}: {method}", protocol][0]["rate"] for method, protocol in methods]
    assert rates == pytest.approx(FACES[name], abs=0.01)


def test_curves_of_faces_by_dimension():
    for label, published in (("yale 2: PCA", 52.6), ("yale 3: PCA", 59.2), ("yale 4: PCA", 63.8)):
        (curve,) = recorded("rsm fig1")[label, "paper"]
        assert curve["rate_at_printed_dimension"] == pytest.approx(published, abs=0.05)
        assert curve["rate"] == pytest.approx(max(curve["y"]), abs=1e-3)


@pytest.mark.parametrize(
    ("label", "rate"),
    [
        ("yale 2, 14 dimensions, ridge 0.1", 66.67),
        ("yale 3, 14 dimensions, ridge 0.1", 67.50),
        ("yale 4, 14 dimensions, ridge 0.1", 74.29),
        ("orl 2, 39 dimensions, ridge 0.01", 83.20),
    ],
)
def test_soft_margins_on_faces_hardly_depend_on_their_weight(label, rate):
    """Methods B7; one image is 0.3 to 0.9 points."""
    (found,) = recorded("rsm fig3")[label, "both"]
    assert found["rate"] == pytest.approx(rate, abs=0.01)
    assert found["range"] < 0.35
    assert 0.005 < found["delta_0"] < 0.35


def test_fewer_dimensions_than_classes_do_depend_on_it():
    (found,) = recorded("rsm fig3")["yale 2, 7 dimensions, ridge 0.1", "both"]
    assert found["range"] == 0
    assert found["range_of_all"] > 3


def test_stories_of_soft_margins():
    """All figures of methods B8, which has figures, not generators, over all draws.

    The stories of ``experiments.stories`` have their free lengths calibrated on the baseline alone, so that the
    method's figures are predictions; shape, sizes and ridge were picked among a few with these in view, see the notes
    of ``rsm stories``.
    """
    experiment = EXPERIMENTS["rsm stories"]
    found = [f for f in entries(experiment) if f.published is not None]
    assert len(found) == sum(len(row.published) for row in experiment.rows)
    for figure in found:
        # two standard deviations over draws; of a single run one point, or two and a half where it is run to the end
        to_the_end = figure.row.settings["story"] == "digits" and "early" not in figure.row.label
        tolerance = 2 * figure.deviation if figure.runs > 1 else 2.5 if to_the_end else 1.0
        assert figure.mean == pytest.approx(figure.published, abs=tolerance), (figure.row.label, figure.name)


def test_recursive_margins_with_neighbors_on_all_splits_of_heart():
    """Methods A5: T* from 4 to 5, 15.98% at 3 components and 51 neighbors, 18.8% at the paper's 3 neighbors."""
    table = recorded("rsvm tables")["heart: RSVM and 3 neighbours", "paper"]
    counts = [values["features"] for values in table]
    assert (len(counts), min(counts), np.median(counts), max(counts)) == (100, 4, 4, 5)
    assert np.mean([values["error"] for values in table]) == pytest.approx(18.8, abs=0.05)
    curves = recorded("rsvm fig4")
    assert np.mean([values["y"][2] for values in curves["51 neighbours", "paper"]]) == pytest.approx(15.98, abs=0.01)
    for values, curve in zip(table, curves["3 neighbours", "paper"]):
        assert curve["error"] == values["error"]
        assert len(set(curve["y"][curve["features"] - 1 :])) == 1  # flat from there on


def test_two_components_separate_what_one_does_not():
    for outcome in recorded("rsvm fig2")["class", "paper"]:
        assert outcome["error_2_features"] < 17
        assert outcome["error_1_features"] > outcome["error_2_features"] + 10


def test_feature_vectors_with_the_papers_parameters():
    """Mean errors over 100 splits, methods F9."""
    for name, figure in (("banana", 10.66), ("heart", 16.76), ("thyroid", 4.21)):
        runs = recorded("fvs table2")[f"{name}: FVS-LR", "paper"]
        assert (len(runs), np.mean([values["error"] for values in runs])) == (100, pytest.approx(figure, abs=0.01))


def test_sinc_needs_five_or_six_vectors():
    """The mean error is flat from 4 to 6 vectors and their center."""
    runs = recorded("fvs fig3")["FVS-LR, 6 vectors", "paper"]
    rmse = {L: np.mean([values[f"rmse with {L} vectors"] for values in runs]) for L in range(4, 9)}
    assert rmse[5] == pytest.approx(0.151, abs=0.012)
    assert rmse[6] == pytest.approx(0.159, abs=0.012)
    assert rmse[5] < 1.03 * min(rmse.values())


# Reference of the honest protocol over 100 splits (methods K10): error in percent, and its standard deviation.
HONEST = {
    ("banana", "kFDA_.5"): (10.5, 0.5),
    ("banana", "kFDA_OLS"): (10.7, 0.5),
    ("heart", "kFDA_1"): (15.8, 3.0),
    ("thyroid", "kFDA_.5"): (4.1, 1.9),
    ("thyroid", "kFDA_OLS"): (4.0, 1.8),
    ("titanic", "kFDA_1"): (22.5, 1.1),
    ("titanic", "kFDA_.5"): (22.5, 1.1),
}


@pytest.mark.parametrize(("name", "method"), HONEST)
def test_kernel_fisher_machines_by_the_honest_protocol(name, method):
    runs = recorded("kfd table1")[f"{name}: {method}", "honest"]
    error, deviation = HONEST[name, method]
    assert np.mean([values["error"] for values in runs]) == pytest.approx(error, abs=0.6 * deviation)
    # "parsimonious": about a tenth of the samples at most, where the reference keeps 1.9 to 7.2%
    assert np.mean([values["retained"] for values in runs]) < 10


def test_kernel_fisher_machines_selected_for_fewest_samples():
    """Thyroid, published 10.7% and 2.1% of the samples (3 of 140); settings retrained keep about as few."""
    found = recorded("kfd table1")
    for method, published in (("kFDA_1", 10.7), ("kFDA_.5", 2.1)):
        kept = {
            (selected, protocol): np.mean([v["retained"] for v in found[f"thyroid: {method}{selected}", protocol]])
            for selected in ("", ", fewest samples")
            for protocol in ("paper", "honest")
        }
        fewest = kept[", fewest samples", "paper"]
        assert fewest <= min(kept["", "paper"], published + 0.1)
        assert kept[", fewest samples", "honest"] <= 3 * fewest
