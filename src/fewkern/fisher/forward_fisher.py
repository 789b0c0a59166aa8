"""kFDA_OLS: a kernel Fisher discriminant by forward selection."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from typing import Any

from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.base import KernelEstimator, ScoringClassifier, kept_importances
from fewkern.core.trace import Stop
from fewkern.fisher.families import LARGEST, ForwardFamily
from fewkern.fisher.fitting import FISHER, fit_fisher
from fewkern.populations import labelled_population
from fewkern.vectors.trust import novelty, novelty_threshold

__all__ = ["ForwardKernelFisher"]


class ForwardKernelFisher(ScoringClassifier, KernelEstimator):
    r"""Classify with a few samples: kernel Fisher discriminant by forward selection (kFDA_OLS).

    It starts with no sample and adds one after another, each time the one that lowers the error most. Two classes and
    many. In the words of the paper, the kernel column of largest error reduction ratio is taken,

    .. math:: \mathrm{err}_j = \|p_j^T R\|^2 / (p_j^T p_j\, \|Y\|^2),

    :math:`p_j` being the column orthogonalized against those taken, :math:`R` what they leave of the targets.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule is searched, see :class:`SparseKernelFisher`.
    n_vectors : int or "auto", default "auto"
        Number of columns. "auto" takes more than it needs, and drops and exchanges them as a logistic regression on
        them advises; folds say how many stay: see Notes.
    max_vectors : int or None, default None
        Budget of vectors; None compares up to 100, with three or more classes 300.
    min_residual : float, default 0.0
        Stop once this share of the targets' sum of squares is left.
    prefer, refine, max_candidates, variant, priors, class_weight, cv, random_state, verbose
        As in :class:`SparseKernelFisher`.

    Attributes
    ----------
    classes_, expansion_, vectors_, indices_, n_vectors_, refined_, kernel_, class_scores_, priors_, trace_, n_iter_
    feature_importances_
        As in :class:`SparseKernelFisher`; ``indices_`` in the order in which least squares takes them.
    held_out_scores_ : HeldOutScores or None
        Of the classes of held-out samples, which ``predict_set`` needs.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.
    stop_ : Stop
        SIZE if cross-validation chose fewer vectors than there could be, else why the selection ended.
    ratios_ : tuple of float
        Error reduction ratio of the constant, then of every vector; they add up to one minus the share left.

    Notes
    -----
    ``n m`` flops per vector for ``m`` candidates: every distinct sample up to 1000 of them, else 1000 chosen by
    the gain rule of :class:`FeatureVectorSelector`. Above 5,000 rows all choices are made on 5,000 of them, and the
    coefficients come from all rows, which may be those of a Dask collection: see :class:`SparseKernelFisher`.

    With ``n_vectors="auto"`` the coefficients are those of a logistic regression on the columns, not of least squares:
    about half as many vectors do for the same error. Wald's statistic says which column leaves, Rao's which one enters
    in its place (two classes), samples held out how many stay. ``variant=FisherVariant(width_by="leave_one_out")``
    keeps least squares, and so does a number of vectors that is given.

    The original article was not at hand: that the constant is forced
    and the coefficients are not regularized is our reading.

    References
    ----------
    S. Billings and K. Lee, "Nonlinear Fisher discriminant analysis using a minimum squared error cost function and the
    orthogonal least squares algorithm", Neural Networks 15 (2002).

    Examples
    --------
    >>> from fewkern import ForwardKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(300)
    >>> model = ForwardKernelFisher(n_vectors=10).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_
    (True, 10)
    """

    feature_importances_ = kept_importances
    novelty, novelty_threshold = novelty, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **FISHER,
        "n_vectors": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "min_residual": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: Any = "auto",
        max_vectors: int | None = None,
        max_candidates: int | None = None,
        min_residual: float = 0.0,
        prefer: str = "balanced",
        refine: Any = "auto",
        variant: Any = None,
        priors: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.max_candidates = max_candidates
        self.min_residual = min_residual
        self.prefer = prefer
        self.refine = refine
        self.variant = variant
        self.priors = priors
        self.class_weight = class_weight
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> ForwardKernelFisher:
        """Fit.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        population = labelled_population(self, X, y, sample_weight)
        limit = LARGEST if self.max_vectors is None else int(self.max_vectors)
        given = None if self.n_vectors == "auto" else int(self.n_vectors)
        size = fit_fisher(self, population, ForwardFamily(given, limit, self.min_residual))
        if given is None and size < limit:
            self.stop_ = Stop.SIZE
        left = (1.0, *self.trace_.objectives)
        self.ratios_ = tuple(before - after for before, after in pairwise(left))
        return self
