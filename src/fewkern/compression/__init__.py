"""Short models that do what fitted ones do."""

from fewkern.compression.compress import compress
from fewkern.compression.distillation import Agreement
from fewkern.compression.estimators import (
    CompressedClassifier,
    CompressedDetector,
    CompressedRegressor,
    CompressedTransformer,
)

__all__ = [
    "Agreement",
    "CompressedClassifier",
    "CompressedDetector",
    "CompressedRegressor",
    "CompressedTransformer",
    "compress",
]
