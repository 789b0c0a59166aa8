"""
Sparse kernel Fisher discrimination
===================================

:class:`~fewkern.SparseKernelFisher` puts a penalty on the number of samples in Fisher's discriminant. With ``q = 1`` it
is a lasso, solved exactly; with ``q = 1/2``, the default, it keeps fewer samples still.
"""

# %%
# The same points for both powers, penalty by cross-validation.
from fewkern import SparseKernelFisher
from fewkern.datasets import make_banana
from fewkern.fisher import fisher_path
from fewkern.plotting import FisherPathDisplay, TraceDisplay, VectorsDisplay

X, y = make_banana(400, random_state=0)
X_test, y_test = make_banana(5000, random_state=1)
for q in (1, 0.5):
    model = SparseKernelFisher(q=q, prefer="sparse").fit(X, y)
    error = 1 - model.score(X_test, y_test)
    print(f"q = {q}: {model.n_vectors_} of {len(X)} samples kept, error on new samples {error:.1%}")

# %%
# The samples that ``q = 1/2`` keeps.
VectorsDisplay.from_estimator(model, X, y)

# %%
# What cross-validation saw.
TraceDisplay.from_estimator(model)

# %%
# The whole path, from no sample to many.
FisherPathDisplay.from_path(fisher_path(SparseKernelFisher(kernel=model.kernel_), X, y))
