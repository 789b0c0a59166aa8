"""Files as tables: whatever program wrote them, the cells are the same."""

import datetime
import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

import fewkern
from fewkern.tables.reading import read_table
from fewkern.tables.text_files import note_on_title

ROWS = pd.DataFrame(
    {"stadt": ["Zürich", "Genève", None], "größe": [1.5, -2.25, 1234.5], "code": ["007", "12", "A"], "n": [1, 2, 3]}
)


def saved(tmp_path, name, **options):
    path = tmp_path / name
    ROWS.to_csv(path, index=False, **options)
    return path


@pytest.mark.parametrize(
    ("name", "options", "note"),
    [
        ("t.csv", {}, None),
        ("t.csv", {"sep": ";", "decimal": ","}, "read with the separator ';' and decimal commas"),
        ("t.csv", {"sep": ";"}, "read with the separator ';'"),
        ("t.csv", {"sep": "\t"}, "read with the separator tab"),
        ("t.csv", {"sep": "|"}, "read with the separator '|'"),
        ("t.tsv", {"sep": "\t"}, None),
        ("t.tsv", {"sep": "\t", "decimal": ","}, "read with decimal commas"),
        ("t.tsv", {}, "read with the separator ','"),
        ("t.txt", {}, None),
        ("t.csv", {"encoding": "utf-8-sig"}, None),
        ("t.csv", {"encoding": "utf-16"}, "read as UTF-16"),
        ("t.csv", {"encoding": "cp1252"}, "the text is not UTF-8: read as Windows-1252"),
        ("t.csv.gz", {}, None),
        ("t.tsv.gz", {"sep": "\t"}, None),
        ("T.CSV", {"lineterminator": "\r\n"}, None),
    ],
)
def test_text_files(tmp_path, name, options, note):
    found = read_table(saved(tmp_path, name, **options))
    assert found.notes == (() if note is None else (note,))
    assert found.frame.columns.tolist() == ["stadt", "größe", "code", "n"]
    assert found.frame["größe"].tolist() == ["1.5", "-2.25", "1234.5"]
    assert found.frame["code"].tolist() == ["007", "12", "A"]
    assert found.frame["stadt"].tolist()[:2] == ["Zürich", "Genève"]
    assert found.frame["stadt"].isna().tolist() == [False, False, True]


def test_thousands_of_a_decimal_comma(tmp_path):
    (tmp_path / "t.csv").write_text("a;b;c\n1.234,5;x,y;3,2\n2;z;text\n3,5;w;4,1\n")
    frame = read_table(tmp_path / "t.csv").frame
    assert frame["a"].tolist() == ["1234.5", "2", "3.5"]
    assert frame["b"].tolist() == ["x,y", "z", "w"]
    assert frame["c"].tolist() == ["3.2", "text", "4.1"]


def test_options_go_first(tmp_path):
    (tmp_path / "t.csv").write_text("a;b,c\n1;2,5\n3;4,5\n")
    assert read_table(tmp_path / "t.csv", sep=",").frame.columns.tolist() == ["a;b", "c"]
    found = read_table(tmp_path / "t.csv", sep=";", decimal=",")
    assert found.frame["b,c"].tolist() == ["2.5", "4.5"]
    assert found.notes == ()
    assert read_table(tmp_path / "t.csv", sep=";", decimal=".").frame["b,c"].tolist() == ["2,5", "4,5"]
    (tmp_path / "t.csv").write_text("a\tb\n1\t2\n")
    assert read_table(tmp_path / "t.csv", sep="tab").frame.columns.tolist() == ["a", "b"]


def test_json(tmp_path):
    for orient, lines in (("records", False), ("records", True), ("columns", False), ("list", False)):
        path = tmp_path / ("t.jsonl" if lines else "t.json")
        text = str(ROWS.to_dict("list")).replace("'", '"').replace("nan", "null").replace("None", "null")
        path.write_text(text if orient == "list" else ROWS.to_json(orient=orient, lines=lines))
        frame = read_table(path).frame
        assert frame["code"].tolist() == ["007", "12", "A"]
        assert frame["größe"].tolist() == [1.5, -2.25, 1234.5]


def test_parquet_and_arrays(tmp_path):
    ROWS.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").frame["n"].tolist() == [1, 2, 3]
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=["a", "b"], feature_names=["u", "v"])
    assert read_table(tmp_path / "t.npz").frame.columns.tolist() == ["u", "v", "y"]


