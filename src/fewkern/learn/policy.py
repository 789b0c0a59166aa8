"""Every number that can change which model the learner returns, by the sections of ``docs/methods/learner.md``.

The first words of a description are the unit. Figures are those of ``python -m benchmarks tables``, unless another
benchmark is named; ``python -m benchmarks sensitivity`` halves and doubles every number. Where no figure is given, the
number has not been measured alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from fewkern.arrays.optimize import LOGISTIC_STEPS, LogisticSteps


@dataclass(frozen=True)
class ColumnPolicy:
    """How columns are prepared (section 1)."""

    knots: int = 17
    """Knots of the map of a column. 9, 17, 33 and 200 differ by less than the noise."""
    tail: float = 1.0
    """How far beyond a normal distribution's the tails of a column reach where it is mapped to normal scores, as a
    share of the normal's. Columns with lighter tails keep their shape: uniform ones must."""
    outermost: float = 2.5
    """Normal score of the outermost knot but one at either end: six rows in a thousand lie beyond it."""
    bound: float = 4.0
    """Standard deviations of its middle half towards which a column that keeps its shape is bent. 3, 4, 4.5 and 6
    differ by less than the noise."""
    share_of_range: float = 0.25
    """Standard deviation of the middle half of a column whose quartiles are equal, over its range."""
    furthest: float = 3.5
    """Standard deviations beyond which no prepared value lies: an outlier must not rule all distances."""
    furthest_flag: float = 3.0
    """The same in a column of few values: it may be a flag, which is far out wherever it is rare."""
    coordinates: int = 2
    """Prepared columns of a category of three levels or more: one or two. They differ by less than the noise on tables;
    but with one, levels of equal means whose effects on other columns differ are not told apart."""
    level_prior: tuple[float, float] = (1.0, 300.0)
    """Rows that the prior of a level's position counts for, at least and at most; between them it is the variance
    within the levels over that between them. With at most 30 an irrelevant category of as many levels as rows
    multiplies the error by three; 300 and 1,000 do not differ."""
    level_columns: int = 64
    """Other columns whose interactions with a category are looked at for its second coordinate: a bound of the time."""


@dataclass(frozen=True)
class CopyPolicy:
    """Which rows are copies of others (section 6)."""

    near: float = 1e-5
    """Interquartile ranges: root mean square over the columns of the difference between a row and its copy."""
    most_lags: int = 64
    """Rows next to a row on a line through all of them that are looked at. A bound of the time: a copy among more rows
    that are near each other may be missed."""
    by_chance: float = 4.0
    """Pairs of equal rows, over those that chance explains, from which on they are copies. Of 70 tables, those of few
    values have at most 1.8, those that hold copies at least 12."""
    common_in_medians: int = 5
    """Occurrences of a row, over the median of all that occur twice, from which on it is no copy: one value of all
    columns is then common by itself, such as that of an empty form."""
    common_share: float = 0.1
    """The same as a share of the rows."""


@dataclass(frozen=True)
class StartPolicy:
    """Where a search begins (section 2)."""

    rows: int = 2000
    """Rows on which width, metric and ridge are chosen."""
    vectors: int = 150
    """Vectors with which they are chosen. 80 to 300 differ by less than the noise."""
    rows_per_vector: int = 5
    """Rows that each of these vectors must have."""
    scales: tuple[float, ...] = (0.15, 0.3, 0.6, 1.2, 2.4)
    """Inverse widths that are compared, times the root of the number of columns. 4.8 in addition makes no
    difference."""
    ridges: tuple[float, ...] = (2.5e-6, 5e-5, 1e-3, 2e-2)
    """Ridges that are compared, per unit of weight; those of models of samples, too. 0.2 in addition makes no
    difference."""
    metric_vectors: int = 80
    """Vectors with which the inverse widths of the columns are moved."""
    metric_steps: int = 8
    """Steps that move these widths alone, from the best start."""
    metric_gain: float = 0.2
    """Share by which the leave-one-out error must then fall: with noise, the widths of few rows are overfitted."""
    most_narrowed: float = 10.0
    """Factor of an inverse width, at most: a column in which few rows agree would tell these from all others by an
    exact match."""
    trees: int = 20
    """Extremely randomized trees behind the second metric. 15 to 40 have the same error."""
    tree_rows: int = 1500
    """Rows for the trees: an importance needs no more."""
    leaf_rows: int = 5
    """Rows in a leaf, at least."""
    least_importance: float = 1e-3
    """Importance of a column, over the largest, at least: a column that no tree uses must not vanish."""
    rows_per_pivot: int = 4
    """Rows among which samples are chosen as vectors, per vector."""
    least_pivot_rows: int = 400
    """The same, at least."""
    pivot_chance: float = 0.3
    """Power of a uniform number by which the choice of a sample is randomized."""
    pivots_per_block: int = 16
    """Samples that are looked at together, which saves time."""
    unexplained: float = 0.5
    """Share of a sample's residual that the others of its block may not explain, if it is chosen."""


