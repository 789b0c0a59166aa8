import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fewkern
from fewkern import (
    FeatureVectorDiscriminant,
    FeatureVectorRegressor,
    ForwardDensity,
    KernelExpansion,
    ParzenDensity,
    to_c,
)
from fewkern.datasets import make_banana
from fewkern.io.c_text import c_comment, c_number, c_string
from fewkern.kernels import Linear
from tests.io.running import CPP_COMPILER, STRICT, build, compile_library, compiled


@pytest.fixture(scope="module")
def banana():
    X, y = make_banana(150)
    return X, y, FeatureVectorDiscriminant(max_vectors=8, alpha=1e-2).fit(X, y)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_numbers_are_written_to_the_bit(double, single):
    text, short = c_number(double, "double"), c_number(single, "float")
    assert float(text) == double
    assert re.fullmatch(r"-?\d+(\.\d+)?(e[+-]\d+)?", text)
    assert np.float32(short.removesuffix("f")) == np.float32(single)
    assert short.endswith("f")
    # without a point or an exponent it would be a whole number in C
    assert set(text) & set(".e")
    assert set(short) & set(".e")


@pytest.mark.parametrize(
    ("value", "dtype", "message"),
    [(3.5e38, "float", 'no float can hold; use dtype="double"'), (float("nan"), "double", "fit it again on finite")],
)
def test_a_number_that_the_type_cannot_hold(value, dtype, message):
    with pytest.raises(ValueError, match=message):
        c_number(-value, dtype)


def test_the_compiler_reads_the_same_bits(tmp_path, rng):
    """Constants of all sizes, through a linear model: unit vectors give them back."""
    W = rng.standard_normal(40) * 10.0 ** rng.integers(-300, 300, 40)
    W[:4] = [5e-324, 1.7976931348623157e308, 0.1, 1 / 3]
    model = KernelExpansion(Linear(), W[None, :], np.ones((1, 1)), np.zeros(1))
    out = compiled(tmp_path, model).write("predict", np.eye(40), 1)
    assert out[:, 0].tolist() == W.tolist()


@given(st.text(max_size=20))
@example("????/")
@example("/*/**/")
def test_any_label_is_one_literal_and_any_name_stays_in_its_comment(text):
    literal = c_string(text)
    assert literal.isascii()
    body = literal[1:-1]
    assert not re.search(r'(?<!\\)[?"]', body)
    assert re.sub(rb"\\([0-7]{3})", lambda m: bytes([int(m[1], 8)]), body.encode()).decode() == text
    comment = c_comment(text)
    assert comment.isascii()
    assert comment.isprintable()
    assert not any(mark in comment for mark in ("*/", "/*", "??"))


def test_the_file_is_also_cpp(tmp_path, banana):
    X, _, model = banana
    for i, each in enumerate([model, ParzenDensity(bandwidth=0.5).fit(X[:20])]):
        path = tmp_path / f"model{i}.c"
        to_c(each, path)
        build(tmp_path, "-x", "c++", "-Wall", "-Wextra", "-pedantic", "-Werror", "-c", path.name, compiler=CPP_COMPILER)


def test_the_loops_compile_on_their_own(tmp_path):
    words = {"T": "float"} | {word: f"{word.lower()}f" for word in ("EXP", "LOG", "FABS", "SQRT", "ERF", "ERFC")}
    options = [*STRICT, "-Wconversion", "-Wdouble-promotion", "-Wno-unused-function"]
    text = (Path(fewkern.io.__file__).with_name("loops.c")).read_text()
    compile_library(tmp_path, text, options=[*options, *[f"-D{word}={value}" for word, value in words.items()]])
    compile_library(tmp_path, text, options=options)


def test_the_strictest_warnings_find_nothing(tmp_path, banana):
    strict = [*STRICT, "-Wmissing-prototypes", "-Wstrict-prototypes", "-Wconversion", "-Wdouble-promotion"]
    X, _, model = banana
    density = ForwardDensity(scale="whiten", bandwidth=0.5).fit(X)
    models = {"a": model, "b": density, "c": FeatureVectorRegressor(max_vectors=4).fit(X, X)}
    texts = [to_c(each, name=name, dtype="float") for name, each in models.items()]
    compile_library(tmp_path, *texts, options=strict)


def test_the_head_counts_the_bytes_of_the_constants(banana):
    X, y, _ = banana
    model = FeatureVectorRegressor(max_vectors=8, alpha=1e-2).fit(X, y)
    text = to_c(model, dtype="float")
    # vectors, coefficients, offset; shift and factor of two features
    expected = 4 * (model.n_vectors_ * 3 + 1 + 4)
    assert f"Constants: {expected} bytes of float." in text
    assert "double" not in text
    assert f"Constants: {2 * expected} bytes of double." in to_c(model)


@pytest.mark.parametrize("name", ["", "2nd", "a-b", "_x", "naïve", "a\n"])
def test_a_name_that_c_does_not_allow(name, banana):
    with pytest.raises(ValueError, match=r"to_c: name must be a C identifier .* got "):
        to_c(banana[2], name=name)


def test_a_header_beside_the_file(tmp_path, banana):
    """A program includes the header and is linked with the file; including both is harmless, in C and in C++."""
    X, _, model = banana
    text = to_c(model, tmp_path / "banana.c", name="banana", dtype="float")
    assert (tmp_path / "banana.c").read_text() == text == to_c(model, name="banana", dtype="float")
    assert "model" not in text.split("*/")[1]
    x = ", ".join(c_number(value, "float") for value in X[0])
    program = f"""#include "banana.h"
#include "banana.h"
int main(void) {{ float x[banana_N_FEATURES] = {{{x}}}; return banana_predict(x); }}
"""
    (tmp_path / "main.c").write_text(program)
    (tmp_path / "both.c").write_text(program.replace('"banana.h"', '"banana.c"', 1))
    for sources in (["main.c", "banana.c"], ["both.c"]):
        build(tmp_path, *STRICT, *sources, "-o", "program")
        ran = subprocess.run([str(tmp_path / "program")], check=False).returncode
        assert ran == np.flatnonzero(model.classes_ == model.predict(X[:1])[0])[0]
    to_c(model, tmp_path / "banana.txt")
    assert sorted(path.suffix for path in tmp_path.glob("banana.*")) == [".c", ".h", ".txt"]
