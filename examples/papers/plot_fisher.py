"""
Sparse kernel Fisher discrimination
===================================

:class:`~fewkern.SparseKernelFisher` puts a penalty on the number of samples in Fisher's discriminant. With ``q = 1`` it
is a lasso, solved exactly; with ``q = 1/2``, the default, it keeps even fewer samples.
"""

# %%
# Both powers on the same points; the kernel length scale and the penalty are chosen by cross-validation. ``prefer="sparse"``
# takes the fewest samples whose error is within one standard error of the least one.
from fewkern import SparseKernelFisher
from fewkern.datasets import make_banana
from fewkern.fisher import fisher_path
from fewkern.plotting import FisherPathDisplay, PathDisplay, VectorsDisplay

X, y = make_banana(400, random_state=0)
X_test, y_test = make_banana(5000, random_state=1)
models = {f"q = {q}": SparseKernelFisher(q=q, prefer="sparse") for q in (1, 0.5)}
for name, model in {"default": SparseKernelFisher(), **models}.items():
    error = 1 - model.fit(X, y).score(X_test, y_test)
    kept = f"{model.n_vectors_} of {len(X)} samples kept"
    print(f"{name}: {kept}, error on new samples {error:.1%}")

# %%
# The samples that ``q = 1/2`` keeps.
VectorsDisplay.from_estimator(model, X, y)

# %%
# The cross-validated error of every penalty, against the number of samples that it keeps.
PathDisplay.from_estimator(model)

# %%
# The whole path, from no sample to many.
FisherPathDisplay.from_path(fisher_path(SparseKernelFisher(kernel=model.kernel_), X, y))
