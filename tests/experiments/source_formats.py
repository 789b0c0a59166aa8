"""The sets written back in the formats of their sources: the inverse of ``experiments.data.sets``."""

import io

import numpy as np
from scipy.io import savemat

from experiments.data.sets import _LIVER_LAST


def write(need, arrays):
    """The files of a set, by name."""
    return _WRITERS[need](arrays)


def _text(rows):
    return ("\n".join(",".join(row) for row in rows) + "\n").encode()


def _labels(y, positive, negative):
    return [positive if value > 0 else negative for value in y]


def _attributes(arrays, first_levels):
    """Rows of cells from the 0/1 columns; ``first_levels`` has the level that has no column."""
    groups = {}
    for column, title in zip(arrays["X"].T, arrays["feature_names"].tolist()):
        name, _, level = title.partition("=")
        groups.setdefault(name, []).append((level, column))
    cells = []
    for name, columns in groups.items():
        if columns[0][0] == "":
            cells.append([f"{value:g}" for value in columns[0][1]])
            continue
        levels = [level for level, _ in columns]
        values = np.column_stack([column for _, column in columns])
        none = first_levels.get(name, "f")
        cells.append([levels[row.argmax()] if row.any() else none for row in values])
    return zip(*cells)


def _chess(arrays):
    rows = _attributes(arrays, {"dwipd": "g", "wtoeg": "n"})
    # the file ends with two empty lines
    text = _text([*row, label] for row, label in zip(rows, _labels(arrays["y"], "won", "nowin")))
    return {"kr-vs-kp.data": text + b"\n\n"}


def _credit(arrays):
    rows = [[*row, label] for row, label in zip(_attributes(arrays, {"A1": "a"}), _labels(arrays["y"], "+", "-"))]
    # rows that the parser must leave out
    rows.insert(1, ["?", *rows[0][1:]])
    rows.append([*rows[0][:13], "?", *rows[0][14:]])
    return {"crx.data": _text(rows)}


def _ionosphere(arrays):
    rows = [[f"{v:g}" if v in (-1, -0.5, 0, 0.5, 1) else f"{v:.5f}" for v in row] for row in arrays["X"]]
    return {"ionosphere.data": _text([*row, label] for row, label in zip(rows, _labels(arrays["y"], "g", "b")))}


def _liver(arrays):
    kept, last = iter(range(len(arrays["y"]) - len(_LIVER_LAST))), iter(range(-len(_LIVER_LAST), 0))
    order = [next(last) if i in _LIVER_LAST else next(kept) for i in range(len(arrays["y"]))]
    rows = [[f"{v:.0f}" for v in row[:5]] + [f"{row[5]:.1f}"] for row in arrays["X"][order]]
    return {"bupa.data": _text([*row, label] for row, label in zip(rows, _labels(arrays["y"][order], "2", "1")))}


def _sonar(arrays):
    rows = [[f"{v:.4f}" for v in row] for row in arrays["X"]]
    return {"sonar.all-data": _text([*row, label] for row, label in zip(rows, _labels(arrays["y"], "M", "R")))}


def _wbc(arrays):
    rows = [["1000025", *map(str, row), y] for row, y in zip(arrays["X"].tolist(), _labels(arrays["y"], "4", "2"))]
    rows.insert(3, [*rows[0][:6], "?", *rows[0][7:]])
    return {"breast-cancer-wisconsin.data": _text(rows)}


def _letter(arrays):
    rows = [[chr(ord("A") + y), *map(str, row)] for row, y in zip(arrays["X"].tolist(), arrays["y"].tolist())]
    return {"letter-recognition.data": _text(rows)}


def _adult(arrays):
    names = arrays["feature_names"].tolist()
    columns = [
        arrays[f"levels_{name}"][column] if categorical else column.astype(str)
        for name, column, categorical in zip(names, arrays["X"].T, arrays["is_categorical"])
    ]
    n = int(arrays["n_train"])
    lines = [", ".join([*row, y]) for row, y in zip(zip(*columns), _labels(arrays["y"], ">50K", "<=50K"))]
    train = "\n".join(lines[:n]) + "\n\n"
    test = "|1x3 Cross validator\n" + "".join(f"{line}.\n" for line in lines[n:]) + "\n"
    return {"adult.data": train.encode(), "adult.test": test.encode()}


def _mnist(arrays):
    n, X = int(arrays["n_train"]), arrays["X"].reshape(-1, 28, 28)
    handle = io.BytesIO()
    np.savez(handle, x_train=X[:n], y_train=arrays["y"][:n], x_test=X[n:], y_test=arrays["y"][n:])
    return {"mnist.npz": handle.getvalue()}


def _faces(name):
    def write_faces(arrays):
        images = arrays["X"].reshape(-1, 32, 32).transpose(0, 2, 1).reshape(len(arrays["X"]), -1)
        handle = io.BytesIO()
        savemat(handle, {"fea": images.astype(float), "gnd": arrays["y"][:, None]})
        return {name: handle.getvalue()}

    return write_faces


def write_ida(sets):
    """benchmarks.mat from the arrays of sets by name."""
    structures = {
        name.replace("-", "_"): {
            "x": arrays["X"],
            "t": arrays["y"][:, None].astype(float),
            "train": arrays["train_idx"].astype(float) + 1,
            "test": arrays["test_idx"].astype(float) + 1,
        }
        for name, arrays in sets.items()
    }
    handle = io.BytesIO()
    savemat(handle, structures)
    return handle.getvalue()


_WRITERS = {
    "faces/orl_32x32": _faces("ORL_32x32.mat"),
    "faces/yale_32x32": _faces("Yale_32x32.mat"),
    "uci/chess_krvskp": _chess,
    "uci/credit_crx": _credit,
    "uci/ionosphere": _ionosphere,
    "uci/liver_bupa": _liver,
    "uci/sonar": _sonar,
    "uci/wbc": _wbc,
    "large/adult": _adult,
    "large/letter": _letter,
    "large/mnist": _mnist,
}
