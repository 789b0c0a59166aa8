"""
More than one direction for two classes
=======================================

Linear discriminant analysis gives one direction for two classes. :class:`~fewkern.RecursiveSVM` finds more, each
orthogonal to those before, as long as there is a direction with a margin.
"""

# %%
# Two interlocked crescents, with a basis of forty samples.
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from fewkern import GraphEmbedding, RecursiveSoftMargin, RecursiveSVM
from fewkern.datasets import make_banana
from fewkern.kernels import Gaussian
from fewkern.plotting import AccuracyDisplay, ComponentsDisplay

X, y = make_banana(400, random_state=0)
X_test, y_test = make_banana(2000, random_state=1)
model = RecursiveSVM(
    kernel=Gaussian(1.0), max_vectors=40, class_weight="balanced", n_components=6
).fit(X, y)
print(f"{model.n_components_} components from {model.n_vectors_} samples")
print(f"stopped by: {model.stop_}")
ComponentsDisplay.from_estimator(model, X, y)

# %%
# Cross-validation shows how many components are useful.
AccuracyDisplay.from_estimator(model, X, y, classifier=KNeighborsClassifier(31))

# %%
# Any classifier can use the components.
for reducer in (
    GraphEmbedding(kernel=Gaussian(1.0), max_vectors=40, alpha=0.1),
    RecursiveSVM(kernel=Gaussian(1.0), max_vectors=40, n_components=3),
    RecursiveSoftMargin(
        kernel=Gaussian(1.0), max_vectors=40, alpha=0.1, n_components=3
    ),
):
    pipe = make_pipeline(reducer, KNeighborsClassifier(31)).fit(X, y)
    error = 1 - pipe.score(X_test, y_test)
    print(f"{type(reducer).__name__}: error on new samples {error:.1%}")
