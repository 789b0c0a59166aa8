"""Pictures of fitted models, as scikit-learn's Display objects. They need matplotlib.

``from_estimator`` takes a fitted estimator, a Pipeline, or a search such as GridSearchCV, with arrays or data frames.
What scikit-learn draws is not repeated here: residuals (``PredictionErrorDisplay``), ``ConfusionMatrixDisplay``,
``CalibrationDisplay``, ``RocCurveDisplay`` and ``PartialDependenceDisplay`` take the estimators of fewkern as they are.
"""

from fewkern.plotting.density import DensityDisplay
from fewkern.plotting.features import ImportancesDisplay, SharesDisplay, WaterfallDisplay
from fewkern.plotting.intervals import IntervalsDisplay, NoveltyDisplay
from fewkern.plotting.path import FisherPathDisplay, PathDisplay
from fewkern.plotting.vectors import AccuracyDisplay, ComponentsDisplay, VectorsDisplay

__all__ = [
    "AccuracyDisplay",
    "ComponentsDisplay",
    "DensityDisplay",
    "FisherPathDisplay",
    "ImportancesDisplay",
    "IntervalsDisplay",
    "NoveltyDisplay",
    "PathDisplay",
    "SharesDisplay",
    "VectorsDisplay",
    "WaterfallDisplay",
]
