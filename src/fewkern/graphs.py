"""Graph pairs for :class:`~fewkern.GraphEmbedding` and :class:`~fewkern.RecursiveSoftMargin`: ``fisher``, ``pca``, ``lpp``,
``udp``, ``mfa``, ``lfda``, ``lsda``."""

from fewkern.core.graph_rules import GraphRule, fisher, lfda, lpp, lsda, mfa, pca, udp
from fewkern.core.graphs import GraphPair

__all__ = ["GraphPair", "GraphRule", "fisher", "lfda", "lpp", "lsda", "mfa", "pca", "udp"]
