"""The stored results belong to the code: the cheapest unit of every method in every experiment, computed again."""

import math

import pytest

from experiments import plan
from experiments.data import data_file

# Where the first unit of a row searches settings for all of its units, but for the rows of this protocol.
SHARED_SEARCH, ALONE = ("kfd table1", "kfd table2"), "strict"
SECONDS = 2.0
# Not of the result, or of the results of others.
IGNORED = {"seconds"}


def cheapest():
    """The cheapest stored unit of every method in every experiment, where it is not known to be old."""
    for experiment in plan.experiments():
        if experiment.sources:
            continue
        best = {}
        for row, records in experiment.results():
            if experiment.id in SHARED_SEARCH and row.protocol != ALONE:
                continue
            for record in records:
                if row.systems and record["seconds"] < SECONDS and not experiment.is_old(row, record):
                    key = row.systems, row.settings.get("story"), row.label.rpartition(": ")[2]
                    if key not in best or record["seconds"] < best[key][1]["seconds"]:
                        best[key] = (row, record)
        for row, record in best.values():
            yield pytest.param(experiment, row, record, id=f"{experiment.id}: {row.label}")


@pytest.mark.parametrize(("experiment", "row", "record"), list(cheapest()))
def test_a_stored_result_is_what_the_code_computes(experiment, row, record):
    missing = [need for need in row.needs if data_file(need) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)}: not in the folder that FEWKERN_DATA names")
    values = experiment.load()(row.settings, record["run"])
    advice = f"raise {row.systems} in experiments.systems.VERSIONS and run `python -m experiments {experiment.id}`"
    for name, stored in record["values"].items():
        if isinstance(stored, (int, float)) and name not in IGNORED:
            assert math.isclose(values[name], stored, rel_tol=1e-3, abs_tol=1e-6), f"{row.label}, {name}: {advice}"
