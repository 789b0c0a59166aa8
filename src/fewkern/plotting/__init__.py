"""Pictures of fitted models, as scikit-learn's Display objects. They need matplotlib.

``from_estimator`` takes a fitted estimator, a Pipeline, or a search such as GridSearchCV, with arrays or data frames.
What scikit-learn draws is not repeated here: residuals (``PredictionErrorDisplay``), ``ConfusionMatrixDisplay``,
``CalibrationDisplay``, ``RocCurveDisplay`` and ``PartialDependenceDisplay`` take the estimators of fewkern as they are.
"""

from fewkern.plotting.density import DensityDisplay
from fewkern.plotting.path import AccuracyDisplay, FisherPathDisplay, PathDisplay
from fewkern.plotting.predictions import IntervalsDisplay, NoveltyDisplay, SharesDisplay, WaterfallDisplay
from fewkern.plotting.vectors import ComponentsDisplay, ImportancesDisplay, VectorsDisplay

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
