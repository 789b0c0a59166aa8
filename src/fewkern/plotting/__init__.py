"""Pictures of fitted models, as scikit-learn's Display objects. They need matplotlib."""

from fewkern.plotting.components import AccuracyDisplay, ComponentsDisplay
from fewkern.plotting.density import DensityDisplay
from fewkern.plotting.fisher import FisherPathDisplay
from fewkern.plotting.importances import ImportancesDisplay
from fewkern.plotting.trace import TraceDisplay
from fewkern.plotting.vectors import VectorsDisplay

__all__ = [
    "AccuracyDisplay",
    "ComponentsDisplay",
    "DensityDisplay",
    "FisherPathDisplay",
    "ImportancesDisplay",
    "TraceDisplay",
    "VectorsDisplay",
]
