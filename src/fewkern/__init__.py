"""Kernel machines that keep only a few samples, in the scikit-learn API."""

from fewkern import graphs, kernels
from fewkern._version import __version__
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
from fewkern.fisher.path import FisherPath, fisher_path
from fewkern.fisher.sparse import KernelFisher, SparseKernelFisher
from fewkern.io import to_c, to_onnx
from fewkern.io.save import load, save
from fewkern.margins.graph_embedding import GraphEmbedding
from fewkern.margins.soft_margin import RecursiveSoftMargin
from fewkern.margins.svm import RecursiveSVM
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
    "FisherPath",
    "ForwardConstrainedDensity",
    "ForwardDensity",
    "ForwardKernelFisher",
    "GraphEmbedding",
    "KernelBasis",
    "KernelExpansion",
    "KernelFisher",
    "KernelMixture",
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
