"""Graph pairs: which samples belong together, and which should be apart.

For :class:`~fewkern.GraphEmbedding` and :class:`~fewkern.RecursiveSoftMargin`, which also take the names of the rules,
a :class:`GraphPair`, or two matrices of weights.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from fewkern import RecursiveSoftMargin, graphs
>>> X, y = load_iris(return_X_y=True)
>>> RecursiveSoftMargin(graph=graphs.mfa(within=3, between=50), n_components=2).fit_transform(X, y).shape
(150, 2)
"""

from fewkern.margins.graphs import GraphPair
from fewkern.margins.rules import GraphRule, fisher, lfda, lpp, lsda, mfa, pca, udp

__all__ = ["GraphPair", "GraphRule", "fisher", "lfda", "lpp", "lsda", "mfa", "pca", "udp"]
