"""The formats of the sources, on small texts made up for the purpose."""

import io

import numpy as np
import pytest
from scipy.io import savemat

from experiments.data import sets
from experiments.data.sources import content_sha256


def text(*rows):
    return "".join(f"{row}\n" for row in rows).encode()


def test_chess_columns():
    common = ",".join("f" * 12)
    rest = ",".join("f" * 20)
    content = text(f"{common},l,f,n,t,{rest},won", f"{common},g,f,w,f,{rest},nowin", f"{common},g,f,b,f,{rest},won")
    z = sets.parse_chess(content + b"\n\n")
    names = z["feature_names"].tolist()
    assert z["X"].dtype == np.uint8
    assert z["y"].tolist() == [1, -1, 1]
    # two levels: one column, for the later one; three levels: three columns
    assert [name for name in names if name.startswith("dwipd")] == ["dwipd=l"]
    assert [name for name in names if name.startswith("katri")] == ["katri=b", "katri=n", "katri=w"]
    assert z["X"][:, names.index("dwipd=l")].tolist() == [1, 0, 0]
    assert z["X"][:, names.index("katri=b") : names.index("katri=w") + 1].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert z["X"][:, names.index("mulch=t")].tolist() == [1, 0, 0]


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
    names = z["feature_names"].tolist()
    assert z["y"].tolist() == [1, -1, -1]
    assert z["X"][:, names.index("A2")].tolist() == [30.83, 24.5, 20.17]
    assert z["X"][:, names.index("A1=b")].tolist() == [1, 0, 1]
    assert z["X"][:, [names.index(f"A4={level}") for level in "luy"]].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert z["X_coded"].shape == (3, 15)
    assert z["X_coded"][:, 3].tolist() == [1, 2, 0]
    assert z["X_coded"][:, 13].tolist() == [202, 280, 120]


def test_plain_tables():
    z = sets.parse_ionosphere(text(",".join(["1", "0", *["-0.5"] * 32, "g"]), ",".join([*["0.02500"] * 34, "b"])))
    assert z["X"][:, :3].tolist() == [[1, 0, -0.5], [0.025] * 3]
    assert z["y"].tolist() == [1, -1]
    z = sets.parse_sonar(text(",".join([*["0.0200"] * 60, "R"]), ",".join([*["0.0371"] * 60, "M"])))
    assert z["X"].shape == (2, 60)
    assert z["y"].tolist() == [-1, 1]
    z = sets.parse_wbc(text("1000025,5,1,1,1,2,1,3,1,1,2", "1057013,8,4,5,1,2,?,7,3,1,4", "7,10,1,1,1,2,1,3,1,1,4"))
    assert z["X"].tolist() == [[5, 1, 1, 1, 2, 1, 3, 1, 1], [10, 1, 1, 1, 2, 1, 3, 1, 1]]
    assert z["y"].tolist() == [-1, 1]
    z = sets.parse_letter(text("T,2,8,3,5,1,8,13,0,6,6,10,8,0,8,0,8", "A,1,1,3,2,1,8,2,2,2,8,2,8,1,6,2,7"))
    assert z["X"].dtype == np.uint8
    assert z["y"].tolist() == [19, 0]


def test_liver_rows_are_in_the_order_of_the_folder():
    content = text(*(f"{i},92,45,27,31,0.5,{1 + i % 2}" for i in range(345)))
    z = sets.parse_liver(content)
    order = z["X"][:, 0].astype(int).tolist()
    assert sorted(order) == list(range(345))
    assert order[:6] == [0, 1, 2, 3, 5, 6]
    assert order[-35:-32] == [4, 12, 22]
    assert order[-1] == 337
    assert z["y"].tolist() == [1 if i % 2 else -1 for i in order]
    with pytest.raises(ValueError, match="expected 345 rows, got 2"):
        sets.parse_liver(text("85,92,45,27,31,0.0,1", "85,64,59,32,23,0.0,2"))


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
        "28, Private, 336951, 11th, 12, Divorced, Sales, Husband, White, Male, 0, 0, 40, United-States, >50K.",
    )
    z = sets.parse_adult(train, test)
    assert z["X"].dtype == np.int32
    assert z["n_train"] == 2
    assert z["y"].tolist() == [-1, 1, -1, 1]
    assert z["X"][:, 0].tolist() == [39, 54, 25, 28]
    assert z["levels_workclass"].tolist() == ["?", "Private", "State-gov"]
    assert z["X"][:, 1].tolist() == [2, 0, 1, 1]
    assert z["is_categorical"].tolist()[:4] == [False, True, False, True]
    assert z["feature_names"][13] == "native-country"
    assert z["levels_sex"].dtype == "<U6"


def test_mnist_and_faces():
    handle = io.BytesIO()
    images = np.arange(3 * 784).reshape(3, 28, 28).astype(np.uint8)
    np.savez(handle, x_train=images[:2], y_train=np.array([5, 0]), x_test=images[2:], y_test=np.array([7]))
    z = sets.parse_mnist(handle.getvalue())
    assert z["X"].shape == (3, 784)
    assert z["X"][1, 29] == images[1, 1, 1]
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
    ],
)
def test_another_format(parse, content, match):
    with pytest.raises(ValueError, match=match):
        parse(content)


def test_content_checksum_is_of_values_not_of_storage():
    arrays = {"X": np.arange(6, dtype=">f8").reshape(2, 3), "names": np.array(["a", "bb"], dtype="<U9")}
    same = {"names": np.array(["a", "bb"]), "X": np.asfortranarray(arrays["X"].astype("<f8"))}
    assert content_sha256(arrays) == content_sha256(same)
    # by hand, as the docstring says
    import hashlib

    by_hand = b"X <f8 (2, 3)\n" + np.arange(6.0).tobytes() + b"names text (2,)\na\nbb"
    assert content_sha256(arrays) == hashlib.sha256(by_hand).hexdigest()
    for other in (
        {**same, "X": same["X"] + 1e-12},
        {**same, "X": same["X"].T},
        {**same, "X": same["X"].astype(np.float32)},
        {**same, "names": np.array(["a", "b"])},
        {"X": same["X"]},
    ):
        assert content_sha256(other) != content_sha256(arrays)