@dataclass(frozen=True)
class ModelPolicy:
    """The model and its error (section 3)."""

    linear_scale: float = 0.3
    """Weight of the linear features beside the Gaussians: the ridge acts on both."""
    linear_columns: int = 64
    """Linear features, at most: of more columns they are the leading principal components."""
    least_ridge: float = 1e-6
    """Ridge of moved vectors, per unit of weight, at least: coefficients must not cancel."""
    most_leverage: float = 0.98
    """Leverage that is used, at most: above it, a row's own value is nearly all that predicts it."""
    rows_per_feature: float = 10.0
    """Rows per feature from which generalized cross-validation stands for leaving out every row. 8 and 20 differ by
    less than the noise; at any number of rows the error is higher on small tables."""
    stiffness: float = 1.0
    """Strength of the prior on the slopes of a warp: errors of one standard deviation per squared logarithm. 0.1, 1 and
    3 differ by less than the noise."""
    firmness: float = 10.0
    """Strength of the prior on a level's move, at most, over ``stiffness``: rows per squared standard deviation of the
    column. 10 and 30 do not differ."""
    gap_prior: float = 1.0
    """The same of the move of a gap in a column of numbers."""


@dataclass(frozen=True)
class CandidatePolicy:
    """What is compared (section 4)."""

    still: tuple[int, ...] = (20, 80, 300)
    """Sizes of the models whose vectors are samples; a user may ask for more."""
    teacher: int = 900
    """Size of a larger model of samples, which only teaches. Without it the error is a tenth of a point higher on
    tables and two tenths on small sets."""
    ladder: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)
    """Sizes of the models whose vectors are moved; they go on doubling as long as there are ``rows_per_vector`` rows
    for each."""
    rows_per_vector: float = 20.0
    """Rows that a vector beyond the ladder, and a knot of a finer map, must have."""
    most_vectors: int = 1024
    """Vectors that nobody asked for, at most: a bound of the time."""
    share: float = 0.64
    """Moved vectors, at most, as a share of the rows."""
    still_share: float = 1.25
    """The same of samples as vectors, over that of moved ones."""
    patience: int = 2
    """Rungs without a gain after which the ladder ends. With 1 the error is 1 to 4% higher, in 0.95 of the time."""
    pieces: int = 4
    """Parts into which the pieces of the maps are cut for the best model, if its error then falls."""
    directions: int = 4
    """Learned directions. Without them the mean error is half a point higher."""
    least_for_directions: int = 6
    """Vectors from which on there are directions: gradients of a function of fewer say little."""
    direction_length: float = 0.3
    """Length of the leading direction at first, in units of the mean inverse width."""
    gradient_rows: int = 800
    """Rows over which the outer products of gradients are averaged."""
    gradient_outputs: int = 6
    """Outputs over which they are averaged: a bound of the time with many classes."""
    rows_per_new_vector: int = 10
    """Rows among which a new vector of the next rung is chosen."""
    least_new_rows: int = 200
    """The same for all of them, at least."""
    residual_floor: float = 0.1
    """Share of the mean squared residual that every row has in addition when these rows are drawn."""
    most_explained: float = 0.99
    """Share of a row that the vectors before explain, at most, where new ones are chosen among rows of large error."""


@dataclass(frozen=True)
class MovePolicy:
    """How vectors are moved (section 4)."""

    steps: int = 14
    """Steps of L-BFGS on every rung, and half as many on all rows at the end, from the model of a fold (section 6).
    With 10 the error is 1 to 3% higher, in about four fifths of the time."""
    least_gain: float = 1e-5
    """Share of the error below which the gain of a step ends a search. With 3e-3 the unexplained
    variance of regression was 21.3% for 20.6%."""
    imitation_gain: float = 1e-4
    """The same where vectors imitate a teacher."""
    imitation_rows_per_feature: float = 3.0
    """``rows_per_feature`` of the model where vectors imitate a teacher, whose values have no noise."""
    least_scale: float = 1e-3
    """Inverse width of a column, over the largest, that the unit of the vectors follows, at least."""


