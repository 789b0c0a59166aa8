"""
A classifier with nothing to tune
=================================

:class:`~fewkern.FeatureVectorClassifier` chooses its kernel width, its ridge and the number of samples it keeps by the
leave-one-out error, which it knows in closed form for every model on the path. Here it keeps about one sample in a
hundred.
"""

# %%
# Two thousand points in two interlocked crescents. The fit takes no parameter.
from fewkern import FeatureVectorClassifier
from fewkern.datasets import make_banana
from fewkern.plotting import TraceDisplay, VectorsDisplay

X, y = make_banana(2000, random_state=0)
X_test, y_test = make_banana(2000, random_state=1)
model = FeatureVectorClassifier().fit(X, y)
print(f"{model.n_vectors_} of {len(X)} samples kept, leave-one-out error {model.loo_error_:.1%}")
print(f"error on new samples {1 - model.score(X_test, y_test):.1%}")

# %%
# The samples it keeps, and the boundary that they carry.
VectorsDisplay.from_estimator(model, X, y)

# %%
# The path of models: error against size, for the chosen width and for the others.
TraceDisplay.from_estimator(model)
