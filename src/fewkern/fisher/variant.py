"""Details in which the kernel Fisher classifiers may follow the paper."""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.storable import storable
from fewkern.fisher.lq import Start
from fewkern.fisher.posterior import PosteriorRule

__all__ = ["FisherVariant"]


@storable
@dataclass(frozen=True)
class FisherVariant:
    r"""Details of :class:`~fewkern.SparseKernelFisher` and :class:`~fewkern.ForwardKernelFisher` that few users need.

    ``variant="paper"`` is :meth:`paper`.

    Parameters
    ----------
    posterior : {"logistic", "gaussian", "least_squares"}, default "logistic"
        Decision and probabilities. "logistic" (regression) and "gaussian" (classes of common covariance) are fitted to
        held-out scores; "least_squares" has the paper's threshold, the midpoint of the targets
        :math:`\tfrac N2(1/N_1 - 1/N_2)`, and is used wherever a class has fewer than five samples.
    penalize_bias : bool, default False
        True is the paper: the bias is penalized like a sample. Only for kFDA_q.
    start : {"auto", "lasso", "ridge", "best"}, default "auto"
        Where the iteration for ``q < 1`` begins: at the solution for ``q = 1`` ("auto" for two classes) or ``q = 2``.
        "best" is the lowest of three minima, three times the work, and never above the paper's iteration. Only for
        kFDA_q.

    Examples
    --------
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> from fewkern.fisher import FisherVariant
    >>> model = SparseKernelFisher(alpha=0.01, variant=FisherVariant(start="best")).fit(*make_banana(200))
    >>> model.n_vectors_ < 20
    True
    """

    posterior: PosteriorRule = "logistic"
    penalize_bias: bool = False
    start: Start = "auto"

    def __post_init__(self) -> None:
        for name, values in _VALUES.items():
            if getattr(self, name) not in values:
                raise ValueError(f"FisherVariant: {name} must be one of {values}, got {getattr(self, name)!r}.")

    @classmethod
    def paper(cls) -> FisherVariant:
        """The machine of the KFD paper. Its stop is ``tol=1e-5``; it counts repeated samples apart, we never do."""
        return cls("least_squares", penalize_bias=True, start="ridge")

    @classmethod
    def of(cls, variant: FisherVariant | str | None) -> FisherVariant:
        """The value that the parameter ``variant`` means."""
        if isinstance(variant, cls):
            return variant
        return cls.paper() if variant == "paper" else cls()


_VALUES = {
    "posterior": ("logistic", "gaussian", "least_squares"),
    "penalize_bias": (False, True),
    "start": ("auto", "lasso", "ridge", "best"),
}