def test_standard_input(tmp_path, monkeypatch):
    for content in (b"a;b\n1;2\n", gzip.compress(b"a;b\n1;2\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read_table("-").frame["b"].tolist() == ["2"]
    ROWS.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "t.parquet").read_bytes())))
    assert read_table("-").frame["n"].tolist() == [1, 2, 3]


def test_what_is_unusual_is_said(tmp_path):
    (tmp_path / "t.csv").write_text("age,age,size\n1,2,3\n")
    found = read_table(tmp_path / "t.csv")
    assert found.frame.columns.tolist() == ["age", "age.1", "size"]
    assert found.notes == ("2 columns are named 'age': they are called 'age', 'age.1'",)
    (tmp_path / "t.csv").write_text("a,b\nr1,1,2\nr2,3,4\n")
    found = read_table(tmp_path / "t.csv")
    assert found.frame.to_dict("list") == {"a": ["1", "3"], "b": ["2", "4"]}
    assert "one name fewer" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "t.csv is empty"),
        ("t.csv", b"\n\n", "t.csv is empty"),
        ("t.csv", bytes(range(256)) * 3, "t.csv holds binary data, not text"),
        ("t.csv", b"\xff\xfea", "begins like UTF-16 but is not"),
        ("t.csv", b"a,b,y\n1,2,0\n1,2,3,4\n", r"line 3 has 4 cells, the lines before it have 3 \(separator ','"),
        ("t.csv.gz", b"\x1f\x8bxx", "t.csv.gz is not an intact .gz file"),
        ("t.json", b"{", "t.json is not JSON"),
        ("t.json", b"3", "expected a list of records"),
        ("t.parquet", b"PAR1xxxx", "it is not an intact Parquet file"),
        ("t.npz", b"xxxx", "t.npz is not an NPZ archive"),
        ("t.npz", b"PKxx", "t.npz is not an NPZ archive"),
        ("t.doc", b"x", "expected a file that ends in .csv, .tsv, .*got '.doc'"),
        ("table", b"x", "got 'no suffix'"),
        ("t.xlsx", b"no workbook", r"t.xlsx is not an .xlsx workbook; save it as .xlsx or CSV"),
    ],
)
def test_problems(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"X": np.array([[1, "a"]], dtype=object)},
            "t.npz holds Python objects, which are not read because",
        ),
        ({"X": np.eye(2), "y": np.zeros(3)}, r"y has the shape \(3,\) for 2 rows of X"),
        ({"X": np.eye(2), "y": np.zeros(2), "feature_names": ["x", "y"]}, "a feature is named 'y'"),
        ({"X": np.zeros(2)}, "expected a two-dimensional array named X"),
    ],
)
def test_arrays_that_are_no_table(tmp_path, arrays, message):
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.npz")


def test_more_problems(tmp_path):
    with pytest.raises(ValueError, match="is a folder; give the name of a file in it"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="there is no file"):
        read_table(tmp_path / "none.csv")
    for marks, message in (({"decimal": "!"}, "decimal must be '.' or ','"), ({"sep": ", "}, "sep must be one char")):
        with pytest.raises(ValueError, match=message):
            read_table(saved(tmp_path, "t.csv"), **marks)
    fewkern.save(fewkern.FeatureVectorSelector(max_vectors=2).fit(np.eye(4)), tmp_path / "m.npz")
    with pytest.raises(ValueError, match=r"m.npz is a model that fewkern saved, not a table"):
        read_table(tmp_path / "m.npz")


def test_half_characters_of_json(tmp_path):
    (tmp_path / "t.json").write_text('[{"a": "x\\ud800y", "b": "\\ud83d\\ude00", "c": "\\\\ud800"}]')
    frame = read_table(tmp_path / "t.json").frame
    assert frame.iloc[0].tolist() == ["x\ufffdy", "\U0001f600", "\\ud800"]


