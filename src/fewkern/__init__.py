"""Kernel machines that keep only a few samples, in the scikit-learn API."""

from sklearn.base import BaseEstimator

from fewkern import graphs, kernels
from fewkern import table as _table  # noqa: F401 - registers what the command line saves
from fewkern._version import __version__
from fewkern.backend.storable import storable
from fewkern.compression import compress
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.density.classifier import DensityClassifier
from fewkern.density.forward import ForwardDensity
from fewkern.density.forward_constrained import ForwardConstrainedDensity
from fewkern.density.mixture import KernelMixture
from fewkern.density.orthogonal import OrthogonalForwardDensity
from fewkern.density.parzen import ParzenDensity
from fewkern.density.reduced_set import ReducedSetDensity
from fewkern.fisher.forward_fisher import ForwardKernelFisher
from fewkern.fisher.sparse import SparseKernelFisher
from fewkern.io import load, save, to_c, to_onnx
from fewkern.margins.graph_embedding import GraphEmbedding
from fewkern.margins.soft_margin import RecursiveSoftMargin
from fewkern.margins.svm import RecursiveSVM
from fewkern.reporting import Report, ReportSettings, report
from fewkern.vectors.discriminant import FeatureVectorDiscriminant
from fewkern.vectors.pca import FeatureVectorPCA
from fewkern.vectors.regression import FeatureVectorClassifier, FeatureVectorRegressor
from fewkern.vectors.selector import FeatureVectorSelector

__all__ = [
    "DensityClassifier",
    "FeatureVectorClassifier",
    "FeatureVectorDiscriminant",
    "FeatureVectorPCA",
    "FeatureVectorRegressor",
    "FeatureVectorSelector",
    "ForwardConstrainedDensity",
    "ForwardDensity",
    "ForwardKernelFisher",
    "GraphEmbedding",
    "KernelBasis",
    "KernelExpansion",
    "KernelMixture",
    "OrthogonalForwardDensity",
    "ParzenDensity",
    "RecursiveSVM",
    "RecursiveSoftMargin",
    "ReducedSetDensity",
    "Report",
    "ReportSettings",
    "SparseKernelFisher",
    "__version__",
    "compress",
    "graphs",
    "kernels",
    "load",
    "report",
    "save",
    "to_c",
    "to_onnx",
]

# Every public estimator can be saved.
for _public in map(globals().get, __all__):
    if isinstance(_public, type) and issubclass(_public, BaseEstimator):
        storable(_public)
