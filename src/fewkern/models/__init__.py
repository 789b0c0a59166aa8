"""scikit-learn estimators: validate, resolve the kernel, call one algorithm, assign attributes."""
