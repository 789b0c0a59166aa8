r"""Integrals of a Gaussian along the segment between two points, in closed form and without cancellation.

.. math:: I_0 = \int_0^1 e^{-(a t^2 + 2 c t + g) / 2}\,dt, \qquad I_1 = \int_0^1 t\, e^{-(a t^2 + 2 c t + g) / 2}\,dt
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from fewkern.arrays.numerics import quiet

__all__ = ["line_integrals"]

Host = np.ndarray[Any, Any]

# Below this a, differences cancel, and the integrand is so smooth that eight nodes of Gauss-Legendre are exact.
_LEAST_SQUARED_LENGTH = 0.1
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_ROOT_HALF_PI, _ROOT_HALF = math.sqrt(math.pi / 2), math.sqrt(0.5)


def line_integrals(a: Host, c: Host, g: Host, start: Host, end: Host) -> tuple[Host, Host]:
    r"""``I0`` and ``I1`` of Gaussians along segments; all arrays broadcast to the shape of ``a``.

    Parameters
    ----------
    a, c, g : arrays
        Squared length of the segment, inner product of the segment with the way from the Gaussian's centre to its
        start, and squared length of that way, all in widths of the Gaussian; ``c**2 <= a * g``.
    start, end : arrays
        Values of the Gaussian at both ends, ``exp(-g / 2)`` and ``exp(-(a + 2 c + g) / 2)``.

    Notes
    -----
    With ``l = c / sqrt(a)`` and ``h = l + sqrt(a)``, the ends in units along the segment,
    :math:`I_0 = \sqrt{\pi / 2a}\,(2 p\,[l < 0 \le h] + \operatorname{sgn}(l)\,k_0\, e(|l|) -
    \operatorname{sgn}(h)\,k_1\, e(|h|))` with the peak :math:`p = e^{-(g - l^2) / 2}` and
    :math:`e(z) = \operatorname{erfcx}(z / \sqrt 2)`, in which nothing overflows. ``I1`` follows from
    ``a I1 + c I0 = k0 - k1``, which so holds whatever the rounding of ``I0``.
    """
    root = np.sqrt(a)
    with quiet():  # of segments without a length, which come below
        low = c / root
        high = low + root
        inside = np.signbit(low) & ~np.signbit(high)  # as copysign sees them, zeros too
        peak = np.where(inside, np.exp(np.minimum(low * low - g, 0.0) * 0.5), 0.0)
        first = start * scipy.special.erfcx(np.abs(low) * _ROOT_HALF)
        last = end * scipy.special.erfcx(np.abs(high) * _ROOT_HALF)
        zeroth = (2.0 * peak + np.copysign(first, low) - np.copysign(last, high)) * (_ROOT_HALF_PI / root)
        once = (start - end - c * zeroth) / a
    short = a < _LEAST_SQUARED_LENGTH
    if short.any():
        zeroth[short], once[short] = _by_nodes(*(np.broadcast_to(one, a.shape)[short] for one in (a, c, g)))
    return zeroth, once


def _by_nodes(a: Host, c: Host, g: Host) -> tuple[Host, Host]:
    zeroth, once = np.zeros_like(a), np.zeros_like(a)
    for node, weight in zip(0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS):
        value = weight * np.exp(np.minimum((a * node + 2.0 * c) * node + g, 1e300) * -0.5)
        zeroth += value
        once += node * value
    return zeroth, once
