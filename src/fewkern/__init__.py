"""Kernel machines that keep only a few samples, in the scikit-learn API.

Importing the package is quick: a public name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fewkern._version import __version__
from fewkern.arrays.storable import announce

if TYPE_CHECKING:
    from fewkern import graphs, kernels
    from fewkern.compression import compress
    from fewkern.core.basis import KernelBasis
    from fewkern.core.expansion import KernelExpansion
    from fewkern.density.classifier import DensityClassifier
    from fewkern.density.forward import ForwardDensity
    from fewkern.density.mixture import KernelMixture
    from fewkern.density.paper import (
        ForwardConstrainedDensity,
        OrthogonalForwardDensity,
        ParzenDensity,
        ReducedSetDensity,
    )
    from fewkern.fisher.forward_fisher import ForwardKernelFisher
    from fewkern.fisher.sparse import SparseKernelFisher
    from fewkern.io import load, save, to_c, to_c_test, to_js, to_onnx, to_sql
    from fewkern.learn.suspects import suspects
    from fewkern.margins.graph_reducers import GraphEmbedding, RecursiveSoftMargin
    from fewkern.margins.svm import RecursiveSVM
    from fewkern.reporting import Report, ReportSettings, report
    from fewkern.select.predictors import FeatureVectorDiscriminant, FeatureVectorRegressor
    from fewkern.select.selector import FeatureVectorPCA, FeatureVectorSelector
    from fewkern.tables.encoder import TableEncoder
    from fewkern.tables.model import TableModel

__all__ = [
    "DensityClassifier",
    "FeatureVectorDiscriminant",
    "FeatureVectorPCA",
    "FeatureVectorRegressor",
    "FeatureVectorSelector",
    "ForwardConstrainedDensity",
    "ForwardDensity",
    "ForwardKernelFisher",
    "GaussianBasis",
    "GaussianExpansion",
    "GraphEmbedding",
    "KernelBasis",
    "KernelClassifier",
    "KernelExpansion",
    "KernelMixture",
    "KernelRegressor",
    "OrthogonalForwardDensity",
    "ParzenDensity",
    "RecursiveSVM",
    "RecursiveSoftMargin",
    "ReducedSetDensity",
    "Report",
    "ReportSettings",
    "SparseKernelFisher",
    "TableEncoder",
    "TableModel",
    "__version__",
    "compress",
    "graphs",
    "kernels",
    "load",
    "report",
    "save",
    "suspects",
    "to_c",
    "to_c_test",
    "to_js",
    "to_onnx",
    "to_sql",
]

# Where a public name is.
_PLACES = {
    "DensityClassifier": "density.classifier",
    "FeatureVectorDiscriminant": "select.predictors",
    "FeatureVectorPCA": "select.selector",
    "FeatureVectorRegressor": "select.predictors",
    "FeatureVectorSelector": "select.selector",
    "ForwardConstrainedDensity": "density.paper",
    "ForwardDensity": "density.forward",
    "ForwardKernelFisher": "fisher.forward_fisher",
    "GaussianBasis": "core.gaussians",
    "GaussianExpansion": "core.gaussians",
    "GraphEmbedding": "margins.graph_reducers",
    "KernelBasis": "core.basis",
    "KernelClassifier": "learn.classifier",
    "KernelExpansion": "core.expansion",
    "KernelMixture": "density.mixture",
    "KernelRegressor": "learn.regressor",
    "OrthogonalForwardDensity": "density.paper",
    "ParzenDensity": "density.paper",
    "RecursiveSVM": "margins.svm",
    "RecursiveSoftMargin": "margins.graph_reducers",
    "ReducedSetDensity": "density.paper",
    "Report": "reporting",
    "ReportSettings": "reporting",
    "SparseKernelFisher": "fisher.sparse",
    "TableEncoder": "tables.encoder",
    "TableModel": "tables.model",
    "compress": "compression",
    "load": "io",
    "report": "reporting",
    "save": "io",
    "suspects": "learn.suspects",
    "to_c": "io",
    "to_c_test": "io",
    "to_js": "io",
    "to_onnx": "io",
    "to_sql": "io",
}
_MODULES = ("graphs", "kernels")

# Every public estimator can be saved, and every class that it is made of.
announce({name: f"{__name__}.{place}" for name, place in _PLACES.items() if name[0].isupper() and place != "reporting"})


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
