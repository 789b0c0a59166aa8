"""Kernel machines that keep only a few samples, in the scikit-learn API."""

from fewkern import graphs, kernels
from fewkern._version import __version__
from fewkern.core.basis import KernelBasis
from fewkern.core.expansion import KernelExpansion
from fewkern.export import to_c, to_onnx
from fewkern.models.components import FeatureVectorPCA
from fewkern.models.density import OrthogonalForwardDensity, ParzenDensity, ReducedSetDensity
from fewkern.models.density_classifier import DensityClassifier
from fewkern.models.discriminant import FeatureVectorDiscriminant
from fewkern.models.embedding import GraphEmbedding
from fewkern.models.fisher import KernelFisher, SparseKernelFisher
from fewkern.models.fisher_path import FisherPath, fisher_path
from fewkern.models.forward_density import ForwardDensity
from fewkern.models.forward_fisher import ForwardKernelFisher
from fewkern.models.margins import RecursiveSVM
from fewkern.models.regression import FeatureVectorClassifier, FeatureVectorRegressor
from fewkern.models.soft_margin import RecursiveSoftMargin
from fewkern.models.vectors import FeatureVectorSelector
from fewkern.persist import load, save

__all__ = [
    "DensityClassifier",
    "FeatureVectorClassifier",
    "FeatureVectorDiscriminant",
    "FeatureVectorPCA",
    "FeatureVectorRegressor",
    "FeatureVectorSelector",
    "FisherPath",
    "ForwardDensity",
    "ForwardKernelFisher",
    "GraphEmbedding",
    "KernelBasis",
    "KernelExpansion",
    "KernelFisher",
    "OrthogonalForwardDensity",
    "ParzenDensity",
    "RecursiveSVM",
    "RecursiveSoftMargin",
    "ReducedSetDensity",
    "SparseKernelFisher",
    "__version__",
    "fisher_path",
    "graphs",
    "kernels",
    "load",
    "save",
    "to_c",
    "to_onnx",
]
