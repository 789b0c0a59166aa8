"""
A classifier with nothing to tune
=================================

:class:`~fewkern.KernelClassifier` compares three kinds of models on rows that it holds out: vectors that are samples,
vectors that imitate a larger model, and vectors that are moved by the gradient of the error. It takes the smallest
model that is nearly as good as the best one. Widths, metric and ridge come with it.
"""

# %%
# Two thousand points in two interlocked crescents. The fit takes no parameter.
from fewkern import FeatureVectorDiscriminant, KernelClassifier
from fewkern.datasets import make_banana
from fewkern.plotting import PathDisplay, VectorsDisplay

X, y = make_banana(2000, random_state=0)
X_test, y_test = make_banana(2000, random_state=1)
model = KernelClassifier().fit(X, y)
print(f"{model.n_vectors_} vectors for {len(X)} samples, origin: {model.origin_}")
print(f"error on held-out rows: {model.held_out_error_:.1%}")
print(f"error on new samples: {1 - model.score(X_test, y_test):.1%}")

# %%
# The vectors (circled) and the boundary between the classes.
VectorsDisplay.from_estimator(model, X, y)

# %%
# The held-out error of everything that was compared, ``path_``.
PathDisplay.from_estimator(model)

# %%
# The method of the paper keeps samples, and needs more of them: :class:`~fewkern.FeatureVectorDiscriminant`.
chosen = FeatureVectorDiscriminant().fit(X, y)
error = 1 - chosen.score(X_test, y_test)
print(f"{chosen.n_vectors_} samples kept, error on new samples {error:.1%}")
VectorsDisplay.from_estimator(chosen, X, y)
