"""``python -m experiments`` lists; ``python -m experiments PAPER NAME [--quick]`` runs one; ``all`` runs everything.

Results are kept in ``experiments/results``, and a run goes on where an earlier one stopped: what is there for the same
settings, data and version of the code is not run again, unless ``--fresh`` is given; the last result counts. ``page``
writes the pages in ``docs/results`` from them. ``--download`` gets missing data sets first; ``--dask ADDRESS`` runs the
units on a Dask cluster, whose workers must be able to import fewkern and the experiments.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config

from experiments.data import DataNotFoundError, fetch_set
from experiments.page import write_pages
from experiments.plan import Experiment, experiments
from experiments.run import run_experiment
from experiments.store import BusyError


def listing() -> None:
    """Every experiment, what data it needs, and how far it has been run."""
    print(f"{'paper':6s}{'name':10s}{'runs done':>12s}{'old':>6s}  data")
    for experiment in experiments():
        done = {
            (row.label, row.protocol, record["run"]): experiment.is_old(row, record)
            for row, records in experiment.results()
            for record in records
        }
        units = [(unit.row.label, unit.row.protocol, unit.run) for unit in experiment.every_unit(quick=False)]
        count = sum(unit in done for unit in units)
        old = sum(done.get(unit, False) for unit in units)
        missing = experiment.missing()
        needs = "none" if not experiment.needs else "here" if not missing else "MISSING " + ", ".join(missing)
        print(f"{experiment.paper:6s}{experiment.name:10s}{count:>6d}/{len(units):<5d}{old or '':>6}  {needs}")
        print(f"{'':16s}{experiment.title}")
    print(
        "\nOld: made by an earlier version of the code (experiments.systems.VERSIONS); a run makes them again.\n"
        "Data sets are looked for in the folder that the environment variable FEWKERN_DATA names, and among those\n"
        "that were downloaded before; with --download a run gets what is missing."
    )


def download(needs: list[str]) -> None:
    """Get what can be had; the rest is left out later."""
    for need in needs:
        try:
            fetch_set(need)
        except DataNotFoundError as error:
            print(error, file=sys.stderr)
        else:
            print(f"downloaded {need}", flush=True)


class NoClusterError(Exception):
    """There is no scheduler at the address."""


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Where joblib sends the units: processes here, or the workers of a Dask scheduler."""
    if address is None:
        yield
        return
    from distributed import Client

    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise NoClusterError(
            f"--dask expects the address host:port of a Dask scheduler, got {address!r} ({error})."
        ) from None
    with client, parallel_config(backend="dask", client=client):
        yield


def run(chosen: list[Experiment], quick: bool, jobs: int, fresh: bool) -> None:
    for experiment in chosen:
        missing = experiment.missing()
        if missing:
            print(f"{experiment.id}: left out for want of data: {', '.join(missing)}")
        done, before = run_experiment(experiment, quick=quick, jobs=jobs, fresh=fresh)
        print(f"{experiment.id}: {done} units run, {before} were there already", flush=True)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__)
    parser.add_argument("paper", nargs="?", help="fvs, kfd, rsvm, rsm, fcr; or all; or page")
    parser.add_argument("name", nargs="?", help="table1, fig2, ...; every one of the paper if not given")
    parser.add_argument("--quick", action="store_true", help="a few runs of every row")
    parser.add_argument("--jobs", type=_count, default=os.cpu_count(), help="units run beside each other")
    parser.add_argument("--fresh", action="store_true", help="run again what was run before, by an older version, say")
    parser.add_argument("--download", action="store_true", help="get missing data sets from their public sources")
    parser.add_argument("--dask", metavar="ADDRESS", help="run on the Dask cluster of this scheduler (host:port)")
    options = parser.parse_args(arguments)
    if options.paper is None:
        if options.quick or options.fresh or options.download or options.dask:
            parser.error("name a paper, or all, to run")
        listing()
        return 0
    if options.paper == "page":
        print("written: " + ", ".join(map(str, write_pages())))
        return 0
    every = experiments()
    chosen = [
        e for e in every if options.paper in ("all", e.paper) and (options.name is None or options.name == e.name)
    ]
    if not chosen:
        known = ", ".join(e.id for e in every)
        print(f"experiments: there is no {options.paper} {options.name or ''}; known are {known}.", file=sys.stderr)
        return 2
    if options.dask and importlib.util.find_spec("distributed") is None:
        print("experiments: --dask needs Dask; install it with pip install 'fewkern[experiments]'.", file=sys.stderr)
        return 2
    if options.download:
        download(sorted({need for experiment in chosen for need in experiment.missing()}))
    try:
        with cluster(options.dask):
            run(chosen, options.quick, -1 if options.dask else options.jobs, options.fresh)
    except (NoClusterError, BusyError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
