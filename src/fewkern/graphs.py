"""Graph pairs: which samples belong together, and which should be apart.

For :class:`~fewkern.GraphEmbedding` and :class:`~fewkern.RecursiveSoftMargin`.
"""

from fewkern.core.graph_rules import GraphRule, fisher, lfda, lpp, lsda, mfa, pca, udp
from fewkern.core.graphs import GraphPair

__all__ = ["GraphPair", "GraphRule", "fisher", "lfda", "lpp", "lsda", "mfa", "pca", "udp"]
