"""Fitted models in files: ``save`` and ``load``; in other languages: ``to_c``, ``to_js``, ``to_onnx``, ``to_sql``."""

from fewkern.io.c import to_c, to_c_test
from fewkern.io.js import to_js
from fewkern.io.onnx import to_onnx
from fewkern.io.save import ModelFileError, load, save
from fewkern.io.sql import to_sql

__all__ = ["ModelFileError", "load", "save", "to_c", "to_c_test", "to_js", "to_onnx", "to_sql"]
