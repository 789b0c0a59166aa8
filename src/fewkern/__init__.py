"""Kernel machines that keep only a few samples, in the scikit-learn API.

Importing the package is quick: a public name is imported when it is first used. Type checkers read ``__init__.pyi``.
"""

from importlib import import_module
from typing import Any

from fewkern._version import __version__
from fewkern.arrays.storable import announce

# The public names of every module.
_EXPORTS = {
    "compression": ("compress",),
    "core.expansion": ("KernelBasis", "KernelExpansion"),
    "core.gaussians": ("GaussianBasis", "GaussianExpansion"),
    "density.classifier": ("DensityClassifier",),
    "density.forward": ("ForwardDensity",),
    "density.mixture": ("KernelMixture",),
    "density.paper": ("ForwardConstrainedDensity", "OrthogonalForwardDensity", "ParzenDensity", "ReducedSetDensity"),
    "fisher.classifiers": ("ForwardKernelFisher", "SparseKernelFisher"),
    "io": ("load", "save", "to_c", "to_c_test", "to_js", "to_onnx", "to_sql"),
    "learn.estimators": ("KernelClassifier", "KernelRegressor"),
    "learn.suspects": ("suspects",),
    "margins.graph_reducers": ("GraphEmbedding", "RecursiveSoftMargin"),
    "margins.svm": ("RecursiveSVM",),
    "reporting": ("Report", "ReportSettings", "report"),
    "select.predictors": ("FeatureVectorDiscriminant", "FeatureVectorRegressor"),
    "select.selector": ("FeatureVectorPCA", "FeatureVectorSelector"),
    "tables.encoder": ("TableEncoder",),
    "tables.model": ("TableModel",),
}
_PLACES = {name: f"{__name__}.{module}" for module, names in _EXPORTS.items() for name in names}
_MODULES = ("graphs", "kernels")

__all__ = ["__version__", *_MODULES, *sorted(_PLACES)]

# Every public estimator can be saved, and every class that it is made of.
announce({name: place for name, place in _PLACES.items() if name[0].isupper() and name not in _EXPORTS["reporting"]})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
