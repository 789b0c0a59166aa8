"""RecursiveSVM: several orthogonal directions of maximum margin."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fewkern.arrays.namespace import Array, asarray_like
from fewkern.arrays.progress import progress
from fewkern.arrays.validation import Interval, fit_context
from fewkern.base import constraints, warn_of_fewer_components
from fewkern.core.path import Stop
from fewkern.core.samples import Population, Samples
from fewkern.margins.embedding import Reflected, principal_space
from fewkern.margins.hinge import GAP_RTOL, MAX_ITERATIONS
from fewkern.margins.recursion import MarginDirections, MarginProblem, class_problems, recursive_margin, tube_problem
from fewkern.margins.reducer import REDUCER, Features, Reducer
from fewkern.populations import labelled_population, measured_population


class RecursiveSVM(Reducer):
    r"""Several directions with a wide margin between classes, one after another: a transformer (RSVM).

    The first is that of a support vector machine. It is removed from the samples, and the next is found in the
    complement. Each direction is the normal of a support vector machine in the orthogonal complement of those before,

    .. math::

        \min_{w, b} \tfrac12 \|w\|^2 + \sum_i C_i (1 - y_i (\langle w, \phi(x_i) \rangle + b))_+
        \quad \text{subject to } \langle w, w_j \rangle = 0,\ j < t,

    so two classes give more than one component, unlike linear discriminant analysis. With many classes every step
    solves one problem per class and takes out the span of their normals.

    Parameters
    ----------
    n_components : int or None, default None
        Most components; by default all directions with a margin. If fewer exist than are asked for, there are fewer,
        with a warning, and ``stop_`` says why.
    kernel : str, Kernel or callable, default "linear"
        See :mod:`fewkern.kernels`.
    C : float, default 1.0
        Weight of the hinges. Very large ones, beyond 1e6 or so, may end with ``stop_`` "precision".
    class_weight : dict, "balanced" or None, default None
        Multiplies the weights of the samples of every class. "balanced" is recommended for unbalanced classes, as it
        yields more directions: the recursion then stops only when the class means coincide. Ignored in a regression.
    epsilon : float or None, default None
        None finds hyperplanes between classes. With a number ``y`` is numeric, and every direction is that of a support
        vector regression with a tube of this half-width.
    max_vectors : int or None, default None
        Largest number of samples in the basis that gives the features of a kernel; the cost is linear in the number of
        samples, and quadratic in that of the basis. None: at most 500. The model keeps its support vectors if the basis
        spans all samples and no number below that of the samples is given, else the basis. The linear kernel has no
        basis unless a number is given, or sparse samples have more than 2,000 features (None: 2,000 vectors then).
    random_state : int, Generator, RandomState or None, default 0
    verbose : bool or int, default False
        Whether to show progress: a bar on a terminal, lines on stderr elsewhere.

    Attributes
    ----------
    expansion_ : KernelExpansion
        One output per component. With the linear kernel its vectors are the components.
    components_, mean_ : arrays of shape (c, n_features) and (n_features,)
        Only with the linear kernel: orthonormal rows, and the mean that is subtracted.
    n_components_ : int
        The ``c`` of the shapes.
    stop_ : Stop
        "flat" (no margin direction is left), "rank", "faded" (nothing is left), "limit", "precision" (``C`` is too
        large: the next problem cannot be solved) or "max_iter" (it was not solved in 100 iterations).
    objectives_, squared_norms_ : arrays of shape (n_steps,)
        Optimal value of every step (summed over the problems of a step) and the squared length of the normals.
    steps_ : tuple of MarginStep
        Per step: which problems it solved, with values, lengths, biases and iterations.
    cap_ : float
        Value at ``w = 0``, which ``objectives_`` approaches.
    n_iter_ : int
        Interior point iterations in all.
    support_ : array
        Samples with a coefficient in some component.
    classes_ : array
        Only with classes.
    vectors_, indices_, n_vectors_
        The samples that were kept, their rows in ``X``, their number. With the linear kernel none is.
    kernel_ : Kernel
    basis_ : KernelBasis or None
        None where the features are the samples themselves.

    Notes
    -----
    Symbols: :math:`\phi_t` are the centered features left at step :math:`t`, :math:`\tilde w_t = \sum_i \alpha_i y_i
    \phi_t(x_i)` the normal, :math:`P_t` the optimal value. Laws: the components are orthonormal in feature space;
    :math:`P_{t+1} \ge P_t + \frac12 \|\tilde w_t\|^2` and :math:`P_t \le` cap, so the directions fade. The
    problems are solved by an interior point method: :math:`O(n q^2)` per iteration on ``q`` features, 10 to 30
    iterations per component.

    Above 20,000 rows, in memory or as a Dask collection, the model is fitted to a sample of 20,000, drawn by the
    numbers of their rows, with weights that stand for all rows.

    References
    ----------
    Q. Tao, D. Chu, J. Wang, "Recursive support vector machines for dimensionality reduction", IEEE Trans. Neural
    Networks 19 (2008).

    Examples
    --------
    >>> from fewkern import RecursiveSVM
    >>> from fewkern.datasets import make_banana
    >>> X, y = make_banana(200)
    >>> model = RecursiveSVM(kernel="gaussian", n_components=3).fit(X, y)
    >>> model.transform(X).shape, str(model.stop_)
    ((200, 3), 'limit')
    """

    _parameter_constraints: dict[str, list[Any]] = {
        **REDUCER,
        **constraints("class_weight", "verbose"),
        "C": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [None, Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        n_components: int | None = None,
        kernel: Any = "linear",
        C: float = 1.0,
        class_weight: Any = None,
        epsilon: float | None = None,
        max_vectors: int | None = None,
        random_state: Any = 0,
        verbose: Any = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.epsilon = epsilon
        self.max_vectors = max_vectors
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RecursiveSVM:
        """Find the directions.

        Parameters
        ----------
        X : array, data frame, sparse matrix or Dask collection of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes, or numbers where ``epsilon`` is given.
        sample_weight : array of shape (n_samples,) or None

        Returns
        -------
        self
        """
        self._reset_fitted()
        population = self._population(X, y, sample_weight)
        samples = population.sample
        if samples.n < population.n:  # their weights add up to those of all rows
            samples = replace(samples, weights=samples.weights * (population.n / samples.n))
        features = self._features(samples)
        with progress(self, "finding directions", self.n_components) as step:
            # only the span of the centered samples counts; what is outside of it would grow out of rounding
            space = Reflected.start(features.Z, principal_space(features.Z))
            result = recursive_margin(space, self._problems(features.samples), self.n_components, step)
        bounded = self.max_vectors is not None and self.max_vectors < samples.n
        on_support = features.complete and not bounded
        like = samples.weights
        self._set_fitted(features, result.directions, like, result.dual if on_support else None)
        self._keep_steps(features, result, like)
        self._warn(result)
        warn_of_fewer_components(self)
        return self

    def _population(self, X: Any, y: Any, sample_weight: Any) -> Population:
        if self.epsilon is None:
            return labelled_population(self, X, y, sample_weight)
        population, _ = measured_population(self, X, y, sample_weight)
        targets: Any = population.sample.targets
        if targets.shape[1] != 1:
            raise ValueError(f"RecursiveSVM: y must be one number per sample, got {targets.shape[1]} columns.")
        return population

    def _problems(self, samples: Samples) -> list[MarginProblem]:
        """The hyperplanes to find; the weights of the samples multiply ``C``."""
        C = self.C * samples.weights
        if self.epsilon is None:
            return class_problems(samples.codes, samples.n_classes, C)
        assert samples.targets is not None
        return [tube_problem(samples.targets[:, 0].astype(np.float64), C, self.epsilon)]

    def _keep_steps(self, features: Features, result: MarginDirections, like: Array) -> None:
        steps = result.steps
        self.stop_, self.steps_ = result.stop, steps
        self.objectives_ = asarray_like(np.array([sum(s.objectives) for s in steps]), like)
        self.squared_norms_ = asarray_like(np.array([sum(s.squared_norms) for s in steps]), like)
        self.cap_ = float(sum(result.caps))
        self.n_iter_ = max(1, result.n_iter)
        support = np.flatnonzero(np.any(result.dual != 0, axis=1))
        self.support_ = asarray_like(features.samples.all_rows(support), like)

    def _warn(self, result: MarginDirections) -> None:
        if result.unsolved > 0:
            message = (
                f"a hyperplane was not solved in {MAX_ITERATIONS} interior point iterations: its relative duality gap "
                f"is {result.unsolved:.1e}, above {GAP_RTOL:g}; use a smaller C, or features of similar units."
            )
        elif self.n_components_ == 0:
            if self.stop_ == Stop.PRECISION:
                advice = "the first problem could not be solved; use a smaller C, or max_vectors"
            elif self.epsilon is not None:
                advice = (
                    "do the targets differ by more than epsilon? Use a smaller epsilon, another C or another kernel"
                )
            else:
                advice = 'use class_weight="balanced", another C or another kernel'
            message = f"no direction with a margin was found (stop_ is {str(self.stop_)!r}); {advice}."
        else:
            return
        warnings.warn(f"RecursiveSVM: {message}", ConvergenceWarning, stacklevel=4)
