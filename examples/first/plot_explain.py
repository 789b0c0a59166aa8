"""
Why this prediction?
====================

A fitted model is a sum of Gaussians, so what every column contributes to a prediction can be written down: the slope
along the column, integrated on the way from typical rows to this one. The shares add up to the prediction.
"""

# %%
# Patients with diabetes: ten measurements, and how far the disease has come a year later.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from fewkern import KernelRegressor
from fewkern.plotting import SharesDisplay, WaterfallDisplay

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = KernelRegressor(n_vectors=10).fit(X, y)
found = model.explain(X)
print(
    f"largest error of a sum: {np.abs(found.predictions - model.predict(X)).max():.0e}"
)

# %%
# The patient of the largest prediction. The baseline is the mean prediction over 16 centers of the training rows, which
# the model keeps.
highest = int(np.argmax(found.predictions))
WaterfallDisplay.from_estimator(model, X, row=highest)

# %%
# Over all patients: the mean size of the shares.
SharesDisplay.from_estimator(model, X)

# %%
# Beside patients of the same sex, sex explains nothing: what you compare with decides what you see.
same = X[X["sex"] == X["sex"][highest]]
beside = model.explain(X.iloc[[highest]], background=same)
print(dict(zip(beside.feature_names, beside.values[0].round(1).tolist())))
plt.show()
