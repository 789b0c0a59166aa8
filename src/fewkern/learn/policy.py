"""Every number that can change which model the learner returns."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SparsePolicy:
    """Sparse rows (section 8)."""

    dense_columns: int = 256
    """Rows of at most this many columns (and one more per target) have the model of their dense copy. From about 300
    columns on components are as good as the columns, in a fifth of the time."""
    components: int = 16
    """Leading components that the Gaussians see. With 32 or 64 a fit takes up to twice as long, and errors are no
    lower on text and higher on tables."""
    strengths: tuple[float, ...] = tuple(4.0**-k for k in range(1, 12))
    """Ridges of the regression on all columns, over the sum of the squares of the centred rows."""


@dataclass(frozen=True)
class Policy:
    """The numbers that steer the learner; ``python -m benchmarks sensitivity`` halves and doubles each of them.

    Sections are those of ``docs/methods/learner.md``; the figures were measured on the tables of
    ``python -m benchmarks tables``.
    """

    knots: int = 17
    """Knots of the map of a column (section 1). 9, 17, 33 and 200 differ by less than the noise."""
    pieces: int = 4
    """Parts into which the pieces of the maps are cut for the best model, if its error then falls (section 4)."""
    tail: float = 1.0
    """How far beyond a normal distribution's the tails of a column reach where it is mapped to normal scores, as a
    share of the normal's (section 1). Columns with lighter tails keep their shape: uniform ones must."""
    start_rows: int = 2000
    """Rows on which width, metric and ridge are chosen (section 2)."""
    start_vectors: int = 150
    """Vectors with which they are chosen, on at least five rows a vector (section 2). 80 to 300 differ by less than the
    noise."""
    scales: tuple[float, ...] = (0.15, 0.3, 0.6, 1.2, 2.4)
    """Inverse widths that are compared, times the root of the number of columns (section 2)."""
    ridges: tuple[float, ...] = (2.5e-6, 5e-5, 1e-3, 2e-2)
    """Ridges that are compared, per unit of weight (section 2)."""
    least_ridge: float = 1e-6
    """Least ridge of moved vectors, per unit of weight: coefficients must not cancel (section 3)."""
    metric_vectors: int = 80
    """Vectors with which the metric moves, on at least two rows a vector (section 2)."""
    metric_steps: int = 8
    """Steps that move the inverse widths of the columns alone, from the best start (section 2)."""
    metric_gain: float = 0.2
    """Share by which the leave-one-out error must then fall: with noise, the widths of few rows are overfitted."""
    rare_share: float = 0.2
    """Share of a class, over that of a class on average, below which its rows count no more in the search (section
    5): a class of two rows would rule all others."""
    trees: int = 20
    """Extremely randomized trees behind the second metric (section 2). 15 to 40 have the same error."""
    linear_scale: float = 0.3
    """Weight of the linear features beside the Gaussians: the ridge acts on both (section 3)."""
    linear_columns: int = 64
    """Largest number of linear features: above it, the leading principal components (section 3)."""
    still: tuple[int, ...] = (20, 80, 300)
    """Sizes of the models whose vectors are samples (section 4); a user may ask for more."""
    teacher: int = 900
    """A larger model of samples, which only teaches (section 4). Without it the error is a tenth of a point higher on
    tables and two tenths on small sets."""
    ladder: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    """Sizes of the models whose vectors are moved; they go on doubling as long as there are ``rows_per_vector`` rows
    for each (section 4)."""
    rows_per_vector: float = 20.0
    """Rows that a vector beyond the ladder must have (section 4)."""
    most_vectors: int = 1024
    """Largest number of vectors that nobody asked for (section 4)."""
    device_rows: int = 1_000_000
    """Rows that move vectors on a device (section 6)."""
    share: float = 0.64
    """Largest number of moved vectors, as a share of the rows; samples as vectors may be a quarter more (section 4)."""
    directions: int = 4
    """Learned directions (section 4). Without them the mean error is half a point higher."""
    steps: int = 14
    """Steps of L-BFGS on every rung (section 4), and half as many on all rows at the end, from the model of a fold
    (section 6). With 10 the error is 1 to 3% higher, in about four fifths of the time."""
    patience: int = 2
    """Rungs without a gain after which the ladder ends (section 4). With 1 the error is 1 to 4% higher, in 0.95 of the
    time."""
    judged_rows: int = 600
    """Rows held out in all, in up to five folds (section 5): five up to 600 rows, one from 3,000 on."""
    proof: float = 0.5
    """Standard errors of the paired difference by which a larger model must beat a smaller one, and vectors moved by
    the labels those that never saw them (section 5)."""
    search_rows: int = 20000
    """Rows that move vectors, in memory (sections 4 and 6); coefficients come from all rows."""
    still_rows: int = 2500
    """Rows on which models of samples, and those that imitate them, are made (section 4)."""
    rows_per_feature: float = 10.0
    """Rows per feature from which generalized cross-validation stands for leaving out every row (section 3): with
    fewer its error is 3 to 4% higher."""
    stiffness: float = 1.0
    """Strength of the prior on the slopes of a warp: errors of one standard deviation per squared logarithm (section
    3). 0.1, 1 and 3 differ by less than the noise."""
    samples_price: float = 2.0
    """What a smaller model may lose to a model of samples, over what it may lose to others (section 5): many samples
    with a strong ridge are a constant, and say no more than a few vectors."""
    tolerance: float = 0.02
    """What a model of half the size may lose (section 5): this share of the best model's gain over a constant, times
    its error over that of the constant. So clean tables stay clean, and weak signals are kept."""
    coordinates: int = 2
    """Prepared columns of a category of three levels or more (section 1): one or two. With one the error of tables with
    categories is 5% higher."""
    level_prior: tuple[float, float] = (1.0, 300.0)
    """Rows that the prior of a level's position counts for, at least and at most; between them it is the variance
    within the levels over that between them (section 1). With at most 30 an irrelevant category of as many levels as
    rows multiplies the error by three; 300 and 1,000 do not differ."""
    level_columns: int = 64
    """Other columns whose interactions with a category are looked at for its second coordinate (section 1)."""
    firmness: float = 10.0
    """Largest strength of the prior on a level's move, over ``stiffness``: rows per squared standard deviation of the
    column (section 3). 10 and 30 do not differ."""
    gap_prior: float = 1.0
    """The same of the move of a gap in a column of numbers."""
    sparse: SparsePolicy = SparsePolicy()
    """How sparse rows become columns (section 8)."""


POLICY = Policy()
