"""Fitted models in files: ``save`` and ``load``; in other languages: ``plan``, which ``c`` and ``onnx`` write down."""

from fewkern.io.c import to_c
from fewkern.io.onnx import to_onnx
from fewkern.io.save import ModelFileError, load, save

__all__ = ["ModelFileError", "load", "save", "to_c", "to_onnx"]
