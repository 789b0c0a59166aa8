"""
Columns that go together
========================

Weight and height, supply and demand: where columns are correlated, round kernels need many to fill a thin cloud.
:class:`~fewkern.ForwardDensity` learns one shape for all of its kernels, and keeps it where rows that were held out are
more probable with it.
"""

# %%
# Two groups, both thin in the same direction, of six columns.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.mixture import GaussianMixture

from fewkern import ForwardDensity

rng = np.random.default_rng(0)
mixing = rng.normal(size=(6, 6)) * np.array([2.0, 1.5, 1.0, 0.4, 0.2, 0.1])[:, None]


def rows(n):
    """Curved a little, so that no single Gaussian is right."""
    hidden = rng.normal(size=(n, 6))
    hidden[:, 1] += 0.7 * hidden[:, 0] ** 2 + 4 * (rng.random(n) < 0.4)
    return hidden @ mixing


X, new = rows(800), rows(4000)
shaped = ForwardDensity().fit(X)
round_ones = ForwardDensity(scale="std").fit(X)
print(f"scale_: {shaped.scale_}")
mixtures = [GaussianMixture(k, random_state=0).fit(X) for k in range(1, 11)]
peer = min(mixtures, key=lambda mixture: mixture.bic(X))
found = {
    f"round kernels ({round_ones.n_vectors_})": round_ones.score(new) / len(new),
    f"one shape ({shaped.n_vectors_})": shaped.score(new) / len(new),
    f"GaussianMixture ({peer.n_components})": peer.score(new),
}
for name, value in found.items():
    print(f"{name}: mean log density of new rows {value:.2f}")

# %%
# Two of the columns, and the marginal densities of both fits.
low, high = np.quantile(X[:, :2], [0.002, 0.998], axis=0)
a, b = np.meshgrid(*(np.linspace(*ends, 120) for ends in zip(low, high)))
fig, axes = plt.subplots(
    1, 2, figsize=(8.4, 3.8), sharex=True, sharey=True, layout="constrained"
)
for ax, name, model in zip(axes, found, (round_ones, shaped)):
    pdf = model.marginal([0, 1]).pdf(np.column_stack([a.ravel(), b.ravel()]))
    ax.plot(*X[:, :2].T, ".", ms=2, color="#8a97a3")
    ax.contour(a, b, pdf.reshape(a.shape), levels=8, colors="#d95f02", linewidths=0.9)
    ax.set_title(name, fontsize="medium", loc="left")
plt.show()
