"""Several files, and large ones, as one table."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fewkern.arrays.frames import FrameParts
from fewkern.tables import parts as in_parts
from fewkern.tables import text_files
from fewkern.tables.parts import fetch_rows, find_files, open_tables
from fewkern.tables.reading import read_table


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "size": rng.normal(size=60).round(4),
        "count": rng.integers(0, 9, 60),
        "name": rng.choice(["ash", "a \"big\" oak", "fir,\nwet"], 60),
        "kind": rng.choice(["a", "b"], 60),
    })  # fmt: skip


def test_names_patterns_and_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("b.csv", "a.csv", ".hidden.csv", "_log.csv", "notes.md"):
        (folder / name).write_text("x,y\n1,2\n")
    both = (folder / "a.csv", folder / "b.csv")
    assert find_files([str(folder)]) == both
    assert find_files([str(folder / "[ab].csv")]) == both
    assert find_files([str(both[1]), str(folder / "a*")]) == (both[1], both[0])
    assert find_files(["absent.csv"])[0].name == "absent.csv"  # whoever reads it says that it is not there
    (folder / "c[1].csv").write_text("x,y\n1,2\n")
    assert find_files([str(folder / "c[1].csv")]) == (folder / "c[1].csv",)


def test_names_that_stand_for_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"no file matches the pattern '.*part-\*.csv'"):
        find_files([str(tmp_path / "part-*.csv")])
    with pytest.raises(ValueError, match=r"the folder .*empty has no tables"):
        find_files([str(tmp_path / "empty")])
    with pytest.raises(ValueError, match=r"standard input \(-\) cannot be read together"):
        find_files(["-", "a.csv"])
    (tmp_path / "a.csv").touch()
    (tmp_path / "b.parquet").touch()
    with pytest.raises(ValueError, match=r"files of several kinds \(.csv, .parquet\); name those that are meant"):
        find_files([str(tmp_path)])


def test_a_large_parquet_file_is_read_in_parts(tmp_path, frame, monkeypatch):
    monkeypatch.setattr(in_parts, "STREAM_BYTES", 100)
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=25)
    parts = open_tables([tmp_path / "a.parquet"]).frame
    assert isinstance(parts, FrameParts)
    assert parts.lengths == (25, 25, 10)
    pd.testing.assert_frame_equal(fetch_rows(parts), frame)


MONEY = "".join(f"{k},5;Köln;1.0{k:02d},25;3,5\n" for k in range(40)) + "1;2;3;some words\n" * 60
TEXTS = {
    "line breaks in quotes": lambda frame: b"\xef\xbb\xbf" + frame.to_csv(index=False).encode(),
    "decimal commas but in a column of words": lambda _: f"price;town;sum;text\n{MONEY}".encode("cp1252"),
    "row names without a header": lambda _: b"size,count\n" + b"oak,1,2\nfir,3,4\n" * 30,
    "a title": lambda frame: b"Trees of the town\n\n" + frame.to_csv(index=False).encode(),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_file_in_pieces_has_the_cells_and_notes_of_the_whole(tmp_path, frame, monkeypatch, name):
    """However the pieces fall; and so has one beside it."""
    path = tmp_path / "a.csv"
    path.write_bytes(TEXTS[name](frame))
    whole = read_table(path)
    monkeypatch.setattr(in_parts, "STREAM_BYTES", 100)
    for size in (30, 47, 64, 111, 5000):
        monkeypatch.setattr(text_files, "PIECE_BYTES", size)
        for paths in ([path], [path, path]):
            found = open_tables(paths)
            expected = pd.concat([whole.frame] * len(paths), ignore_index=True)
            pd.testing.assert_frame_equal(fetch_rows(found.frame), expected)
            assert found.notes == whole.notes
            assert found.frame.lengths == tuple(len(part.compute()) for part in found.frame.parts)
    assert len(found.frame.parts) >= 2
    again = open_tables([path, path], text_files.Marks(skip=2 * (name == "a title")))
    assert fetch_rows(again.frame).equals(expected)


def test_columns_in_another_order_and_numbers_of_other_sizes(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet")
    frame[list(frame.columns[::-1])].astype({"size": "float32", "count": "float64"}).to_parquet(tmp_path / "b.parquet")
    frame.assign(kind=None).to_parquet(tmp_path / "c.parquet")
    frame[:0].to_parquet(tmp_path / "d.parquet")
    parts = open_tables([tmp_path / f"{name}.parquet" for name in "abcd"]).frame
    assert list(fetch_rows(parts).columns) == list(frame.columns)
    assert parts.n == 180


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f.drop(columns="count"), "b.parquet lacks the column 'count', which a.parquet has"),
        (lambda f: f.assign(more=1), "b.parquet has a column 'more', which a.parquet lacks"),
        (lambda f: f.astype({"size": str}), "column 'size' holds text in b.parquet, but numbers in a.parquet"),
        (lambda f: f.assign(kind=True), "column 'kind' holds truth values in b.parquet, but text in a.parquet"),
    ],
)
def test_files_that_differ(tmp_path, frame, spoil, message):
    frame.to_parquet(tmp_path / "a.parquet")
    assert isinstance(open_tables([tmp_path / "a.parquet"]).frame, pd.DataFrame)  # one small file: in memory
    spoil(frame).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=message):
        open_tables([tmp_path / "a.parquet", tmp_path / "b.parquet"])


@pytest.mark.parametrize(
    ("names", "content", "message"),
    [
        (("a.csv", "b.csv"), b"x,z\n1,2\n", "b.csv lacks the column 'y', which a.csv has"),
        (("a.csv", "absent.parquet"), b"", "there is no file .*absent.parquet"),
        (("a.csv", "b.parquet"), b"PAR1 and no more", "b.parquet cannot be read as a table: it is not an intact"),
        (("a.csv", "notes.md"), b"x,y", "expected a file that ends in"),
        (("b.csv", "b.csv"), b"x,y\n1,2\n1,2,3\n", "b.csv cannot be read as a table: line 3 has 3 cells"),
        (("b.csv", "a.csv"), "x,y\n1,2\n".encode("utf-16"), "b.csv is UTF-16, which cannot be read in pieces"),
        (("b.csv", "b.csv"), b"x,y\n", "b.csv and the other files: there are no rows"),
        (("b.csv", "a.csv"), b" \n", "b.csv is empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, names, content, message):
    paths = [tmp_path / name for name in names]
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    for path in paths:
        if path.stem in ("b", "notes"):
            path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_tables(paths)


def test_a_line_that_is_wrong_far_down_is_named_by_its_piece(tmp_path, monkeypatch):
    (tmp_path / "c.csv").write_text("x,y\n1,2\n1,2,3\n")
    monkeypatch.setattr(text_files, "_HEAD_BYTES", 10)
    with pytest.raises(ValueError, match=r"c.csv, bytes 4 to 14: this piece cannot be read as a table: line 3 has 3 c"):
        fetch_rows(open_tables([tmp_path / "c.csv", tmp_path / "c.csv"]).frame)


def test_a_damaged_row_group_is_named(tmp_path, frame):
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "a.parquet", row_group_size=30, compression=None)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "b.parquet", row_group_size=30, compression="snappy")
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[100:900] = b"\xff" * 800
    (tmp_path / "b.parquet").write_bytes(content)
    table = open_tables([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    with pytest.raises(ValueError, match=r"b.parquet, row group [01]: it cannot be read: the Parquet"):
        fetch_rows(table.frame)


def test_without_dask(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    with pytest.raises(ImportError, match=r"several files, .* through Dask, which needs dask and distributed: pip"):
        open_tables([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert len(open_tables([tmp_path / "a.csv"]).frame) == 1


def test_files_of_other_kinds_are_read_whole(tmp_path, frame):
    frame.to_json(tmp_path / "a.json", orient="records")
    frame[::-1].to_csv(tmp_path / "b.csv.gz", index=False)
    parts = open_tables([tmp_path / "a.json", tmp_path / "b.csv.gz"]).frame
    assert parts.lengths == (60, 60)
    assert fetch_rows(parts)["size"].astype(float).tolist() == [*frame["size"], *frame["size"][::-1]]
