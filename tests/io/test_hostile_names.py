"""Names and labels that try to break out of the file they are written to, or to control a terminal."""

import json

import numpy as np
import pytest

from fewkern import FeatureVectorDiscriminant, load, save, to_c, to_onnx, to_sql
from fewkern.arrays.progress import printable
from fewkern.datasets import make_banana
from fewkern.io import ModelFileError
from fewkern.io.c_text import c_string
from tests.fuzz.lies import put, tamper
from tests.io.running import run_onnx, run_sanitized

HOSTILE = [
    '"; system("true"); //',
    "*/ int injected = 1; /*",
    "// */ #error",
    "ends with a backslash\\",
    "line\nbreak\r\n#error broken",
    "??/\n??)",
    "%s%n%d",
    "\u202eright to left\u2066",
    "żółw 亀 🐢",
    "<script>alert(1)</script>",
    "'; DROP TABLE models; --",
    "{{7*7}} ${x} `y`",
    "x" * 3000,
    "\x7f\x1b[31m\x01",
    " ",
    "",
]


@pytest.fixture(scope="module")
def model():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    labels = np.array(HOSTILE, dtype=object)
    y = np.arange(96) % len(labels)
    X = rng.standard_normal((96, len(HOSTILE))) + 2 * np.eye(len(HOSTILE))[y]
    frame = pd.DataFrame(X, columns=HOSTILE)
    return frame, FeatureVectorDiscriminant(max_vectors=6, alpha=1e-2).fit(frame, labels[y])


def test_c(model, tmp_path):
    frame, fitted = model
    assert list(load(save(fitted, tmp_path / "m")).feature_names_in_) == HOSTILE
    text = to_c(fitted, name="m")
    assert text.isascii()
    assert f"x holds the {len(HOSTILE)} features of one sample, in this order:" in text
    # no line ends with a backslash, which would glue the next line to it
    assert not [line for line in text.splitlines() if line.endswith("\\")]
    # the head is one comment, and nothing of a name is outside of it
    head, rest = text.split("*/", 1)
    assert head.count("/*") == 1
    assert "injected" not in rest.replace(c_string(HOSTILE[1]), "")
    found = run_sanitized(tmp_path, fitted, frame.to_numpy(), "double")
    assert found["label"].tolist() == fitted.predict(frame).tolist()


def test_onnx(model):
    pytest.importorskip("onnx", reason="onnx is not installed (pip install 'fewkern[export]')")
    frame, fitted = model
    proto = to_onnx(fitted, dtype="double")
    facts = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(facts["classes"]) == fitted.classes_.tolist()
    assert json.loads(facts["feature_names"]) == HOSTILE
    found = run_onnx(proto, frame.to_numpy(), "double")
    assert found["label"].tolist() == fitted.predict(frame).tolist()


@pytest.mark.parametrize(
    ("write", "label", "message"),
    [
        (to_c, "a\0b", r"the label 'a\\x00b' holds a NUL, which ends a text in C"),
        (to_c, "\ud800", "cannot be written as UTF-8; rename the class"),
        (to_onnx, "\ud800", "cannot be written as UTF-8; rename the class"),
        (to_sql, "a\0b", r"'a\\x00b' holds a NUL, which ends a text in SQL; rename it"),
    ],
)
def test_labels_that_cannot_be_written(write, label, message):
    X, y = make_banana(60)
    fitted = FeatureVectorDiscriminant(max_vectors=3).fit(X, np.array(["fine", label], dtype=object)[y])
    with pytest.raises(ValueError, match=message):
        write(fitted)


ESCAPES = "\x1b]0;title\x07 \x9b31m \u202e \u2066 \0 \x7f \u2028 \U000e0001"


@pytest.mark.parametrize(
    "change",
    [
        lambda header, _: header["model"].update(object=ESCAPES),
        lambda header, _: header.update(format_version=ESCAPES),
        lambda header, _: header.update(fewkern=ESCAPES, format_version=9),
        put(f"expansion_.{ESCAPES.replace('.', '')}", 1),
        put("kernel", ESCAPES),
    ],
)
def test_a_refusal_shows_nothing_raw(change, tmp_path):
    """What a file says is part of the reason, and none of it can control a terminal."""
    path = save(FeatureVectorDiscriminant(max_vectors=3).fit(*make_banana(60)), tmp_path / "m\x1b[31m.npz")
    tamper(path, change)
    with pytest.raises(ModelFileError) as error:
        load(path)
    assert str(error.value).isprintable()
    assert "u001b" in str(error.value).removeprefix(r"load: m\u001b") or "x1b" in str(error.value)


def test_escapes():
    assert printable(ESCAPES).isprintable()
    assert printable("żółw 亀 🐢 \u00a0é") == "żółw 亀 🐢 \u00a0é"
    assert printable("a\tb\nc", keep="\n") == "a\\u0009b\nc"
    assert printable("\ud800") == r"\ud800"
    # the text of JSON says the same
    assert json.loads(printable(json.dumps(ESCAPES, ensure_ascii=False))) == ESCAPES
