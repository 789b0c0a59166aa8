"""The Arduino sketch: its folder, and what it answers, compiled on this machine with stubs of String and Serial."""

import subprocess

import numpy as np
import pytest

from fewkern import FeatureVectorDiscriminant, FeatureVectorPCA, ForwardDensity, KernelClassifier, KernelRegressor, to_c
from fewkern.datasets import make_banana
from tests.io.running import CPP_COMPILER, STRICT, build

STUB = r"""
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
struct String { std::string s; const char *c_str() const { return s.c_str(); } };
struct {
    void begin(long) {}
    bool available() { return std::cin.peek() != EOF; }
    String readStringUntil(char end) { String line; std::getline(std::cin, line.s, end); return line; }
    void println(const char *text) { std::cout << text << '\n'; }
    void println(double number, int digits) { std::printf("%.*f\n", digits, number); std::fflush(stdout); }
} Serial;
#include "m.ino"
int main() { setup(); while (Serial.available()) loop(); }
"""
X, y = make_banana(80, random_state=0)
X = X.astype(np.float32).astype(float)
WOOD = np.where(y > 0, "ash", "birch")


def answers(folder, model, lines, dtype):
    """What the sketch of a model says to lines on the serial port."""
    to_c(model, folder / "m" / "m.ino", name="m", dtype=dtype)
    (folder / "m" / "main.cpp").write_text(STUB)
    build(folder / "m", *STRICT, "-c", "m.c")
    build(folder / "m", "-Wall", "-Wextra", "-Werror", "main.cpp", "m.o", "-o", "m", compiler=CPP_COMPILER)
    ran = subprocess.run([str(folder / "m" / "m")], input="\n".join(lines), capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


@pytest.mark.parametrize(
    ("model", "dtype"),
    [
        (KernelClassifier(n_vectors=6), "float"),
        (KernelClassifier(n_vectors=6), "int16"),
        (KernelRegressor(n_vectors=6), "int16"),
        (FeatureVectorPCA(max_vectors=6, n_components=2), "float"),
        (ForwardDensity(bandwidth=0.5), "double"),
    ],
    ids=str,
)
def test_it_answers_every_line(model, dtype, tmp_path):
    regression = isinstance(model, KernelRegressor)
    model.fit(X, X[:, 0] * X[:, 1] if regression else WOOD)
    lines = [("{!r}, {!r}" if i % 2 else "{!r};\t{!r} ").format(*row) for i, row in enumerate(X[:10].tolist())]
    found = answers(tmp_path, model, [*lines, "1.5 and more", ""], dtype)
    assert found.pop() == "expected 2 numbers"
    if isinstance(model, KernelClassifier):
        assert found == model.predict(X[:10]).tolist()
        return
    ask = "predict" if regression else "score_samples" if isinstance(model, ForwardDensity) else "transform"
    truth = getattr(model, ask)(X[:10]).ravel()
    np.testing.assert_allclose(np.array(found, float), truth, atol=0.02 * np.ptp(truth) if dtype == "int16" else 1e-4)


def test_the_folder_of_a_sketch(tmp_path):
    model = FeatureVectorDiscriminant(max_vectors=4).fit(X, y)
    text = to_c(model, tmp_path / "wood" / "wood.ino", name="m")
    assert sorted(path.name for path in (tmp_path / "wood").iterdir()) == ["wood.c", "wood.h", "wood.ino"]
    assert (tmp_path / "wood" / "wood.c").read_text() == text == to_c(model, name="m")
    assert '#include "wood.h"' in (tmp_path / "wood" / "wood.ino").read_text()
    with pytest.raises(ValueError, match=r"a folder of its name only; write wood.ino as wood/wood.ino, not as"):
        to_c(model, tmp_path / "wood.ino")
