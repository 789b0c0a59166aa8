"""Files of earlier formats, upgraded to what the classes are now.

``UPGRADES[v]`` holds, by the name of a class in a file of format ``v``, a function that takes the fields of such an
object and returns the name and fields of format ``v + 1``. Fields hold plain values, arrays and
:class:`~fewkern.io.records.Record`, whose own fields were upgraded before. Classes that are not listed did not change.

To change what a class stores, after a release:

1. Add one to ``FORMAT_VERSION`` in ``archive.py`` (once per release).
2. Add an entry to ``UPGRADES`` under the number before, mostly one line with :func:`renamed`.
3. Put a file of the old format into ``tests/io``; it must go on loading and answering.

A new constructor parameter needs nothing: where a file does not have it, it gets its default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from fewkern.io.archive import FORMAT_VERSION
from fewkern.io.records import Record, State
from fewkern.select.axes import GaussianClasses

__all__ = ["UPGRADES", "Upgrade", "renamed", "upgrade"]

Upgrade: TypeAlias = Callable[[State], tuple[str, State]]


def renamed(name: str, /, **fields: str | None) -> Upgrade:
    """An upgrade that only changes names: ``old="new"``, or ``old=None`` for a field that is gone.

    Examples
    --------
    >>> from fewkern.io.legacy import renamed
    >>> renamed("FeatureVectorSelector", centre="center", tol="basis_tol")({"centre": 1, "tol": None, "rule": "gain"})
    ('FeatureVectorSelector', {'center': 1, 'basis_tol': None, 'rule': 'gain'})
    >>> renamed("ReducedSetDensity", n_folds="cv", threshold=None)({"n_folds": 5, "threshold": 1e-4})
    ('ReducedSetDensity', {'cv': 5})
    """

    def change(state: State) -> tuple[str, State]:
        new = ((fields.get(key, key), value) for key, value in state.items())
        return name, {key: value for key, value in new if key is not None}

    return change


def _trace(state: State) -> tuple[str, State]:
    """Leave-one-out errors of every width, ridge and number of vectors."""
    shape = state["error"].shape
    widths = state["widths"] or tuple(float(k) for k in range(shape[0]))
    axes = {"width": tuple(widths), "ridge": tuple(state["ridges"]), "n_vectors": tuple(range(shape[2]))}
    return "Trace", {"axes": axes} | {name: state[name] for name in ("error", "spread", "chosen")}


_selection = {"centre": "center", "tol": "basis_tol"}


def _automatic(name: str) -> Upgrade:
    """Estimators whose size was chosen by leave-one-out: ``prefer="all"`` became ``n_vectors``."""

    def change(state: State) -> tuple[str, State]:
        _, state = renamed(name, **_selection, temperature_=None)(dict(state, n_vectors="auto"))
        state["stop_"] = _stop(state["stop_"])
        if state["prefer"] == "all":
            state |= {"prefer": "balanced", "n_vectors": state["n_vectors_"]}
        return name, state

    return change


def _discriminant(state: State) -> tuple[str, State]:
    name, new = _automatic("FeatureVectorDiscriminant")(state)
    scores = GaussianClasses(state["priors_"], state["means_"], state["covariance_"]).scores()
    fields = {"weights": scores.weights, "offset": scores.offset}
    return name, new | {"class_scores_": Record("ClassScores", fields), "n_components_": state["means_"].shape[1]}


def _stop(text: str) -> Record:
    """Reasons that had other names."""
    others = {"eps": "faded", "order": "converged", "decrease": "converged", "optimal": "converged"}
    return Record("Stop", {"value": others.get(text, text)})


def _soft_step(state: State) -> tuple[str, State]:
    stop = "max_iter" if state["status"] == "limit" else state["status"]
    _, new = renamed("SoftMarginStep", status=None)(state)
    return "SoftMarginStep", new | {"stop": _stop(stop), "gain": 0.0}


def _graph_rule(state: State) -> tuple[str, State]:
    """One class per rule now; ``name`` was its lower-case name."""
    names = {"fisher": "Fisher"} | {name.lower(): name for name in ("PCA", "LPP", "UDP", "MFA", "LFDA", "LSDA")}
    return names[state["name"]], dict(state["params"])


def _reducer(name: str, **fields: str | None) -> Upgrade:
    """Reducers: ``tol`` was that of the basis; a stop had another name."""

    def change(state: State) -> tuple[str, State]:
        _, new = renamed(name, tol="basis_tol", rho="ridge", objective_="objectives_", **fields)(state)
        if "stop_" in new:
            new["stop_"] = _stop(new["stop_"])
        return name, new

    return change


def _soft_margin(state: State) -> tuple[str, State]:
    """``delta``, if given, was the weight of the hinges itself, else ``delta_rel`` times its scale."""
    given = state["delta"] is not None
    weight = {"C": state["delta"] if given else state["delta_rel"], "scale_C": not given}
    name, new = _reducer("RecursiveSoftMargin", delta=None, delta_rel=None)(state)
    return name, new | weight


def _fisher(name: str, axis: str, **changed: str | None) -> Upgrade:
    """Kernel Fisher classifiers: details of the paper went, the link became ``class_scores_``."""

    def change(state: State) -> tuple[str, State]:
        _, new = renamed(name, **dict.fromkeys(_DETAILS), link_=None, **changed)(state)
        link, trace = state["link_"].state, state["trace_"].state
        shares = tuple(link["total"]) if link["rule"] == "least_squares" else None
        new["class_scores_"] = Record("ClassScores", {"shares": shares})
        new["trace_"] = _fisher_trace(trace, axis)
        ends = {"max_iter": "max_iter", "stalled": "precision", "limit": "limit"}
        new["stop_"] = _stop(ends.get(trace["status"], "converged"))
        return name, new

    return change


def _fisher_trace(state: State, axis: str) -> Record:
    """Cross-validated errors of every width and setting; paths that were left early are infinite from there on."""
    settings, (width, setting) = tuple(state["settings"]), state["chosen"]
    widths = tuple(state["widths"]) or (0.0,)
    chosen = (width, setting)
    if not state["errors"]:
        widths, settings, chosen = (widths[min(width, len(widths) - 1)],), (settings[setting],), (0, 0)
    error, size = np.full((2, len(widths), len(settings)), np.inf)
    for k, (errors, sizes) in enumerate(zip(state["errors"], state["sizes"])):
        error[k, : len(errors)], size[k, : len(sizes)] = errors, sizes
    fields = {
        "axes": {"width": widths, axis: settings},
        "error": error,
        "spread": np.full_like(error, np.inf),
        "chosen": chosen,
        "size": None if axis == "n_vectors" else size,
        "measure": "cross-validated error",
        "objectives": tuple(state["objectives"]),
    }
    return Record("Trace", fields)


_DETAILS = ("posterior", "width_by", "penalize_bias", "start")


def _kernel_fisher(state: State) -> tuple[str, State]:
    """The plain discriminant is ``q = 2``."""
    return _fisher("SparseKernelFisher", "penalty")(dict(state, q=2.0))


def _density(name: str, **fields: str | None) -> Upgrade:
    """Densities: ``n_folds`` became ``cv``, rows to search on became candidates; the records of steps are gone."""
    changed = {"n_folds": "cv", "search_rows": None, "max_rows": None, "selected_": None, "trace_": None, **fields}

    def change(state: State) -> tuple[str, State]:
        _, new = renamed(name, **changed)(state)
        one = np.zeros(1)
        new["trace_"] = Record("Trace", {"axes": {"width": (1.0,)}, "error": one, "spread": one, "chosen": (0,)})
        new["stop_"] = Record("Stop", {"value": "given"})
        return name, new

    return change


def _forward_density(state: State) -> tuple[str, State]:
    """The paper's own variants became an estimator of their own."""
    fields: dict[str, str | None] = {"variant": None, "size": None, "n_folds": None}
    paper = {"stop": None, "tol": None, "width_mode": None, "eta": None, "n_width_steps": None, "mixing": None}
    if state["variant"] in ("paper", "refit"):
        name, new = _density("ForwardConstrainedDensity", **fields, polish=None, width_mode="width_rule")(state)
        return name, new | {"refit": state["variant"] == "refit", "max_vectors": state["max_vectors"] or 100}
    name, new = _density("ForwardDensity", **fields, **paper, gamma=None, gamma_=None)(state)
    more = {
        "criterion": "likelihood" if state["variant"] == "ml" else "squared_error",
        "prefer": {"loo": "accurate"}.get(state["size"], "sparse"),
        "cv": state["n_folds"] if state["variant"] == "cv" else None,
        "max_vectors": state["max_vectors"] or 20,
        "least_width_": float(state["gamma_"]) * float(state["width_"]),
    }
    return name, new | more


