"""kFDA_q: a kernel Fisher discriminant that keeps few samples."""

from __future__ import annotations

from numbers import Real
from typing import Any

from fewkern.backend.validation import Interval, StrOptions, fit_context
from fewkern.base import KernelEstimator, ScoringClassifier, constraints, kept_importances
from fewkern.fisher.families import LqFamily
from fewkern.fisher.fitting import FISHER, fit_fisher
from fewkern.fisher.lq import LqSettings
from fewkern.fisher.variant import FisherVariant
from fewkern.populations import labelled_population
from fewkern.vectors.trust import novelty, novelty_threshold

__all__ = ["SparseKernelFisher", "lq_family"]


class SparseKernelFisher(ScoringClassifier, KernelEstimator):
    r"""Classify with a few samples: kernel Fisher discriminant with a penalty (kFDA_q), two classes and many.

    Fisher's discriminant is a regression on class labels. A penalty on its coefficients sets most of them to zero, as
    the lasso does, and the samples without a coefficient are not needed any more:

    .. math:: \min_\Omega \tfrac12 \|Y - [1\; K]\,\Omega\|_F^2 + \rho N \sum_i \|\Omega_i\|_2^q \qquad (5)

    with the targets of Fisher's discriminant (for two classes :math:`+N/N_1` and :math:`-N/N_2`). ``q = 1`` is solved
    exactly by an active set, ``q < 1`` by the majorize-minimize iteration (8) on the components that are still
    alive; a sample without a coefficient is absent, not small. Several classes share one support.

    Parameters
    ----------
    kernel : str, Kernel or callable, default "gaussian"
        A width given as a rule ("median", the default, or "scale") is the centre of a grid from 0.14 to 6 times its
        value, searched by leave-one-out. It is one width per feature, in units of that feature, so that the units of
        the data do not matter (``unit`` of :class:`~fewkern.kernels.Gaussian`). A width given as a number is kept.
    q : float, default 0.5
        In (0, 2]. Smaller keeps fewer samples; from above 1 on none is dropped.
    penalty : float or "auto", default "auto"
        :math:`\rho`. "auto" compares numbers of vectors by cross-validation, see Notes. With ``q`` above 1, or with
        ``FisherVariant(width_by="leave_one_out")``, it compares nine penalties from 0.3 to 3e-5.
    prefer : {"accurate", "balanced", "sparse"}, default "balanced"
        The machine of least held-out error, the one of fewest vectors that is nearly as good (within half a standard
        error of the difference, and 0.75 percent of the samples, less above 800 samples; 0.2 percent with several
        classes, less above 2,000), or twice as far.
    refine : "auto" or bool, default "auto"
        Move the vectors, and learn one width per feature, where the number of vectors is automatic. "auto" does so
        where more than 15 samples would be kept (10 of a thousand or more) and samples held out say that it pays, with
        a width that is a rule; True always; False keeps samples as vectors. A moved vector is not a sample any more,
        and the fit takes longer: twice as long with several classes, four to eight times with two.
    max_vectors : int or None, default None
        Budget of vectors: machines that keep more are not taken. A penalty that keeps more, given or chosen, is
        raised until the machine is within the budget.
    max_candidates : int or None, default None
        Only so many samples, chosen by the gain rule of :class:`FeatureVectorSelector`, are looked at, in memory of
        order ``n * max_candidates``. None: every distinct sample up to 1000 of them, else 1000.
    variant : FisherVariant, "paper" or None, default None
        Details: how a width is chosen, where the iteration starts, whether the bias is penalized, and how scores become
        probabilities. See :class:`~fewkern.fisher.FisherVariant`.
    priors : array of shape (n_classes,) or None, default None
        Class probabilities where the model is used, if they are not those of the training samples.
    class_weight : dict, "balanced" or None, default None
    cv : int, splitter or iterable of splits, default 5
        A number gives stratified folds in the order of the rows (at most as many as the smallest class has samples), so
        nothing is random.
    tol : float or None, default None
        Relative change of the objective that ends the iteration (1e-8), for ``q = 1`` the relative duality gap (1e-7).
    max_iter : int, default 1000
    random_state : int, Generator, RandomState or None, default 0
        Only for the choice of candidates and of the samples to search on.
    verbose : bool or int, default False

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    expansion_ : KernelExpansion
        One score for two classes (positive: the second), one per class otherwise.
    feature_importances_
        As in :class:`FeatureVectorRegressor`.
    vectors_, indices_, n_vectors_
        The vectors that are kept, the rows of ``X`` that they are (or started from, if ``refined_``), their number.
    refined_ : bool
        Whether the vectors were moved.
    kernel_ : Kernel
    penalty_ : float
    objective_ : float
        Value of (5) at the solution. With an automatic penalty, that of the machine whose vectors were thinned out.
    class_scores_ : ClassScores
        How the scores become probabilities.
    priors_ : array of shape (n_classes,)
        Shares of the classes, in the rows that choices are made on.
    held_out_scores_ : HeldOutScores or None
        Of the classes of held-out samples, which ``predict_set`` needs.
    novelty_ : Novelty or None
        What ``novelty`` and ``novelty_threshold`` need.
    trace_ : Trace
        Held-out errors, and the objective after every step, which never rises.
    stop_ : Stop
        How the last fit ended.
    n_iter_ : int

    Notes
    -----
    ================== ================ ===================================================
    paper              here             meaning
    ================== ================ ===================================================
    rho                ``penalty_``     weight of the penalty
    omega = (b, alpha) ``expansion_``   bias and coefficients, mapped to class scores
    NRS                ``n_vectors_``   samples retained
    ================== ================ ===================================================

    Cost: ``n m`` kernel values for ``m`` candidates, then ``n k^2 + k^3`` per step with ``k`` components alive.

    Above 5,000 rows all choices are made on 5,000 of them: width, penalty, vectors, and what is said of held-out
    samples. The coefficients of the vectors then come from all rows: by one pass over them, or by two where they are
    those of a logistic regression. So the time of a fit grows with the rows only by these passes. ``X`` may be a Dask
    array or data frame, whose rows stay where they are; the model is the same for any chunking, and the same as in
    memory.

    With ``penalty="auto"`` and ``q <= 1``, folds of forward selection choose the width and the number of vectors. The
    penalty is the first one at which enough samples are kept among three times as many of forward selection. Of these
    as few stay as a logistic regression on their kernel columns needs, which also replaces the coefficients of (5):
    about half as many vectors do for the same error. ``variant=FisherVariant(width_by="leave_one_out")`` keeps (5) to
    the end, with the penalty of least cross-validated error; a penalty that is given does so, too.

    The machine of the paper is ``variant="paper", tol=1e-5``. With ``q = 2`` this is the plain kernel Fisher
    discriminant: one linear system for every penalty, and every sample is kept.

    References
    ----------
    R. F. Harrison and K. Pasupa, "A simple iterative algorithm for parsimonious binary kernel Fisher discrimination",
    Pattern Analysis and Applications 13 (2010).

    Examples
    --------
    >>> from fewkern import SparseKernelFisher
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(300)
    >>> model = SparseKernelFisher(penalty=0.01).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.n_vectors_ < 30
    (True, True)
    """

    feature_importances_ = kept_importances
    novelty, novelty_threshold = novelty, novelty_threshold

    _parameter_constraints: dict[str, list[Any]] = {
        **FISHER,
        **constraints("tol", "max_iter"),
        "q": [Interval(Real, 0, 2, closed="right")],
        "penalty": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        kernel: Any = "gaussian",
        q: float = 0.5,
        penalty: Any = "auto",
        prefer: str = "balanced",
        refine: Any = "auto",
        max_vectors: int | None = None,
        max_candidates: int | None = None,
        variant: Any = None,
        priors: Any = None,
        class_weight: Any = None,
        cv: Any = 5,
        tol: float | None = None,
        max_iter: int = 1000,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.kernel = kernel
        self.q = q
        self.penalty = penalty
        self.prefer = prefer
        self.refine = refine
        self.max_vectors = max_vectors
        self.max_candidates = max_candidates
        self.variant = variant
        self.priors = priors
        self.class_weight = class_weight
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseKernelFisher:
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
        if self.max_vectors is not None and self.q > 1:
            raise ValueError(
                f"SparseKernelFisher: q = {self.q} drops no sample, so max_vectors cannot be kept; use q <= 1, or "
                "max_candidates."
            )
        self.penalty_ = fit_fisher(self, population, lq_family(self))
        self.objective_ = self.trace_.objectives[-1]
        return self


def lq_family(model: SparseKernelFisher) -> LqFamily:
    """The parameters of the model as the value that the algorithms take."""
    variant = FisherVariant.of(model.variant)
    return LqFamily(
        LqSettings(model.q, variant.start, model.tol, model.max_iter),
        None if model.penalty == "auto" else float(model.penalty),
        variant.penalize_bias,
    )
