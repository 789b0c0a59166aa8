"""Short models that do what fitted ones do."""

from fewkern.compression.compress import (
    CompressedClassifier,
    CompressedDetector,
    CompressedRegressor,
    CompressedTransformer,
    compress,
)
from fewkern.compression.distillation import Agreement

__all__ = [
    "Agreement",
    "CompressedClassifier",
    "CompressedDetector",
    "CompressedRegressor",
    "CompressedTransformer",
    "compress",
]
