r"""What is fitted to held-out values: probabilities, the width of intervals, and the usual novelty of a sample.

*Probabilities.* One factor on the scores, which changes no decision.

*Intervals.* The ends are quantiles of the held-out residuals with their sign, the same everywhere, unless these differ
in size from place to place: then they are in proportion to a scale :math:`s(x) = e^{g(x)}`, with ``g`` the ridge
regression of :math:`\log(|r_i| + \epsilon)` on the vectors of the search. Every scale that is compared comes from
leave-one-out, too.

*Novelty.* Of the training samples, each without its own contribution, in units of other folds (methods F14).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from fewkern.arrays.linalg import inverse_psd, one_hot, solve_triangular
from fewkern.arrays.namespace import Array, asarray_like, device, namespace, put, take_rows, to_numpy
from fewkern.arrays.optimize import falling_root
from fewkern.arrays.sampling import SAMPLE_ROWS, some_rows
from fewkern.core.conformal import HeldOutScores, Intervals, Novelty
from fewkern.core.expansion import KernelBasis, share_left
from fewkern.core.gaussians import GaussianBasis
from fewkern.core.kernel import Kernel
from fewkern.core.radial import feature_units
from fewkern.core.samples import Samples
from fewkern.core.scores import ClassScores, class_values, softmax
from fewkern.select.leave_one_out import HeldOut, LooScheme, Solution, loo_paths, solve
from fewkern.select.selection import Selection, SelectionRule, centered_gram, select_vectors

# Least and largest factor of a softmax, over the inverse of the largest value: a single value may be far off, and the
# rest small.
_LEAST_FACTOR, _LARGEST_FACTOR = 1e-3, 1e12
# Ridges that are compared for the scale of the residuals, over the mean of |z|^2.
_SCALE_RIDGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
# Standard errors by which the likelihood must be greater with a scale than without.
_SCALE_GAIN_IN_STD_ERRORS = 2.0
# Residuals are compared by log(|r| + this share of their median): one that is zero by chance carries little weight.
_RESIDUAL_OFFSET_IN_MEDIANS = 0.1
# Rows that are enough for quantiles and a scale; least rows and most outputs for which a scale is fitted.
_MAX_INTERVAL_ROWS, _LEAST_SCALE_ROWS, _MAX_SCALE_OUTPUTS = 10_000, 50, 10
# Vectors for the novelty, where the selection has them: three vectors ignore most of what could be new about a sample.
# From 20 on, more hardly matter.
LEAST_VECTORS = 20
# Folds whose units judge the novelty of the others' samples.
_NOVELTY_FOLDS = 10
# Their least number, and the columns of all folds together above which there are fewer: each prepares every column.
# Units of fewer rows raise no alarms in addition, for what is usual looks further away in them.
_LEAST_FOLDS, _FOLDED_COLUMNS = 3, 10_000
# Samples that say how large the novelty usually is: with as many the share of alarms that 5% means has a standard error
# of .35%, and 1 in 4,000 can be asked for. All of 100,000 would cost as much as the selection of the vectors.
MOST_NOVELTY_ROWS = 4_000
# From the samples of the other folds to a kernel with their units, and to the map of the columns that it is for.
Geometry = Callable[[Samples], tuple[Kernel, Callable[[Array], Array]]]


def calibrate(scores: ClassScores, held_out: HeldOut, *, long_tails: bool = False) -> ClassScores:
    """The same scores, with probabilities calibrated on held-out samples.

    Only the factor of the softmax changes, and it is positive: classes stay as they are, and so does the order of the
    scores. It comes from :func:`fit_temperature`, or, for scores with long tails, from :func:`match_confidence`.
    """
    values, samples = class_values(scores.scores(held_out.values)), held_out.samples
    fit = match_confidence if long_tails else fit_temperature
    return replace(scores, factor=fit(values, samples.codes, samples.weights))


def fit_temperature(values: Array, codes: Array, weights: Array) -> float:
    r"""The factor :math:`a \ge 0` that makes ``softmax(a * values)`` most likely.

    Maximises the concave :math:`\sum_i w_i [a \sum_c t_{ic} v_{ic} - \log \sum_c e^{a v_{ic}}]` by
    :func:`match_temperature`. The targets follow Laplace's rule of succession: :math:`t = (n + 1) / (n + 2)` for the
    own class, :math:`n` being the weight of all samples, and the rest for the largest of the others. With 0 and 1 a
    separable set would have an infinite factor. One factor for all classes never changes which one is largest, so
    probabilities and predictions agree.
    """
    # Paper: Platt counts every class for itself, (n_c + 1) / (n_c + 2). We: all samples together, because there is one
    # factor for all of them; with many small classes his targets make every probability underconfident. The
    # remainder goes to the runner-up, because classes of negligible probability carry no information on the factor.
    xp = namespace(values)
    q = int(values.shape[1])
    remainder = 1.0 / (float(xp.sum(weights)) + 2.0)
    labels = one_hot(codes, q, values.dtype)
    others = xp.where(labels > 0, xp.full_like(values, -xp.inf), values)
    targets = labels * (1.0 - remainder) + one_hot(xp.argmax(others, axis=1), q, values.dtype) * remainder
    return match_temperature(values, targets, weights)


def match_temperature(values: Array, targets: Array, weights: Array | None = None) -> float:
    r"""The factor :math:`a \ge 0` that brings ``softmax(a * values)`` nearest to the probabilities ``targets``.

    In cross-entropy, which is convex in :math:`a`: the mean of the values under the probabilities is that under the
    targets.
    """
    xp = namespace(values)
    w = xp.ones_like(values[:, 0]) if weights is None else weights
    wanted = float(w @ xp.sum(targets * values, axis=1))
    return _factor(values, wanted, lambda p: float(w @ xp.sum(p * values, axis=1)))


def match_confidence(values: Array, codes: Array, weights: Array) -> float:
    r"""The factor :math:`a` at which the largest of ``softmax(a * values)`` is, on average, as high as it is right.

    Being right is counted with Laplace's rule of succession. Unlike the likelihood, this is not dominated by the few
    samples for which the value of the own class is far below another one, such as the logarithm of a density.
    """
    xp = namespace(values)
    total = float(xp.sum(weights))
    right = float(weights @ xp.astype(xp.argmax(values, axis=1) == codes, weights.dtype))
    return _factor(values, total * (right + 1.0) / (total + 2.0), lambda p: float(weights @ xp.max(p, axis=1)))


def _factor(values: Array, wanted: float, of: Callable[[Array], float]) -> float:
    """The factor :math:`a` at which a function ``of`` the probabilities ``softmax(a * values)``, which rises with
    :math:`a`, is ``wanted``."""
    xp = namespace(values)
    # in units of the values, so that their size does not matter: the largest distance from the mean of the row
    size = float(xp.max(xp.abs(values - xp.mean(values, axis=1)[:, None])))
    if size == 0:
        return 1.0

    def missing(a: float) -> float:
        return wanted - of(softmax(a * values))

    return falling_root(missing, 1 / size, _LEAST_FACTOR / size, _LARGEST_FACTOR / size)


def fit_intervals(held_out: HeldOut, basis: KernelBasis | GaussianBasis) -> Intervals:
    """Intervals from held-out predictions; the logarithm of a scale is linear in the features of the ``basis``."""
    held_out = held_out.some(_MAX_INTERVAL_ROWS)
    samples, residuals = held_out.samples, held_out.samples.targets - held_out.values
    xp, columns = namespace(residuals), range(samples.n_outputs)
    # where no scale is found it is 1, and its logarithm zero
    logs, scale = xp.zeros_like(residuals), None
    if samples.n >= _LEAST_SCALE_ROWS and len(columns) <= _MAX_SCALE_OUTPUTS and basis.n_vectors > 0:
        Z = basis.features(samples.X)
        W = xp.zeros((int(Z.shape[1]), len(columns)), dtype=Z.dtype, device=device(Z))
        offset = xp.zeros_like(W[0, :])
        for c in columns:
            found = _fit_scale(Z, xp.abs(residuals[:, c]), samples)
            if found is not None:
                W[:, c], offset[c], logs[:, c] = found.W[:, 0], found.offset[0], found.held_out[:, 0]
                scale = basis.expand(W, offset)
    scores = tuple(_scores(residuals[:, c] / xp.exp(logs[:, c]), samples) for c in columns)
    limits = xp.stack([xp.min(logs, axis=0), xp.max(logs, axis=0)])
    return Intervals(scores) if scale is None else Intervals(scores, scale, limits)


def _scores(sizes: Array, samples: Samples) -> HeldOutScores:
    return HeldOutScores.of(sizes, samples.weights, samples.groups)


def _fit_scale(Z: Array, sizes: Array, samples: Samples) -> Solution | None:
    """The logarithm of the scale of one output; None where the residuals are not clearly more likely with it."""
    xp, w = namespace(Z), samples.weights
    unit = float(xp.mean(xp.sum(Z * Z, axis=1)))
    offset = _RESIDUAL_OFFSET_IN_MEDIANS * _scores(sizes, samples).quantile(0.5)
    if not (unit > 0 and offset > 0):
        return None
    target = xp.log(sizes + offset)[:, None]
    ridges = tuple(unit * ridge for ridge in _SCALE_RIDGES)
    errors = [float(path.error[-1]) for path in loo_paths(Z, target, ridges, w, LooScheme.of(samples))]
    scale = solve(Z, target, ridges[errors.index(min(errors))], w, LooScheme.of(samples, limit=samples.n))
    share = w / xp.sum(w)
    gain = _loss(sizes, xp.zeros_like(sizes), share) - _loss(sizes, scale.held_out[:, 0], share)
    mean = float(share @ gain)
    proof = _SCALE_GAIN_IN_STD_ERRORS * math.sqrt(float((share * share) @ (gain - mean) ** 2))
    return scale if mean > proof else None


def _loss(sizes: Array, g: Array, share: Array) -> Array:
    """Negative log likelihood of every residual, of a Laplace distribution whose scale is ``exp(g)`` up to a factor."""
    xp = namespace(sizes)
    ratio = sizes / xp.exp(g)
    factor = float(share @ ratio)
    return g + math.log(factor) + ratio / factor


def novelty_basis(selection: Selection, n_vectors: int) -> KernelBasis:
    """The basis of the novelty: the first ``n_vectors`` chosen samples, and ``LEAST_VECTORS`` of them at least."""
    return selection.basis().head(max(n_vectors, min(LEAST_VECTORS, selection.n_vectors)))


def novelty_of(samples: Samples, selection: Selection, own: KernelBasis, geometry: Geometry | None = None) -> Novelty:
    """The novelty on the vectors of a model, ``own``, which begin the selection, or on more of it if those are few."""
    basis, judged = novelty_basis(selection, own.n_vectors), _some_rows(samples, MOST_NOVELTY_ROWS)
    shares = left_out_shares(samples, selection, basis.n_vectors, judged, geometry)
    some = samples.take(judged)
    scores = HeldOutScores.of(shares, some.weights, some.groups)
    return Novelty(own if own.n_vectors == basis.n_vectors else samples.original(basis), scores)


def _some_rows(samples: Samples, limit: int) -> Array:
    """At most ``limit`` positions, drawn from all."""
    return asarray_like(some_rows(samples.n, limit), samples.rows, dtype=namespace(samples.rows).int64)


def left_out_shares(
    samples: Samples, selection: Selection, n_vectors: int, judged: Array, geometry: Geometry | None = None
) -> Array:
    """Share of the ``judged`` samples that the first vectors leave unexplained, in units of other folds.

    A sample that is itself a vector is explained by the others. A column that is zero but for one row has its unit from
    that row, which therefore never looks far out. The next such row may. So the units of a sample are those of the
    samples in other folds.
    """
    xp, kernel, S = namespace(samples.weights), selection.gram.kernel, selection.indices[:n_vectors]
    shares, chosen = xp.ones_like(samples.weights), xp.zeros_like(samples.weights)
    put(chosen, (S,), take_rows(samples.weights, S))
    center = selection.gram.center
    how, some = SelectionRule(center=0 if center is None else int(center.indices.shape[0])), samples.take(judged)
    units = some.n if some.groups is None else len(set(to_numpy(some.groups).tolist()))
    most = max(_LEAST_FOLDS, min(_NOVELTY_FOLDS, _FOLDED_COLUMNS // max(int(samples.X.shape[1]), 1)))
    parts = some.deal(min(most, units // 2), seed=0) if units > 3 else None
    every = _some_rows(samples, SAMPLE_ROWS)
    whole = samples if samples.n <= SAMPLE_ROWS else samples.take(every)
    for part in [-1] if parts is None else range(int(xp.max(parts)) + 1):
        own = xp.zeros_like(chosen, dtype=xp.bool)
        mine = judged if parts is None else judged[parts == part]
        put(own, (mine,), xp.ones_like(mine, dtype=xp.bool))
        rest = samples if parts is None else samples.take(every[~take_rows(own, every)])
        known, there = (_in_units_of(kernel, whole, rest), _identity) if geometry is None else geometry(rest)
        rows = xp.nonzero(own | (chosen > 0))[0]
        near, held = samples.take(rows), xp.nonzero(take_rows(own, rows))[0]
        gram, weights = centered_gram(replace(near, X=there(near.X)), known, how), take_rows(chosen, rows)
        if bool(xp.any((gram.diag > 0) & (weights > 0))):
            again = select_vectors(gram, how, n_vectors, weights)
            left = left_out_residual(again, again.n_vectors, near.groups)
            put(shares, (take_rows(rows, held),), take_rows(share_left(gram.diag, gram.diag - left), held))
    return take_rows(shares, judged)


def _identity(X: Array) -> Array:
    return X


def _in_units_of(kernel: Kernel, samples: Samples, rest: Samples) -> Kernel:
    """The kernel with one length scale per feature that follows the spread of the feature in the ``rest``."""
    width = getattr(kernel, "length_scale", None)
    if getattr(width, "ndim", 0) != 1:
        return kernel
    ratio = feature_units(rest.X, "spread") / feature_units(samples.X, "spread")
    return replace(kernel, length_scale=width * asarray_like(ratio, width))  # type: ignore[type-var]


def left_out_residual(selection: Selection, n_vectors: int, groups: Array | None = None) -> Array:
    r"""Squared distance of every image to the span of the first vectors, those of the own group left out.

    With :math:`P = K_{SS}^{-1}` and the coefficients :math:`u = P k_S(x)`, taking the vectors ``g`` out adds
    :math:`u_g^T P_{gg}^{-1} u_g` to the residual. Without groups only the vectors are concerned: the residual of vector
    ``j`` by the others is :math:`1 / P_{jj}`.
    """
    Z, S = selection.G[:, :n_vectors], selection.indices[:n_vectors]
    xp = namespace(Z)
    residual = selection.gram.diag - xp.sum(Z * Z, axis=1)
    factor = selection.factor[:n_vectors, :n_vectors]
    inverse = solve_triangular(factor, xp.eye(n_vectors, dtype=Z.dtype, device=device(Z)))
    if groups is None:
        put(residual, (S,), 1.0 / xp.sum(inverse * inverse, axis=0))
        return residual
    P, U = inverse.T @ inverse, Z @ inverse
    owners = take_rows(groups, S)
    for group in dict.fromkeys(to_numpy(owners).tolist()):
        own, rows = xp.nonzero(owners == group)[0], xp.nonzero(groups == group)[0]
        part = xp.take(take_rows(U, rows), own, axis=1)
        block = inverse_psd(xp.take(take_rows(P, own), own, axis=1))
        put(residual, (rows,), take_rows(residual, rows) + xp.sum((part @ block) * part, axis=1))
    return residual
