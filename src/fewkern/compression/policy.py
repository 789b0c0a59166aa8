"""Every number that can change which short model comes out of ``compress``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Imitation:
    """The numbers that steer the imitation of a teacher, beside those of the learner that moves the vectors."""

    rows: int = 3000
    """Rows that vectors are moved on, and crossings that they are judged by."""
    max_steps: int = 150
    """Steps of a search for at most ``step_vectors`` vectors."""
    least_steps: int = 40
    """More vectors begin nearer to the teacher: the steps are in inverse proportion, down to this number."""
    step_vectors: int = 50
    """From this size on vectors begin at samples, where a teacher has its bumps."""
    unit_widths: float = 2.0
    """Unit of a column, in widths of the start. With the standard deviation as unit, which ignores the width, vectors
    move too slowly beside it: the error of 20 vectors is .28 instead of .19 (KernelRidge, kin8nm, 200 steps)."""
    start_ridge: float = 1e-5
    """Ridge at the start, per unit of weight: a teacher has no noise."""
    drawn_to_teach: int = 4
    """Samples drawn, of which the nearest is crossed with another one: crossings to learn from may lie between the
    samples."""
    drawn_to_judge: int = 128
    """The same for crossings to be judged by, which must be like samples. Too near to them a teacher remembers. Of 32
    vectors for an SVC of digits, pendigits, satimage, image and vowel (two splits of 600 rows each) 6.0% of the
    decisions differ on new rows; on crossings with 64, 128 and 256 drawn 7.9%, 6.4% and 5.7%. Of digits alone 4.7%,
    and 5.9%, 4.0% and 3.0%."""
    crossing_weight: float = 0.3
    """Weight of a crossing, in samples."""
    half_weight_margin: float = 0.5
    """Margin, over the median margin, at which a row has half its weight. Plain least squares spends its vectors on
    large values, which decide nothing: with 5 vectors the mean error on three splits of image falls by 2.5 points."""
    held_out: int = 10
    """One sample in so many is held out. With one in five, 98.2% of german's decisions agree on test samples, with one
    in ten 98.5%, as with none."""
    least_class_rows: int = 10
    """Of every class so many samples are held out, or a third of them: the agreement of a class that has one sample
    held out is a matter of luck."""


IMITATION = Imitation()