def _density_classifier(state: State) -> tuple[str, State]:
    offset = np.log(state["priors_"])
    two = len(offset) == 2
    fields = {
        "weights": np.array([[-1.0], [1.0]]) if two else None,
        "offset": offset[1:] - offset[:1] if two else offset,
    }
    mixtures = tuple(density.state["expansion_"] for density in state["densities_"])
    more = {"expansion_": Record("ClassMixtures", {"mixtures": mixtures})}
    return "DensityClassifier", {**state, **more, "class_scores_": Record("ClassScores", fields)}


def _table_encoder(state: State) -> tuple[str, State]:
    """One value per column now; names and levels were in lists beside each other."""
    columns = tuple(
        Record("CategoryColumn", {"name": name, "levels": tuple(state["levels"][name])})
        if name in state["levels"]
        else Record("NumberColumn", {"name": name, "median": state["median"][name]})
        for name in state["columns"]
    )
    names = np.array(state["columns"], dtype=object)
    learned = {"columns_": columns, "notes_": (), "mean_": state["mean"], "scale_": state["scale"]}
    return "TableEncoder", learned | {"feature_names_in_": names, "n_features_in_": len(names)}


def _table_model(state: State) -> tuple[str, State]:
    """A frozen value became an estimator; of the facts, those stay that are not about held-out rows."""
    facts = state["facts"]
    encoder = state["encoder"].state
    seconds = float(facts.get("seconds", 0.0))
    fields = {
        "rows": int(facts.get("rows", 0)),
        "features": len(encoder["mean_"]),
        "vectors": facts.get("vectors"),
        "kernel": str(facts.get("kernel", "")),
        "bytes": int(facts.get("bytes", 0)),
        "seconds": (seconds,),
        "total": seconds,
        "cross_validated": facts.get("loo_error", facts.get("loo_rmse")),
        "cross_validated_r2": facts.get("loo_r2"),
        "components": facts.get("components"),
        "agreement": facts.get("agreement"),
    }
    settled = {"task_": state["task"], "target_": state["target"], "model_": str(facts.get("model", "auto"))}
    parts = {"encoder_": state["encoder"], "estimator_": state["estimator"], "facts_": Record("FitFacts", fields)}
    empty = {"notes_": (), "held_out_": None, "judgement_": None}
    known = {key: encoder[key] for key in ("feature_names_in_", "n_features_in_")}
    return "TableModel", {"task": state["task"], **settled, **parts, **empty, **known}


