from fewkern import graphs as graphs
from fewkern import kernels as kernels
from fewkern._version import __version__ as __version__
from fewkern.compression import compress as compress
from fewkern.core.expansion import KernelBasis as KernelBasis
from fewkern.core.expansion import KernelExpansion as KernelExpansion
from fewkern.core.gaussians import GaussianBasis as GaussianBasis
from fewkern.core.gaussians import GaussianExpansion as GaussianExpansion
from fewkern.density.classifier import DensityClassifier as DensityClassifier
from fewkern.density.forward import ForwardDensity as ForwardDensity
from fewkern.density.mixture import KernelMixture as KernelMixture
from fewkern.density.paper import ForwardConstrainedDensity as ForwardConstrainedDensity
from fewkern.density.paper import OrthogonalForwardDensity as OrthogonalForwardDensity
from fewkern.density.paper import ParzenDensity as ParzenDensity
from fewkern.density.paper import ReducedSetDensity as ReducedSetDensity
from fewkern.fisher.classifiers import ForwardKernelFisher as ForwardKernelFisher
from fewkern.fisher.classifiers import SparseKernelFisher as SparseKernelFisher
from fewkern.io import load as load
from fewkern.io import save as save
from fewkern.io import to_c as to_c
from fewkern.io import to_c_test as to_c_test
from fewkern.io import to_js as to_js
from fewkern.io import to_onnx as to_onnx
from fewkern.io import to_sql as to_sql
from fewkern.learn.estimators import KernelClassifier as KernelClassifier
from fewkern.learn.estimators import KernelRegressor as KernelRegressor
from fewkern.learn.suspects import suspects as suspects
from fewkern.margins.graph_reducers import GraphEmbedding as GraphEmbedding
from fewkern.margins.graph_reducers import RecursiveSoftMargin as RecursiveSoftMargin
from fewkern.margins.svm import RecursiveSVM as RecursiveSVM
from fewkern.reporting import Report as Report
from fewkern.reporting import ReportSettings as ReportSettings
from fewkern.reporting import report as report
from fewkern.select.predictors import FeatureVectorDiscriminant as FeatureVectorDiscriminant
from fewkern.select.predictors import FeatureVectorRegressor as FeatureVectorRegressor
from fewkern.select.selector import FeatureVectorPCA as FeatureVectorPCA
from fewkern.select.selector import FeatureVectorSelector as FeatureVectorSelector
from fewkern.tables.encoder import TableEncoder as TableEncoder
from fewkern.tables.model import TableModel as TableModel

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
