"""Compressed models: what :func:`fewkern.compress` returns.

They predict like any estimator, and are saved and exported like one, but they have no parameters and are not fitted to
samples.
"""

from __future__ import annotations

from typing import Any, NoReturn

from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, RegressorMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if

from fewkern.arrays.namespace import Array
from fewkern.arrays.storable import storable
from fewkern.arrays.validation import labels_from_codes
from fewkern.base import ScoringClassifier, check_samples, kept_importances
from fewkern.compression.distillation import Agreement
from fewkern.core.expansion import Expansion

__all__ = [
    "CompressedClassifier",
    "CompressedDetector",
    "CompressedModel",
    "CompressedRegressor",
    "CompressedTransformer",
]


class CompressedModel(BaseEstimator):
    """Base of the compressed models: a short expansion, and how far it agrees with the model that it came from.

    Attributes
    ----------
    expansion_ : GaussianExpansion or KernelExpansion
        The fitted function; the second where it is the source's own.
    vectors_, n_vectors_
        Its vectors, which are no samples any more, and their number.
    agreement_ : Agreement
        Agreement with the source, on new samples.
    feature_importances_ : array of shape (n_features,)
        Share of every feature in the variation of the short function, as in :class:`KernelRegressor`; a
        transformer has none.
    source_ : str
        Class of the model that this one came from.
    n_features_in_, feature_names_in_
        As in the source.
    """

    expansion_: Expansion
    agreement_: Agreement
    source_: str
    methods_: list[str]

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """Refuse: a compressed model is made from a fitted one."""
        raise TypeError(
            f"{type(self).__name__}: a compressed model cannot be fitted; fit the model that it came from, and call "
            "fewkern.compress on that."
        )


def _has(method: str) -> Any:
    """Make a method available only where the source has it."""
    return available_if(lambda model: method in model.methods_)


@storable
class CompressedClassifier(ScoringClassifier, CompressedModel):
    """A short classifier that decides like another one; made by :func:`fewkern.compress`.

    ``predict_proba`` and ``transform`` exist where the source has them.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    class_scores_ : ClassScores
        How values become classes and probabilities.
    expansion_, vectors_, n_vectors_, agreement_, source_
        As in every compressed model: the short function, its vectors, and how far it agrees with the source.
    """

    feature_importances_ = kept_importances

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, shape ``(n_samples, n_classes)``, in the order of ``classes_``."""
        return super().predict_proba(X)

    @_has("predict_proba")
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of every class."""
        return super().predict_log_proba(X)

    @_has("transform")
    def transform(self, X: Any) -> Array:
        """Components of the samples, as the source gives them."""
        return self._values(X)


@storable
class CompressedRegressor(RegressorMixin, CompressedModel):
    """A short function with the predictions of a regression; made by :func:`fewkern.compress`."""

    single_: bool
    feature_importances_ = kept_importances

    def predict(self, X: Any) -> Array:
        """Values of shape ``(n_samples,)`` or ``(n_samples, n_outputs)``, as the source gives them."""
        values = self.expansion_(check_samples(self, X))
        return values[:, 0] if self.single_ else values


@storable
class CompressedTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CompressedModel):
    """Short functions with the components of a transformer; made by :func:`fewkern.compress`."""

    def transform(self, X: Any) -> Array:
        """Components of the samples, shape ``(n_samples, n_components)``."""
        return self.expansion_(check_samples(self, X))


@storable
class CompressedDetector(CompressedModel):
    """A short function that finds the outliers of another one (OneClassSVM); made by :func:`fewkern.compress`.

    Attributes
    ----------
    offset_ : float
        ``score_samples`` at the border, as in the source.
    classes_
        -1 (outlier) and 1, for exports.
    """

    offset_: float
    feature_importances_ = kept_importances

    def decision_function(self, X: Any) -> Array:
        """Distance from the border, negative for outliers; shape ``(n_samples,)``."""
        return self.expansion_(check_samples(self, X))[:, 0]

    def score_samples(self, X: Any) -> Array:
        """``decision_function`` without the offset."""
        return self.decision_function(X) + self.offset_

    def predict(self, X: Any) -> Array:
        """-1 for outliers, 1 for other samples."""
        values = self.expansion_(check_samples(self, X))
        return labels_from_codes(self.classes_, self.class_scores_.codes(values))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "outlier_detector"
        return tags
