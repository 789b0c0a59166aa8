"""kFDA_OLS: a kernel Fisher discriminant by forward selection."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from fewkern.arrays.validation import fit_context
from fewkern.base import KernelEstimator, ScoringClassifier, explain, kept_importances
from fewkern.core.path import Stop
from fewkern.fisher.fitting import CONSTRAINTS, fit_fisher
from fewkern.fisher.forward import MAX_VECTORS, MAX_VECTORS_MULTICLASS, ForwardFamily
from fewkern.populations import labelled_population
from fewkern.select.base import novelty, novelty_pvalue, novelty_threshold


class ForwardKernelFisher(ScoringClassifier, KernelEstimator):
    r"""Kernel Fisher discriminant by orthogonal forward selection (kFDA_OLS) for two or more classes.

    Fisher's discriminant is a least-squares regression on coded class labels. Starting from the constant, the kernel
    column of largest error reduction ratio is added,

    .. math:: \mathrm{err}_j = \|p_j^T R\|^2 / (p_j^T p_j\, \|Y\|^2),

    :math:`p_j` being the column orthogonalized against those taken and :math:`R` the residual of the targets
    :math:`Y`. The coefficients are those of ordinary least squares on the columns taken. This is the method that the
    KFD paper calls kFDA_OLS and compares kFDA_q with (its reference 14).

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A length scale given as a rule is chosen by cross-validation, see :class:`SparseKernelFisher`.
    n_vectors : int or None, default None
        Number of columns; None: chosen by cross-validation.
    max_vectors : int or None, default None
        Largest number of columns. None does not bound a number that is given; without one, up to 100 are compared, with
        three or more classes 300.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        How the number of vectors is chosen: the one of least cross-validated error, or the smallest one whose error is
        within half a standard error ("balanced") or one standard error ("sparse") of it.
    class_weight, cv, random_state
        As in :class:`SparseKernelFisher`.

    Attributes
    ----------
    classes_, expansion_, vectors_, indices_, n_vectors_, kernel_, class_scores_, n_iter_
    feature_importances_
        As in :class:`SparseKernelFisher`; ``indices_`` in the order of selection.
    background_ : Background or None
        What :meth:`explain` compares with: at most 16 weighted centers of the samples, each the mean of five or more
        (where there are so many). None for sparse samples and kernels other than the Gaussian.
    held_out_error_ : float or None
        Share of held-out samples that are misclassified (weighted), every fold with the number of vectors that the
        other folds choose. The length scale was chosen with all folds. None where a class is too small for folds.
    held_out_scores_ : HeldOutScores or None
        Scores of the held-out samples, which ``predict_set`` needs.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.
    path_ : Path
        Cross-validated error of every length scale and number of vectors that was compared, and the share of the
        targets' sum of squares that is left after the constant and after every vector.
    stop_ : Stop
        SIZE if cross-validation chose fewer vectors than there could be, else why the selection ended.
    error_reduction_ : tuple of float
        Error reduction ratio of the constant, then of every vector; they add up to one minus the share left.

    Notes
    -----
    ``n m`` flops per vector for ``m`` candidates. Length scales and numbers of vectors are compared as in
    :class:`SparseKernelFisher`, with a path of sizes in place of a path of penalties: 0.3 to 0.7 seconds for 200 to
    1,000 samples. Above 5,000 rows length scale, size and vectors come from 5,000 of them, and the coefficients from
    all rows, which may be those of a Dask collection.

    The original article was not at hand: that the constant is forced and the coefficients are not regularized is our
    reading. The decision is that of :class:`SparseKernelFisher`.

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
    explain = explain
    novelty, novelty_pvalue, novelty_threshold = novelty, novelty_pvalue, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **CONSTRAINTS,
        "n_vectors": CONSTRAINTS["max_vectors"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        n_vectors: int | None = None,
        max_vectors: int | None = None,
        prefer: str = "balanced",
        class_weight: Any = None,
        cv: Any = 5,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.n_vectors = n_vectors
        self.max_vectors = max_vectors
        self.prefer = prefer
        self.class_weight = class_weight
        self.cv = cv
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> ForwardKernelFisher:
        """Fit.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels of two or more classes.
        sample_weight : array of shape (n_samples,) or None
        groups : array of shape (n_samples,) or None
            Labels, equal for samples that belong together, such as the measurements of one person. Whole groups are
            then held out.

        Returns
        -------
        self
        """
        population = labelled_population(self, X, y, sample_weight, groups)
        fitted = fit_fisher(self, population, self._family())
        largest = self.path_.axes["n_vectors"][-1]
        self.stop_ = Stop.SIZE if fitted.setting < largest else fitted.ending.stop
        self.n_iter_ = fitted.ending.n_iter
        self.error_reduction_ = tuple(before - after for before, after in pairwise((1.0, *fitted.objectives)))
        return self

    def _family(self) -> ForwardFamily:
        limit = self.max_vectors
        if self.n_vectors is not None:
            size = int(self.n_vectors) if limit is None else min(int(self.n_vectors), int(limit))
            return ForwardFamily(size, size)
        if limit is None:
            limit = MAX_VECTORS if len(self.classes_) == 2 else MAX_VECTORS_MULTICLASS
        return ForwardFamily(None, int(limit))
