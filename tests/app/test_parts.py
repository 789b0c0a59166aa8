"""Several files, folders and large files from the command line."""

import re

import numpy as np
import pandas as pd
import pytest

from fewkern.arrays import frames, partitions, sampling
from fewkern.io import load
from tests.app.running import fails, run

N = 600
QUICK = ("--model", "discriminant", "--max-vectors", "8")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    """A folder of the test, with a sample and blocks that are much smaller than the table."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sampling, "SAMPLE_ROWS", 160)
    monkeypatch.setattr(partitions, "BLOCK_ROWS", 128)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, N))
    town = rng.choice(["bern", "ulm"], N)
    return pd.DataFrame({"u": u, "v": v, "town": town, "side": np.where(u + (town == "ulm") > 0.4, "yes", "no")})


@pytest.fixture
def files(tmp_path, frame):
    for k in range(3):
        frame.iloc[k * 200 : (k + 1) * 200].to_parquet(tmp_path / f"part-{k}.parquet", index=False)
    return frame


def left_behind(tmp_path):
    return [path.name for path in tmp_path.rglob("*") if "fewkern-" in path.name and path.name.endswith(".part")]


@pytest.fixture
def model(files):
    run("fit", "part-*.parquet", "--target", "side", "--out", "a.npz", *QUICK)
    return load("a.npz")


def test_a_pattern_a_folder_and_several_files_are_one_table(tmp_path, files):
    said = run("fit", "part-*.parquet", "--target", "side", "--out", "a.npz", *QUICK)
    assert "column types were inferred from 200 of 600 rows" in said.stderr
    assert "560 of 4 features" in said.stdout
    folder = tmp_path / "data"
    folder.mkdir()
    for k in range(3):
        (tmp_path / f"part-{k}.parquet").rename(folder / f"part-{k}.parquet")
    run("fit", "data", "--target", "side", "--out", "b.npz", *QUICK)
    run("fit", *sorted(folder.iterdir()), "--target", "side", "--out", "c.npz", *QUICK)
    one, two, three = (load(name).predict_proba(files) for name in ("a.npz", "b.npz", "c.npz"))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet", "out"])
def test_predictions_go_to_a_file_or_a_folder(tmp_path, files, model, name):
    said = run("predict", "a.npz", "part-*.parquet", "-o", name, "--proba", "--with-input")
    assert f"written: {name}" in said.stderr
    wrong = int((model.predict(files) != files["side"]).sum())
    assert f"{wrong} of 600 rows are wrong" in said.stderr
    if name == "out":
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"part-0000{k}.parquet" for k in range(3)]
    reads = pd.read_csv if ".csv" in name else pd.read_parquet
    found = pd.read_csv(name, sep="\t") if name.endswith(".tsv") else reads(name)
    assert list(found.columns) == ["u", "v", "town", "side", "predicted side", "p(no)", "p(yes)"]
    np.testing.assert_allclose(found["p(yes)"], model.predict_proba(files)[:, 1], atol=1e-9)
    assert found["predicted side"].tolist() == model.predict(files).tolist()
    assert not left_behind(tmp_path)


@pytest.mark.usefixtures("model")
def test_predictions_on_standard_output_and_remarks():
    for k in range(3):
        part = pd.read_parquet(f"part-{k}.parquet").drop(columns="side")
        part.assign(town=np.where(np.arange(200) < k, "zug", part["town"])).to_parquet(f"new-{k}.parquet", index=False)
    said = run("predict", "a.npz", "new-*.parquet")
    lines = said.stdout.splitlines()
    assert lines[0] == "side"
    assert len(lines) == N + 1
    assert "new-1.parquet, row group 0: column 'town': 1 of 200 rows has a category" in said.stderr
    assert "(also in 1 other part)" in said.stderr
    assert "are wrong" not in said.stderr
    run("predict", "a.npz", "new-*.parquet", "--id", "u", "--novelty", "--out", "out.csv", "--quiet")
    assert list(pd.read_csv("out.csv").columns) == ["u", "side", "novelty", "novel"]


def test_remarks_on_columns_whose_names_differ_by_a_number_are_two():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x1": rng.normal(size=400), "x2": rng.normal(size=400)})
    frame.assign(y=frame["x1"]).to_csv("t.csv", index=False)
    run("fit", "t.csv", "--out", "m.npz", "--model", "fvs", "--max-vectors", 3, "--holdout", 0)
    for name in ("a.csv", "b.csv"):
        frame.assign(x1=None, x2=None).to_csv(name, index=False)
    said = run("predict", "m.npz", "a.csv", "b.csv", "--out", "p.csv").stderr
    for name in ("x1", "x2"):
        assert re.search(rf"a.csv, .*: column '{name}' is empty here: .* \(also in 1 other part\)", said)


def test_numbers_are_scored_over_all_parts(files):
    run("fit", "part-*.parquet", "--target", "v", "--out", "a.npz", "--max-vectors", 3)
    model = load("a.npz")
    said = run("predict", "a.npz", "part-*.parquet", "-o", "out.csv", "--interval", 0.9)
    error = files["v"] - model.predict(files)
    assert f"RMSE {np.sqrt(np.mean(error**2)):.4g}, R² {model.score(files):.3f} on 600 rows" in said.stderr
    assert list(pd.read_csv("out.csv").columns) == ["v", "low", "high"]


def test_pictures_and_reports_show_some_rows(tmp_path, files):
    run("fit", "part-*.parquet", "--target", "side", "--out", "a.npz", "--report", "r.html", *QUICK)
    page = (tmp_path / "r.html").read_text()
    assert "part-0.parquet and 2 more" in page
    assert "of 40 rows of this table" in page  # those that were held out
    run("fit", "part-*.parquet", "--target", "side", "--task", "reduce", "--out", "b.npz", "--max-vectors", 5)
    assert (tmp_path / "b.png").stat().st_size > 1000


@pytest.mark.usefixtures("model")
def test_a_pattern_that_matches_an_output():
    run("predict", "a.npz", "*.parquet", "-o", "all.parquet")
    fails("predict", "a.npz", "*.parquet", "-o", "all.parquet", match=r"write all.parquet: that is the file to read")
    fails("fit", "*.npz", "--out", "a.npz", match=r"cannot write a.npz: that is the file to read")
    parts = ("predict", "a.npz", "part-*.parquet", "-o")
    run(*parts, "out")
    fails(*parts, "out", match="cannot write out: it exists, and is not an empty folder")
    fails(*parts, "no/out", match="the folder no does not exist")
    fails("predict", "a.npz", "part-0.parquet", "-o", "one", match=r"expected a file that ends in .csv")


def stopping(after, error):
    """A function in place of the one that works on a part: it stops at the part after so many."""
    whole, calls = frames._named, []

    def named(*arguments):
        calls.append(1)
        if len(calls) > after:
            raise error
        return whole(*arguments)

    return named


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (OSError("the disk is gone"), 1)])
@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "out"])
@pytest.mark.usefixtures("model")
def test_an_interrupted_stream_leaves_everything_as_it_was(tmp_path, monkeypatch, error, code, name):
    before = (tmp_path / "a.npz").read_bytes()
    if name != "out":
        (tmp_path / name).write_text("old")
    monkeypatch.setattr(frames, "_named", stopping(2, error))
    said = run("fit", "part-*.parquet", "--target", "side", "--out", "a.npz", *QUICK, code=code)
    assert (tmp_path / "a.npz").read_bytes() == before
    assert "stopped; nothing was written" in said.stderr or "the disk is gone" in said.stderr
    monkeypatch.setattr(frames.os, "cpu_count", lambda: 1)
    monkeypatch.setattr(frames, "_named", stopping(2, error))
    run("predict", "a.npz", "part-*.parquet", "-o", name, code=code)
    if name == "out":
        assert not (tmp_path / "out").exists()
    else:
        assert (tmp_path / name).read_text() == "old"
    assert not left_behind(tmp_path)