@dataclass(frozen=True)
class JudgePolicy:
    """Rows held out, and the choice (section 5)."""

    rows: int = 600
    """Rows held out in all: five folds up to 600 rows, one from 3,000 on. 1,500 are as good, in twice the time."""
    folds: int = 5
    """Folds of the rows; as many of them are held out in turn as ``rows`` asks for."""
    of_rarest: float = 0.05
    """Rows of the rarest class to hold out, over ``rows``."""
    rare_share: float = 0.2
    """Share of a class, over that of a class on average, below which its rows count no more in the search: a class of
    two rows would rule all others."""
    proof: float = 0.5
    """Standard errors of the paired difference by which a larger model must beat a smaller one, and vectors moved by
    the labels those that never saw them. Without, small sets had 14.8% for 14.5%; with 1 regression 21.1% for
    20.8%."""
    samples_price: float = 2.0
    """What a smaller model may lose to a model of samples, over what it may lose to others: many samples with a strong
    ridge are nearly a constant, and say no more than a few vectors."""
    tolerance: float = 0.02
    """What a model of half the size may lose: this share of the best model's gain over a constant, times its error over
    that of the constant. So clean tables stay clean, and weak signals are kept. 0.03
    differs by less than the noise."""
    negligible: float = 1e-3
    """Error, over that of a constant, below which it counts as zero: the tolerance is relative to at least this."""


@dataclass(frozen=True)
class RowPolicy:
    """Which rows the search sees (section 6); coefficients come from all."""

    search: int = 20000
    """Rows that move vectors, in memory."""
    still: int = 2500
    """Rows on which models of samples, and those that imitate them, are made: they cost the cube of their size."""
    device: int = 1_000_000
    """Rows that move vectors on a device."""


@dataclass(frozen=True)
class LogisticPolicy:
    """Logistic regression on the features of a model (section 6)."""

    ridges: tuple[float, ...] = (2.5, 0.5, 0.1, 0.02)
    """Ridges that are compared, in units of that of least squares: a logistic loss is a quarter as curved as a squared
    one."""
    steps: LogisticSteps = LOGISTIC_STEPS


@dataclass(frozen=True)
class NoveltyPolicy:
    """Samples that say what is new (section 6)."""

    most_vectors: int = 80
    """Vectors, at most: more than 20 hardly matter, and files hold them beside the model's own."""
    reach: float = 100.0
    """How far the open ends of a map reach, in ranges of the column: beyond them all samples are equally new."""


@dataclass(frozen=True)
class SparsePolicy:
    """How sparse rows become columns (section 8)."""

    dense_columns: int = 256
    """Rows of at most this many columns (and one more per target) have the model of their dense copy. From about 300
    columns on components are as good as the columns, in a fifth of the time."""
    components: int = 16
    """Leading components that the Gaussians see. With 32 or 64 a fit takes up to twice as long, and errors are no
    lower on text and higher on tables."""
    strengths: tuple[float, ...] = tuple(4.0**-k for k in range(1, 12))
    """Ridges of the regression on all columns, over the sum of the squares of the centred rows."""
    folds: int = 5
    """Folds in which the regression predicts rows that it has not seen."""
    combinations: int = 8
    """Combinations of the targets by which strengths are compared: each costs as much as one target."""
    rough: float = 1e-4
    """Relative residual at which conjugate gradients end where strengths are compared."""
    iterations: int = 4
    """Power iterations of the randomized singular value decomposition."""
    rarity: float = 0.25
    """Power of the share of rows in which a column is not zero, over which it is scaled: a word in one of a hundred
    rows then weighs three times as much as one in all."""


@dataclass(frozen=True)
class Policy:
    """The numbers that steer the learner, by section."""

    columns: ColumnPolicy = ColumnPolicy()
    start: StartPolicy = StartPolicy()
    model: ModelPolicy = ModelPolicy()
    candidates: CandidatePolicy = CandidatePolicy()
    moves: MovePolicy = MovePolicy()
    judge: JudgePolicy = JudgePolicy()
    rows: RowPolicy = RowPolicy()
    copies: CopyPolicy = CopyPolicy()
    logistic: LogisticPolicy = LogisticPolicy()
    novelty: NoveltyPolicy = NoveltyPolicy()
    sparse: SparsePolicy = SparsePolicy()


POLICY = Policy()
# For suspicious rows. With 1,000 rows in the start the areas under the curve (ten tables of ``python -m benchmarks
# suspects``) are the same within 0.002, in 1.25 times the time. The model has 200 vectors, and at least four rows for
# each: with 100 the areas are 0.001 lower and with 300 0.001 higher, in 1.3 times the time; on five tables with numbers
# 0.008 and 0.005.
QUICK = Policy(
    start=StartPolicy(rows=600, scales=(0.3, 0.6, 1.2), metric_vectors=200, trees=8),
    candidates=CandidatePolicy(still=(200,), share=0.25),
)
