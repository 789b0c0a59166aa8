"""scikit-learn's classes that a file may hold: pipelines, and the scalers that exporters know too.

Their attributes are plain numbers, so they need no pickle. Other versions of scikit-learn may name attributes
differently; a model that was read is tried before it is handed out, so such a file is refused, not misread.
"""

from __future__ import annotations

from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from fewkern.backend.storable import storable

__all__ = ["SCALERS", "is_no_step"]

SCALERS: tuple[type, ...] = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)


def is_no_step(step: object) -> bool:
    """Whether a place in a pipeline is empty: None or "passthrough"."""
    return step is None or step == "passthrough"


def _check_pipeline(pipeline: Pipeline) -> None:
    steps = pipeline.steps
    if not isinstance(steps, list) or not all(isinstance(s, tuple) and len(s) == 2 for s in steps):
        raise ValueError("Pipeline.steps is not a list of names and steps")
    # a folder named here would be unpickled from by the next fit
    if pipeline.memory is not None:
        raise ValueError("Pipeline.memory must be None in a file; set it again after loading")


for _scaler in SCALERS:
    storable(_scaler)
storable(check=_check_pipeline)(Pipeline)
