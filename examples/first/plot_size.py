"""
How many vectors are enough?
============================

Two vectors, ten, a hundred? A fit compares all sizes and takes a small one that is nearly as good as the best. Here is
what it sees, on the measurements of 569 tumours.
"""

# %%
# We fit models of given sizes, with samples as vectors (the paper's method) and by the default, which may move them,
# and count their errors on a test part.
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from fewkern import FeatureVectorDiscriminant, KernelClassifier

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=1
)
sizes = [1, 2, 3, 5, 8, 14]
error = {}
for estimator in (FeatureVectorDiscriminant, KernelClassifier):
    models = [estimator(n_vectors=m).fit(X_train, y_train) for m in sizes]
    name = estimator.__name__
    error[name] = [100 * (1 - model.score(X_test, y_test)) for model in models]

# %%
# The automatic choice, with nothing set:
chosen = KernelClassifier().fit(X_train, y_train)
found = 100 * (1 - chosen.score(X_test, y_test))
print(f"chosen: {chosen.n_vectors_} vectors, {found:.1f}% error on the test part")

# %%
fig, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for (name, values), color in zip(error.items(), ("#8a97a3", "#d95f02")):
    ax.plot(sizes, values, "o-", color=color, label=name)
ax.plot(
    chosen.n_vectors_,
    found,
    "o",
    ms=14,
    mfc="none",
    mec="black",
    mew=1.5,
    label="chosen by the default",
)
ax.set(xlabel="number of vectors", ylabel="test error, %", ylim=(0, None))
ax.legend(frameon=False)
plt.show()

# %%
# Learned vectors need not be many: beside a linear part, which the model has in any case, even one vector is about as
# good as fourteen. A test part of 285 samples cannot tell 2% from 3%, so do not read much into the wiggles.
# ``prefer="sparse"`` takes a smaller model.
