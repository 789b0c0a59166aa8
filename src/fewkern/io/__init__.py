"""Fitted models in other languages: ``plan`` describes a model, ``c`` and ``onnx`` write the description down."""

from fewkern.io.c import to_c
from fewkern.io.onnx import to_onnx

__all__ = ["to_c", "to_onnx"]
