"""What the kernel Fisher classifiers share: candidates, choice of settings, scores and probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.base import ClassifierMixin
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from fewkern.backend.distinct import distinct_rows
from fewkern.backend.folds import stratified_folds
from fewkern.backend.namespace import Array, asarray_like, device, float_dtype, namespace, take_rows, to_numpy
from fewkern.backend.progress import progress
from fewkern.backend.storable import storable
from fewkern.backend.validation import (
    Interval,
    StrOptions,
    encode_labels,
    labels_from_codes,
    random_generator,
    validate_class_weights,
)
from fewkern.core.expansion import KernelExpansion
from fewkern.core.gram import Gram
from fewkern.core.kernels import Kernel, as_kernel
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, class_values
from fewkern.fisher.targets import (
    CrossValidation,
    FisherTargets,
    Fold,
    LinearModel,
    PosteriorRule,
    cross_validate,
    fisher_link,
    fisher_targets,
)
from fewkern.vectors.base import KernelEstimator
from fewkern.vectors.search import choose_width, width_grid
from fewkern.vectors.selection import Selecting, select_vectors

__all__ = ["FISHER_CONSTRAINTS", "FisherClassifier", "FisherTrace", "Fitted"]

# Up to so many distinct samples all are candidates; above, so many of them, chosen by the gain rule of FVS.
ALL_CANDIDATES, BASIS_CANDIDATES = 3000, 500
# Classes with fewer samples leave nothing to calibrate on: the midpoint rule is used.
CALIBRATION_SAMPLES = 5
# The penalty is searched on at most SEARCH_ROWS samples, the width by leave-one-out on WIDTH_ROWS.
SEARCH_ROWS, WIDTH_ROWS = 10_000, 4000

FISHER_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [str, Kernel, callable],
    "prefer": [StrOptions({"accurate", "sparse"})],
    "max_vectors": [None, Interval(Integral, 1, None, closed="left")],
    "width_by": [StrOptions({"leave_one_out", "cross_validation"})],
    "posterior": [StrOptions({"gaussian", "logistic", "least_squares"})],
    "priors": [None, "array-like"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "cv": [Interval(Integral, 2, None, closed="left"), "cv_object"],
    "random_state": [None, Integral, object],
    "verbose": ["verbose"],
}


@storable
@dataclass(frozen=True)
class FisherTrace:
    """How the settings were chosen, and how the solver got there."""

    widths: tuple[float, ...]
    """Widths that cross-validation compared: one where leave-one-out had found it, or it was given."""
    settings: tuple[float, ...]
    """Penalties (or numbers of vectors) that it compared; a path may have been left before the last."""
    errors: tuple[tuple[float, ...], ...]
    """Cross-validated error of every width and setting; empty if there was nothing to choose."""
    sizes: tuple[tuple[float, ...], ...]
    """Mean number of vectors of the same machines."""
    chosen: tuple[int, int]
    objectives: tuple[float, ...]
    """What was minimised, after every step of the last fit; it never rises."""
    status: str
    """How the last fit ended."""

    @property
    def open_end(self) -> bool:
        """Whether the largest number of vectors that was compared was the best: a larger one might be better still.

        Never so for penalties, which fall along a path: the smallest of them is no budget.
        """
        counts = len(self.settings) > 1 and self.settings[-1] > self.settings[0]
        return counts and bool(self.errors) and self.chosen[1] == len(self.settings) - 1


@dataclass(frozen=True)
class Fitted:
    """A machine on the candidate columns, with its leave-one-out scores."""

    model: LinearModel
    held_out: Array
    objectives: tuple[float, ...]
    status: str


@dataclass(frozen=True)
class _Task:
    """Samples of positive weight, and the whole of ``X``, to which the numbers of the candidates refer."""

    X: Array
    all_codes: Array
    all_weights: Array
    rows: Array
    samples: Array
    codes: Array
    weights: Array
    n_classes: int

    def columns(self, kernel: Kernel, candidates: Array) -> Array:
        return kernel(self.samples, kernel.pick(self.X, candidates))

    def some(self, limit: int, rng: Any) -> _Task:
        """About ``limit`` of the samples, the same share of every class."""
        n = int(self.rows.shape[0])
        if n <= limit:
            return self
        codes = to_numpy(self.codes)
        kept: list[int] = []
        for c in range(self.n_classes):
            own = (codes == c).nonzero()[0]
            kept += rng.permutation(own)[: max(2, round(len(own) * limit / n))].tolist()
        part = asarray_like(sorted(kept), self.codes, dtype=namespace(self.codes).int64)
        take = [take_rows(a, part) for a in (self.rows, self.samples, self.codes, self.weights)]
        return _Task(self.X, self.all_codes, self.all_weights, take[0], take[1], take[2], take[3], self.n_classes)


class FisherClassifier(ClassifierMixin, KernelEstimator, ABC):
    """Base of the kernel Fisher classifiers. A subclass says what a path of machines is, and fits the last one."""

    prefer: str
    max_vectors: Any
    width_by: str
    posterior: Any
    priors: Any
    class_weight: Any
    cv: Any
    random_state: Any
    verbose: Any

    @abstractmethod
    def _settings(self, scale: float, stretch: float) -> tuple[float, ...]:
        """Settings to compare, the sparsest machine first.

        ``scale`` is the mean of ``k(x, x)``, ``stretch`` how much longer the targets are than with equal
        classes.
        """

    @abstractmethod
    def _default_setting(self) -> int:
        """The one to take where classes are too small for cross-validation."""

    @abstractmethod
    def _path(self, K: Array, Y: Array, weights: Array, settings: tuple[float, ...]) -> Iterable[LinearModel]:
        """Machines at all settings, in their order."""

    @abstractmethod
    def _machine(self, K: Array, Y: Array, weights: Array, setting: float) -> Fitted:
        """The machine at one setting, with what it says of every sample when that one is left out."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Choose, fit, calibrate; returns the setting taken."""
        X = self._samples(X, reset=True, minimum=2)
        self.classes_, codes = encode_labels(self, X, y)
        task = self._task(X, codes, validate_class_weights(self, X, codes, sample_weight))
        priors = self._validated_priors(task)
        kernel, candidates, setting, trace = self._choose(task)
        targets = fisher_targets(task.codes, task.n_classes, task.weights)
        K = task.columns(kernel, candidates)
        if not bool(namespace(K).all(namespace(K).isfinite(K))):
            raise ValueError(
                f"{type(self).__name__}: the kernel {kernel!r} gave NaN or infinity; scale the samples, or mend "
                "the kernel."
            )
        fitted = self._machine(K, targets.rows(task.codes), task.weights, setting)
        self._keep(task, kernel, candidates, fitted, targets, priors)
        self.trace_ = FisherTrace(**trace, objectives=fitted.objectives, status=fitted.status)
        self.n_iter_ = max(1, len(fitted.objectives))
        return setting

    def _task(self, X: Array, codes: Array, weights: Array | None) -> _Task:
        xp = namespace(codes)
        n_classes = int(self.classes_.shape[0])
        if weights is None:
            weights = xp.ones(codes.shape, dtype=float_dtype(X), device=device(codes))
        rows = xp.nonzero(weights > 0)[0]
        if int(rows.shape[0]) == int(codes.shape[0]):
            return _Task(X, codes, weights, rows, X, codes, weights, n_classes)
        positive = [take_rows(a, rows) for a in (X, codes, weights)]
        return _Task(X, codes, weights, rows, positive[0], positive[1], positive[2], n_classes)

    def _validated_priors(self, task: _Task) -> Array | None:
        if self.priors is None:
            return None
        values = to_numpy(self.priors).astype(float)
        if values.shape != (task.n_classes,) or not (values > 0).all() or abs(values.sum() - 1) > 1e-6:
            raise ValueError(
                f"{type(self).__name__}: priors must be {task.n_classes} positive numbers that add up to 1, one per "
                f"class in the order of classes_, got {self.priors!r}."
            )
        return asarray_like(values / values.sum(), task.weights, dtype=task.weights.dtype)

    def _candidates(self, task: _Task, kernel: Kernel, seed: int) -> tuple[Array, Array | None]:
        """Numbers of the candidate samples, and which of them each sample is (None: chosen without labels)."""
        first, owners = distinct_rows(task.samples, task.codes)
        count = int(first.shape[0])
        budget = self._budget()
        limit = (count if count <= ALL_CANDIDATES else BASIS_CANDIDATES) if budget is None else budget
        if count <= limit:
            return take_rows(task.rows, first), owners
        found = select_vectors(Gram(kernel, task.X), Selecting(seed=seed), limit, task.all_weights)
        return namespace(found.indices).sort(found.indices), None

    def _budget(self) -> int | None:
        """Largest number of candidates, None for the rule by the number of samples."""
        return None if self.max_vectors is None else int(self.max_vectors)

    def _choose(self, task: _Task) -> tuple[Kernel, Array, float, dict[str, Any]]:
        """Kernel, candidates and setting; with what led there."""
        rng = random_generator(self.random_state)
        seed = int(rng.integers(2**31))
        kernels = width_grid(as_kernel(self.kernel), task.X)
        if len(kernels) > 1 and self.width_by == "leave_one_out":
            kernels = [self._width_by_leave_one_out(task, seed)]
        diag = kernels[0].diag(task.X)
        scale = float(namespace(diag).mean(diag))
        if scale <= 0:
            raise ValueError(
                f"{type(self).__name__}: every sample is a zero vector of the kernel (k(x, x) = 0), so there is "
                "nothing to keep; use another kernel."
            )
        stretch = fisher_targets(task.codes, task.n_classes, task.weights).scale / task.n_classes
        settings = self._settings(scale, stretch)
        given = [getattr(k, "width", None) for k in kernels]
        widths = tuple(float(width) for width in given if isinstance(width, (int, float)))
        pools = {0: self._candidates(task, kernels[0], seed)}
        folds: list[Fold] = []
        if len(kernels) * len(settings) > 1:
            part = task.some(SEARCH_ROWS, rng) if isinstance(self.cv, Integral) else task
            folds = self._folds(part)
        found = CrossValidation((), (), 1)
        if folds:
            found = self._cross_validate(task, part, kernels, settings, folds, pools, seed)
        # classes too small for folds, nothing to compare, or no column that differs from a constant
        chosen = (len(kernels) // 2, self._default_setting() if len(settings) > 1 else 0)
        if any(found.errors):
            chosen = found.best(self.prefer)
        kernel = kernels[chosen[0]]
        candidates = pools.get(chosen[0]) or self._candidates(task, kernel, seed)
        trace = {"widths": widths, "settings": settings, "errors": found.errors, "sizes": found.sizes, "chosen": chosen}
        return kernel, candidates[0], settings[chosen[1]], trace

    def _folds(self, task: _Task) -> list[Fold]:
        if isinstance(self.cv, Integral):
            return stratified_folds(to_numpy(task.codes), int(self.cv))
        place = {int(row): i for i, row in enumerate(to_numpy(task.rows))}
        labels = to_numpy(task.all_codes)
        splits = check_cv(self.cv, labels, classifier=True).split(labels, labels)
        return [
            ([place[i] for i in train if i in place], [place[i] for i in test if i in place]) for train, test in splits
        ]

    def _cross_validate(
        self,
        task: _Task,
        part: _Task,
        kernels: list[Kernel],
        settings: tuple[float, ...],
        folds: list[Fold],
        pools: dict[int, Any],
        seed: int,
    ) -> CrossValidation:
        def columns(i: int) -> Callable[[], Array]:
            def matrix() -> Array:
                if i not in pools:
                    pools[i] = self._candidates(task, kernels[i], seed)
                return part.columns(kernels[i], pools[i][0])

            return matrix

        # Distinct samples do not depend on the kernel; a part of the samples may use the columns of all of them.
        owners = pools[0][1] if part is task else None
        with progress("cross-validation", len(kernels), bool(self.verbose)) as step:
            return cross_validate(
                [columns(i) for i in range(len(kernels))],
                part.codes,
                part.n_classes,
                part.weights,
                folds,
                lambda K, Y, w: self._path(K, Y, w, settings),
                owners,
                step,
            )

    def _width_by_leave_one_out(self, task: _Task, seed: int) -> Kernel:
        """The width that FVS-LR would take: its closed-form leave-one-out never saw a support chosen with labels."""
        part = task.some(WIDTH_ROWS, random_generator(seed))
        samples = Samples.of(part.samples, part.weights, codes=part.codes, n_classes=part.n_classes)
        return choose_width(samples, as_kernel(self.kernel), seed)

    def _keep(
        self,
        task: _Task,
        kernel: Kernel,
        candidates: Array,
        fitted: Fitted,
        targets: FisherTargets,
        priors: Array | None,
    ) -> None:
        codes = to_numpy(task.codes)
        fewest = min(int((codes == c).sum()) for c in range(task.n_classes))
        rule: PosteriorRule = self.posterior if fewest >= CALIBRATION_SAMPLES else "least_squares"
        link = fisher_link(rule, fitted.held_out, task.codes, targets, task.weights, priors)
        model = fitted.model
        self.kernel_ = kernel
        self.indices_ = take_rows(candidates, model.support)
        self.vectors_ = kernel.pick(task.X, self.indices_)
        self.expansion_ = KernelExpansion(
            kernel, self.vectors_, model.coef @ link.weights, model.offset @ link.weights + link.offset, self.indices_
        )
        self.n_vectors_ = self.expansion_.n_vectors
        self.link_ = link
        self.priors_ = targets.priors if priors is None else priors

    def decision_function(self, X: Any) -> Array:
        """Scores ``(n_samples,)`` for two classes (positive: the second), ``(n_samples, n_classes)`` otherwise."""
        values = self._values(X)
        return values[:, 0] if self.classes_.shape[0] == 2 else values

    def predict(self, X: Any) -> Array:
        """Class of every sample."""
        values = class_values(self._values(X))
        return labels_from_codes(self.classes_, namespace(values).argmax(values, axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``; the largest is that of the predicted class."""
        values = self._values(X)
        return self.link_.probabilities(values)

    def _class_scores(self) -> ClassScores:
        return ClassScores(shares=self.link_.total if self.link_.rule == "least_squares" else None)

    def _values(self, X: Any) -> Array:
        check_is_fitted(self)
        return self.expansion_(self._samples(X, reset=False))
