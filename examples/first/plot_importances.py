"""
Which features does the model use?
==================================

A learned model has one width per feature. How steep the fitted function is along each of them, in units of the
feature's spread, says what the model uses: ``feature_importances_``.
"""

# %%
# Friedman's first problem has ten features. The target depends on five of them: on the product of the first two, on
# the square of the third, and linearly on the fourth and, half as much, on the fifth. The others are noise.
import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1

from fewkern import KernelRegressor
from fewkern.plotting import ImportancesDisplay

X, y = make_friedman1(2000, noise=0.5, random_state=0)
model = KernelRegressor().fit(X, y)
names = [f"x{j + 1}" for j in range(X.shape[1])]

# %%
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
ImportancesDisplay.from_estimator(model, feature_names=names, ax=ax)
ax.set_title(f"{model.n_vectors_} vectors")

# %%
# Units do not count: a column in other units has the same share. A column that is constant has none. Models from a pipeline, or fitted to a data frame, bring the names of their columns along.
plt.show()
