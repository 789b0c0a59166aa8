"""What surrounds every ``fit``: checked parameters, scikit-learn's callbacks, and no model that is half fitted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from sklearn import config_context, get_config

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9 has no callbacks: estimators have no set_callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Any) -> Any:
        """The method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "fit_context"]


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Any], Any]:
    """Decorate a method ``fit``: check the parameters, call the callbacks, and leave no model that is half fitted.

    A fit that ends with an error, or is interrupted, leaves the estimator as it was before: unfitted, or with the
    model of the fit before.

    Parameters
    ----------
    prefer_skip_nested_validation : bool
        As in scikit-learn: whether the parameters of estimators inside are taken as they are.
    """

    def decorate(fit: Any) -> Any:
        signature = inspect.signature(fit)

        @wraps(fit)
        def whole_fit(estimator: Any, *args: Any, **kwargs: Any) -> Any:
            skip = get_config()["skip_parameter_validation"]
            if not skip:
                estimator._validate_params()
            given = signature.bind(estimator, *args, **kwargs).arguments if hasattr(estimator, "_skl_callbacks") else {}
            with (
                _all_or_nothing(estimator),
                config_context(skip_parameter_validation=skip or prefer_skip_nested_validation),
                _task(estimator, given),
            ):
                return fit(estimator, *args, **kwargs)

        return whole_fit

    return decorate


@contextmanager
def _all_or_nothing(estimator: Any) -> Iterator[None]:
    """Give the estimator its attributes back if what is done inside does not come to its end."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@contextmanager
def _task(estimator: Any, given: dict[str, Any]) -> Iterator[None]:
    """The whole fit as a task of scikit-learn's callbacks, if the estimator has any; ``given`` are its arguments."""
    if not given:
        yield
        return
    weights = given.get("sample_weight")
    data = {"X": given["X"], "y": given.get("y"), "metadata": None if weights is None else {"sample_weight": weights}}
    try:
        # how many loops there will be depends on the samples
        context = estimator._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=estimator, **data)
        yield
        # the estimator itself is what was fitted
        context.call_on_fit_task_end(estimator=estimator, **data, reconstruction_attributes=dict)
    finally:
        _tear_down(estimator)


@with_callbacks
def _tear_down(estimator: Any) -> None:
    """Let scikit-learn end the callbacks of a fit, which its decorator does after a method; this one does nothing."""
