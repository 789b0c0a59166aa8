"""Names of the tasks and of the models for them. Nothing heavy is imported: the command line shows them in its help."""

from __future__ import annotations

__all__ = ["BY_CLASS", "MODELS", "TASKS"]

# task -> names of its models; the first is the default. ``estimators.py`` says which class each one is.
MODELS: dict[str, tuple[str, ...]] = {
    "classify": ("kernel", "discriminant", "fisher", "forward-fisher"),
    "regress": ("kernel", "fvs"),
    "reduce": ("pca", "embedding", "margins", "soft-margins"),
    "density": ("forward", "parzen", "reduced", "orthogonal"),
}
TASKS = tuple(MODELS)
# Reducers that look at a target.
BY_CLASS = ("embedding", "margins", "soft-margins")
