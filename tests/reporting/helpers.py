"""Small tables and models that the tests of the report share."""

from functools import cache
from html.parser import HTMLParser

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fewkern
from fewkern import ReportSettings
from fewkern.reporting.evaluation import Predictions

QUICK = ReportSettings(compare=False)


def judged(truth, predicted, probabilities=None, how="held out", classes=None):
    """Predictions for the rows of a table; of a regression, if there are no classes."""
    P, names = (None if values is None else np.asarray(values) for values in (probabilities, classes))
    nothing = np.arange(0)
    return Predictions(np.arange(len(truth)), np.asarray(truth), np.asarray(predicted), P, how, nothing, names)


def customers(n=240, seed=0):
    """A table with a key, numbers, a category and a class that depends on two of them."""
    rng = np.random.default_rng(seed)
    age, noise = rng.uniform(18, 80, n).round(1), rng.normal(size=n)
    plan = rng.choice(["month", "year"], n)
    logit = 2.5 * (plan == "month") + 0.06 * (age - 50) - 2.0
    churn = np.where(rng.random(n) < 1 / (1 + np.exp(-logit)), "yes", "no")
    frame = pd.DataFrame({"key": [f"C{i}" for i in range(n)], "age": age, "noise": noise, "plan": plan})
    return frame, pd.Series(churn, name="churn")


def encoder(age="age", plan="plan"):
    return make_column_transformer(
        (StandardScaler(), [age, "noise"]), (OneHotEncoder(sparse_output=False), [plan]), remainder="drop"
    )


@cache
def churn_model(moved=False):
    """A pipeline on the customers, with its table and targets."""
    frame, y = customers()
    last = fewkern.KernelClassifier if moved else fewkern.FeatureVectorDiscriminant
    model = make_pipeline(encoder(), last(max_vectors=12))
    return model.fit(frame, y), frame, y


@cache
def price_model():
    """A regression with two columns, one of which says nothing."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"area": rng.uniform(20, 200, 200), "noise": rng.normal(size=200)})
    y = pd.Series(1000 * X["area"] + 5000 * rng.normal(size=200), name="price")
    model = make_pipeline(StandardScaler(), fewkern.FeatureVectorRegressor(max_vectors=10))
    return model.fit(X, y), X, y


@cache
def iris_model():
    """Three classes, kept rows, an array without names."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return fewkern.FeatureVectorDiscriminant(max_vectors=10).fit(X, y), X, y


@cache
def churn_table(holdout=0.2):
    """A model of the whole table of customers, and the table."""
    frame, y = customers()
    table = frame.assign(churn=y)
    return fewkern.TableModel(max_vectors=8, holdout=holdout).fit(table, "churn"), table


class Parsed(HTMLParser):
    """A page as its elements: every tag must be closed in order."""

    VOID = frozenset({"meta", "br", "img", "hr", "input", "link"})

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.texts, self.ids = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def tags(self, name):
        return [attrs for tag, attrs in self.elements if tag == name]
