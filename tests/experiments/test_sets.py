"""The formats of the sources, on small texts made up for the purpose."""

import hashlib
import io

import numpy as np
import pytest
from scipy.io import savemat

from experiments.data import sets
from experiments.data.sources import content_sha256


def text(*rows):
    return "".join(f"{row}\n" for row in rows).encode()


def named(z):
    """Columns by their names."""
    return dict(zip(z["feature_names"].tolist(), z["X"].T.tolist()))


def test_chess_columns():
    """Two levels: one column, for the later one; three levels: three columns."""
    common, rest = ",".join("f" * 12), ",".join("f" * 20)
    content = text(f"{common},l,f,n,t,{rest},won", f"{common},g,f,w,f,{rest},nowin", f"{common},g,f,b,f,{rest},won")
    z = sets.parse_chess(content + b"\n\n")
    assert z["X"].dtype == np.uint8
    assert z["y"].tolist() == [1, -1, 1]
    found = {name: values for name, values in named(z).items() if name.startswith(("dwipd", "katri", "mulch"))}
    levels = {"katri=b": [0, 0, 1], "katri=n": [1, 0, 0], "katri=w": [0, 1, 0]}
    assert found == {"dwipd=l": [1, 0, 0], "mulch=t": [1, 0, 0], **levels}


def test_credit_leaves_out_rows_with_missing_values():
    z = sets.parse_credit(
        text(
            "b,30.83,0,u,g,w,v,1.25,t,t,01,f,g,00202,0,+",
            "a,?,4.46,y,p,q,h,3.04,t,t,06,f,g,00043,560,+",
            "a,24.50,0.5,y,p,q,h,1.5,t,f,0,f,s,00280,824,-",
            "b,27.83,1.54,l,gg,c,h,3.75,t,t,05,t,g,?,3,+",
            "b,20.17,5.625,l,gg,c,v,1.71,t,f,0,t,p,00120,0,-",
        )
    )
    assert z["y"].tolist() == [1, -1, -1]
    found = named(z)
    assert (found["A2"], found["A1=b"]) == ([30.83, 24.5, 20.17], [1, 0, 1])
    assert [found[f"A4={level}"] for level in "luy"] == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert z["X_coded"][:, [3, 13]].T.tolist() == [[1, 2, 0], [202, 280, 120]]


@pytest.mark.parametrize(
    ("parse", "rows", "X", "y"),
    [
        (
            sets.parse_ionosphere,
            [",".join(["1", "0", *["-0.5"] * 32, "g"]), ",".join([*["0.025"] * 34, "b"])],
            [[1, 0, *[-0.5] * 32], [0.025] * 34],
            [1, -1],
        ),
        (sets.parse_sonar, ["0.02," * 60 + "R", "0.0371," * 60 + "M"], [[0.02] * 60, [0.0371] * 60], [-1, 1]),
        (
            sets.parse_wbc,
            ["1000025,5,1,1,1,2,1,3,1,1,2", "1057013,8,4,5,1,2,?,7,3,1,4", "7,10,1,1,1,2,1,3,1,1,4"],
            [[5, 1, 1, 1, 2, 1, 3, 1, 1], [10, 1, 1, 1, 2, 1, 3, 1, 1]],
            [-1, 1],
        ),
        (sets.parse_letter, ["T" + ",2" * 16, "A" + ",8" * 16], [[2] * 16, [8] * 16], [19, 0]),
    ],
)
def test_plain_tables(parse, rows, X, y):
    z = parse(text(*rows))
    assert z["X"].tolist() == X
    assert z["y"].tolist() == y


def test_liver_rows_are_in_the_order_of_the_folder():
    z = sets.parse_liver(text(*(f"{i},92,45,27,31,0.5,{1 + i % 2}" for i in range(345))))
    order = z["X"][:, 0].astype(int).tolist()
    assert sorted(order) == list(range(345))
    assert (order[:6], order[-35:-32], order[-1]) == ([0, 1, 2, 3, 5, 6], [4, 12, 22], 337)
    assert z["y"].tolist() == [1 if i % 2 else -1 for i in order]


def test_adult_joins_two_files_and_keeps_question_marks():
    train = text(
        "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, 40, "
        "United-States, <=50K",
        "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Black, Male, 0, 0, 60, South, >50K",
        "",
    )
    test = text(
        "|1x3 Cross validator",
        "25, Private, 226802, 11th, 7, Never-married, Sales, Own-child, Black, Female, 0, 0, 40, United-States, <=50K.",
    )
    z = sets.parse_adult(train, test)
    assert z["X"].dtype == np.int32
    assert z["n_train"] == 2
    assert z["y"].tolist() == [-1, 1, -1]
    assert z["X"][:, :2].T.tolist() == [[39, 54, 25], [2, 0, 1]]
    assert z["levels_workclass"].tolist() == ["?", "Private", "State-gov"]
    assert z["is_categorical"].tolist()[:4] == [False, True, False, True]
    assert z["feature_names"][13] == "native-country"


def test_mnist_and_faces():
    handle = io.BytesIO()
    images = np.arange(3 * 784).reshape(3, 28, 28).astype(np.uint8)
    np.savez(handle, x_train=images[:2], y_train=np.array([5, 0]), x_test=images[2:], y_test=np.array([7]))
    z = sets.parse_mnist(handle.getvalue())
    np.testing.assert_array_equal(z["X"], images.reshape(3, 784))
    assert z["y"].tolist() == [5, 0, 7]
    assert z["n_train"] == 2
    handle = io.BytesIO()
    face = np.arange(1024).reshape(32, 32) % 251
    savemat(handle, {"fea": face.ravel(order="F")[None].astype(float), "gnd": np.array([[4.0]])})
    z = sets.parse_faces(handle.getvalue())
    np.testing.assert_array_equal(z["X"][0].reshape(32, 32), face)
    assert z["y"].tolist() == [4]


@pytest.mark.parametrize(
    ("parse", "content", "match"),
    [
        (sets.parse_sonar, b"<!DOCTYPE html>\n<title>Log in</title>\n", "expected 61 columns, got 1 in row 1"),
        (sets.parse_sonar, b"\n", "expected rows of text, got none"),
        (sets.parse_letter, b"1" + 16 * b",1", "expected letters from A to Z"),
        (sets.parse_ionosphere, b"1," * 34 + b"x", "expected labels 'g' and 'b', got 'x'"),
        (sets.parse_liver, text("85,92,45,27,31,0.0,1"), "expected 345 rows, got 1"),
    ],
)
def test_another_format(parse, content, match):
    with pytest.raises(ValueError, match=match):
        parse(content)


def test_content_checksum_is_of_values_not_of_storage():
    arrays = {"X": np.arange(6, dtype=">f8").reshape(2, 3), "names": np.array(["a", "bb"], dtype="<U9")}
    same = {"names": np.array(["a", "bb"]), "X": np.asfortranarray(arrays["X"].astype("<f8"))}
    # by hand, as the docstring says
    by_hand = b"X <f8 (2, 3)\n" + np.arange(6.0).tobytes() + b"names text (2,)\na\nbb"
    assert content_sha256(arrays) == content_sha256(same) == hashlib.sha256(by_hand).hexdigest()
    for other in ({"X": same["X"] + 1e-12}, {"X": same["X"].T}, {"X": same["X"].astype(np.float32)}):
        assert content_sha256({**same, **other}) != content_sha256(arrays)