_centers = {f"centre_{part}": f"center_{part}" for part in ("vectors", "weights", "indices")}

UPGRADES: dict[int, dict[str, Upgrade]] = {
    1: {
        "DensityClassifier": _density_classifier,
        "FeatureVectorDiscriminant": _discriminant,
        "FeatureVectorPCA": renamed("FeatureVectorPCA", **_selection),
        "FeatureVectorRegressor": _automatic("FeatureVectorRegressor"),
        "FeatureVectorSelector": renamed("FeatureVectorSelector", **_selection),
        "ForwardDensity": _forward_density,
        "GraphEmbedding": _reducer("GraphEmbedding"),
        "GraphRule": _graph_rule,
        "KernelBasis": renamed("KernelBasis", **_centers),
        "MarginBlock": renamed("MarginStep"),
        "OrthogonalForwardDensity": _density("OrthogonalForwardDensity", solver=None),
        "ParzenDensity": _density("ParzenDensity"),
        "RecursiveSVM": _reducer("RecursiveSVM"),
        "RecursiveSoftMargin": _soft_margin,
        "ReducedSetDensity": _density("ReducedSetDensity", solver=None, threshold=None),
        "SoftMarginStep": _soft_step,
        "ForwardKernelFisher": _fisher("ForwardKernelFisher", "n_vectors"),
        "KernelFisher": _kernel_fisher,
        "SparseKernelFisher": _fisher("SparseKernelFisher", "penalty", max_vectors="max_candidates"),
        "Trace": _trace,
    },
    2: {"TableEncoder": _table_encoder, "TableModel": _table_model},
}


def upgrade(tree: Any, version: int, upgrades: dict[int, dict[str, Upgrade]] = UPGRADES) -> Any:
    """The tree of a file of format ``version`` as the present format would have it."""
    for step in range(version, FORMAT_VERSION):
        if step in upgrades:
            tree = _walk(tree, upgrades[step])
    return tree


def _walk(tree: Any, upgrades: dict[str, Upgrade]) -> Any:
    if isinstance(tree, list):
        return [_walk(item, upgrades) for item in tree]
    if isinstance(tree, tuple):
        return tuple(_walk(item, upgrades) for item in tree)
    if isinstance(tree, dict):
        return {_walk(key, upgrades): _walk(value, upgrades) for key, value in tree.items()}
    if not isinstance(tree, Record):
        return tree
    state = {key: _walk(value, upgrades) for key, value in tree.state.items()}
    return Record(*upgrades[tree.name](state)) if tree.name in upgrades else Record(tree.name, state)