def test_titles_above_the_header(tmp_path):
    table = "town,units,price\n" + "".join(f"Bern,{k},{k / 2}\n" for k in range(20))
    for title, lines in (
        ("Sales report Q3 2024\n", 1),
        ("Sales report; Q3; 2024\n2024-10-01\n\n", 3),
        ("Sales report,,\n,,\n", 2),
        ('"Sales, all towns"\n\n', 2),
    ):
        (tmp_path / "t.csv").write_text(title + table)
        found = read_table(tmp_path / "t.csv")
        assert found.frame.columns.tolist() == ["town", "units", "price"]
        assert len(found.frame) == 20
        assert f"the header is in line {lines + 1} (skip 0, --skip 0, reads from line 1)" in found.notes[-1]
        assert read_table(tmp_path / "t.csv", skip=lines).notes == ()
    (tmp_path / "t.csv").write_text("Calibration, bench 3\n\n" + "p;t;f\n" + "1,5;2,5;3,5\n" * 20)
    assert read_table(tmp_path / "t.csv").frame.columns.tolist() == ["p", "t", "f"]
    (tmp_path / "t.csv").write_text("Sales report,,\n,,\n" + table)
    assert read_table(tmp_path / "t.csv", skip=0).frame.columns.tolist()[0] == "Sales report"
    with pytest.raises(ValueError, match=r"t.csv: nothing is left below the 99 lines to skip"):
        read_table(tmp_path / "t.csv", skip=99)


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,3\n4,5,6\n",
        "\n\na,b,c\n1,2,3\n4,5,6\n",
        "a,,\n1,2,3\n4,5,6\n",  # a header with two names missing, not a title
        "x\n1\n2\n",
        "title,\na,b\n1,2\n3,4\n",  # two columns: nobody can tell
    ],
)
def test_what_is_no_title(tmp_path, text):
    (tmp_path / "t.csv").write_text(text)
    assert not any("not part of the table" in note for note in read_table(tmp_path / "t.csv").notes)


def test_the_code_of_namibia(tmp_path):
    (tmp_path / "t.csv").write_text("country,sex,size\nNA,M,1\nDE,F,NA\nFR,NA,2\n")
    found = read_table(tmp_path / "t.csv")
    assert found.frame["country"].tolist() == ["NA", "DE", "FR"]
    assert found.frame["sex"].isna().tolist() == [False, False, True]
    assert found.frame["size"].isna().tolist() == [False, True, False]
    assert found.notes == ("column 'country': 'NA' is taken as a code, as the other cells are",)
    (tmp_path / "t.csv").write_text("country,size\nNA,1\n")  # a single row to predict
    assert read_table(tmp_path / "t.csv").frame["country"].tolist() == ["NA"]
    (tmp_path / "t.csv").write_text("a,b\n")  # none
    assert read_table(tmp_path / "t.csv").frame.shape == (0, 2)


def workbook(path, **sheets):
    """An Excel workbook with these sheets."""
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    book.save(path)


def test_workbooks(tmp_path):
    path = tmp_path / "t.xlsx"
    rows = [["Sales", None, None, None], [None] * 4, ["town", "when", "units", "units"]]
    rows += [["Bern", datetime.datetime(2024, 1, k + 1), k, k / 2] for k in range(9)] + [[None] * 4]
    workbook(path, Cover=[["Report"], ["of 2024"]], Empty=[], Data=rows, More=[["x", "y"], [1, 2]])
    found = read_table(path)
    assert found.frame.columns.tolist() == ["town", "when", "units", "units.1"]
    assert found.frame["units"].tolist() == list(range(9))
    assert found.frame["when"].dtype.kind == "M"
    assert found.notes == (
        "the workbook has 3 sheets: 'Data' was read; save another one as CSV to use it",
        note_on_title("Sales", 2),
        "2 columns are named 'units': they are called 'units', 'units.1'",
    )
    assert read_table(path, skip=2).frame.columns.tolist() == ["town", "when", "units", "units.1"]
    workbook(path, Empty=[[None]])
    with pytest.raises(ValueError, match=r"t.xlsx is empty"):
        read_table(path)


def test_workbooks_that_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04")
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    with pytest.raises(ValueError, match=r"t.xlsx is not an intact .xlsx workbook; save it again, or as CSV"):
        read_table(tmp_path / "t.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    message = r"t.xlsx is an Excel workbook \(CSV works as well\), which needs openpyxl: pip install openpyxl"
    with pytest.raises(ImportError, match=message):
        read_table(tmp_path / "t.xlsx")


def test_a_series_of_polars_is_a_table_of_one_column():
    pl = pytest.importorskip("polars")
    with pytest.raises(ValueError, match="the table has no column besides the target"):
        fewkern.TableModel().fit(pl.Series("v", np.arange(50.0)))


def test_a_cell_that_cannot_be_read_is_named():
    class Broken:
        def __str__(self):
            raise RuntimeError

    frame = pd.DataFrame({"size": np.arange(20.0), "odd": [Broken()] * 20, "y": ["a", "b"] * 10})
    with pytest.raises(ValueError, match=r"column 'odd' has a cell in row 1 that cannot be read \(Broken: Runtime"):
        fewkern.TableModel().fit(frame, "y")
