"""
A classifier with nothing to tune
=================================

:class:`~fewkern.FeatureVectorClassifier` chooses its kernel width, its ridge and the number of vectors by the
leave-one-out error, which is known in closed form for every model on the path. It then tries to move the vectors, and
keeps the result if it is better on held-out samples.
"""

# %%
# Two thousand points in two interlocked crescents. The fit takes no parameter.
from fewkern import FeatureVectorClassifier
from fewkern.datasets import make_banana
from fewkern.plotting import TraceDisplay, VectorsDisplay

X, y = make_banana(2000, random_state=0)
X_test, y_test = make_banana(2000, random_state=1)
model = FeatureVectorClassifier().fit(X, y)
print(f"{model.n_vectors_} vectors for {len(X)} samples, moved: {model.refined_}")
print(f"error on held-out samples: {model.held_out_error_:.1%}")
print(f"error on new samples: {1 - model.score(X_test, y_test):.1%}")

# %%
# The vectors (circled) and the boundary between the classes.
VectorsDisplay.from_estimator(model, X, y)

# %%
# Without refinement the vectors are samples, and more of them are needed: about one in a hundred.
chosen = FeatureVectorClassifier(refine=False).fit(X, y)
error = 1 - chosen.score(X_test, y_test)
print(f"{chosen.n_vectors_} samples kept, error on new samples {error:.1%}")
VectorsDisplay.from_estimator(chosen, X, y)

# %%
# Error against the number of vectors, for the chosen width and for the others.
TraceDisplay.from_estimator(chosen)
