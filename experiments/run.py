"""Run units of work in parallel, keep what was done, go on where a run was stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from joblib import Parallel, delayed

from experiments.plan import Experiment, Unit
from experiments.store import stored
from fewkern import __version__
from fewkern.arrays.progress import shown

__all__ = ["run_experiment"]


def _work(unit: Unit) -> dict[str, Any]:
    """Do one unit, with one thread for linear algebra: the units run beside each other."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    with threadpool_limits(1):
        values = unit.experiment.load()(unit.row.settings, unit.run)
    return {
        "key": unit.key,
        "experiment": unit.experiment.id,
        "row": unit.row.label,
        "protocol": unit.row.protocol,
        "run": unit.run,
        "settings": unit.row.settings,
        "fewkern": __version__,
        "versions": unit.row.versions,
        "data": unit.data,
        "seconds": round(time.perf_counter() - start, 3),
        "values": values,
    }


def run_experiment(experiment: Experiment, *, quick: bool, jobs: int, fresh: bool = False) -> tuple[int, int]:
    """Run what is not done yet (all of it if ``fresh``); returns how many units were done now, and how many before."""
    store = stored(experiment.paper, experiment.name)
    done = set() if fresh else {record["key"] for record in store.read()}
    units = list(experiment.units(quick))
    left = [unit for unit in units if unit.key not in done]
    if left:
        store.append(_follow(experiment, left, jobs))
    store.pack()
    return len(left), len(units) - len(left)


def _follow(experiment: Experiment, units: list[Unit], jobs: int) -> Iterator[dict[str, Any]]:
    if jobs == 1:
        records = map(_work, units)
    else:
        parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
        records = parallel(delayed(_work)(unit) for unit in units)
    with shown(experiment.id, len(units), lines=False) as step:
        for i, record in enumerate(records, start=1):
            yield record
            step(i)
