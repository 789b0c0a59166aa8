"""Graph pairs: which samples belong together, and which should be apart.

:class:`~fewkern.GraphEmbedding` and :class:`~fewkern.RecursiveSoftMargin` take a rule (or its name in lower case), a
:class:`GraphPair` of weights, or two matrices of weights. Rules are parameter objects like kernels, so
``graph__neighbors`` works in a grid search.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from fewkern import RecursiveSoftMargin, graphs
>>> X, y = load_iris(return_X_y=True)
>>> model = RecursiveSoftMargin(graph=graphs.MFA(within=3, between=50), n_components=2)
>>> model.fit_transform(X, y).shape
(150, 2)
>>> model.set_params(graph__within=5).graph
MFA(within=5, between=50)
"""

from fewkern.margins.graphs import AllPairs, Degrees, Factor, GraphPair, LocalAffinity, SparseWeights, WithinClasses
from fewkern.margins.rules import *
from fewkern.margins.rules import __all__ as _RULES

# The list of rules is that of the module that has them, so that a new one is written in one file.
__all__ = [
    *_RULES,
    "AllPairs",
    "Degrees",
    "Factor",
    "GraphPair",
    "LocalAffinity",
    "SparseWeights",
    "WithinClasses",
]
