"""The runner of the papers' tables: plan, store, resume, page."""

import json

import numpy as np
import pytest

import experiments.__main__
from experiments import page, plan, run, store, systems
from experiments.__main__ import main
from experiments.data import DataNotFoundError, download
from experiments.verdict import entries

TOML = """
paper = "toy"
name = "table1"
title = "Toy Table 1"
function = "tests.experiments.test_runner.figures"
runs = 4
quick = 2

[settings]
offset = 10

[[rows]]
label = "first"
protocol = "paper"
settings = { slope = 2 }
published = { error = 13.0, error_sd = 2.0 }

[[rows]]
label = "second"
protocol = "honest"
needs = ["ida/there-is-no-such-set"]
settings = { slope = 3 }
"""
calls = []


def figures(settings, run):
    calls.append(run)
    return {"error": settings["offset"] + settings["slope"] * run, "note": "not a figure"}


@pytest.fixture
def toy(tmp_path, monkeypatch):
    (tmp_path / "toy.toml").write_text(TOML)
    monkeypatch.setattr(plan, "TABLES", tmp_path)
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "DOCS", tmp_path)
    calls.clear()
    return plan.experiments()[0]


@pytest.fixture
def done(toy):
    """The store of the experiment, which has run."""
    run.run_experiment(toy, quick=False, jobs=1)
    return store.stored("toy", "table1")


def change(tmp_path, *replaced):
    """The experiment with another plan."""
    (tmp_path / "toy.toml").write_text(TOML.replace(*replaced))
    return plan.experiments()[0]


def test_a_row_without_its_data_is_left_out_until_they_are_here(toy, tmp_path, monkeypatch):
    assert toy.missing() == ["ida/there-is-no-such-set"]
    assert [unit.row.label for unit in toy.units(quick=False)] == ["first"] * 4
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path / "cache")
    (tmp_path / "cache" / "ida").mkdir(parents=True)
    (tmp_path / "cache" / "ida" / "there-is-no-such-set.npz").touch()
    assert toy.missing() == []
    assert {unit.row.label for unit in toy.units(quick=True)} == {row.label for row in toy.rows}


def test_quick_then_full_runs_nothing_twice(toy):
    assert run.run_experiment(toy, quick=True, jobs=1) == (2, 0)
    assert run.run_experiment(toy, quick=False, jobs=1) == (2, 2)
    assert calls == [0, 1, 2, 3]
    assert run.run_experiment(toy, quick=False, jobs=1) == (0, 4)


def test_a_killed_run_goes_on_where_it_stopped(toy, done):
    records = done.read()
    done.packed.unlink()
    # killed while writing the third record
    done.append(records[:2])
    with done.journal.open("a") as file:
        file.write(json.dumps(records[2])[:25])
    assert len(done.read()) == 2
    assert run.run_experiment(toy, quick=False, jobs=1) == (2, 2)
    assert sorted(record["run"] for record in done.read()) == [0, 1, 2, 3]


def test_a_finished_run_is_packed_in_the_same_bytes(done):
    assert [path.name for path in done.packed.parent.iterdir()] == ["toy-table1.jsonl.xz"]
    before, records, checksum = done.packed.read_bytes(), done.read(), done.checksum()
    done.packed.unlink()
    done.append(reversed(records))
    assert done.checksum() == checksum
    done.pack()
    assert done.packed.read_bytes() == before


def test_the_last_result_of_a_unit_counts_and_forgotten_ones_are_gone(toy, done):
    checksum = done.checksum()
    done.append([{**done.read()[0], "key": "another", "values": {"error": 20.0}}])
    assert done.checksum() != checksum
    assert entries(toy)[0].runs == 4
    assert entries(toy)[0].mean == pytest.approx((20 + 12 + 14 + 16) / 4)
    done.forget([("first", "paper", 0), ("first", "paper", 3)])
    assert [record["run"] for record in done.read()] == [1, 2]


def test_a_crash_while_packing_loses_nothing(toy, monkeypatch):
    def crash(path, write):
        raise OSError("no space left")

    monkeypatch.setattr(store, "write_atomically", crash)
    with pytest.raises(OSError, match="no space left"):
        run.run_experiment(toy, quick=False, jobs=1)
    results = store.stored("toy", "table1")
    assert not results.packed.exists()
    assert len(results.read()) == 4


def test_two_runs_of_one_experiment_at_a_time_are_refused(toy, capsys):
    pytest.importorskip("fcntl", reason="files are not locked here")
    results = store.stored("toy", "table1")
    results.journal.parent.mkdir()
    with results._locked():
        assert main(["toy", "table1", "--jobs", "1"]) == 2
    assert "another process writes to toy-table1.jsonl; wait for it, or stop it" in capsys.readouterr().err


def test_other_settings_make_other_units(done, tmp_path):
    changed = change(tmp_path, "slope = 2", "slope = 5")
    assert run.run_experiment(changed, quick=False, jobs=1) == (4, 0)
    assert entries(changed)[0].mean == pytest.approx(10 + 5 * 1.5)


def test_other_data_make_other_units_and_fresh_runs_all_again(toy, tmp_path, monkeypatch):
    changed = change(tmp_path, "ida/there-is-no-such-set", "uci/sonar")
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    (tmp_path / "uci").mkdir()
    zeros = np.zeros((2, 60))
    for save, X, ran in (
        (np.savez, zeros, 8),
        (np.savez_compressed, zeros.astype(np.int8), 0),  # the same, stored otherwise
        (np.savez, zeros + 1, 4),
    ):
        save(tmp_path / "uci" / "sonar.npz", X=X, y=np.array([1, -1]))
        plan.data_checksum.cache_clear()
        assert run.run_experiment(changed, quick=False, jobs=1)[0] == ran
    plan.data_checksum.cache_clear()
    assert run.run_experiment(toy, quick=True, jobs=1, fresh=True) == (2, 0)


def test_bad_options(toy, capsys):
    for arguments, message in (
        (["toy", "--jobs", "0"], "expected a whole number of at least 1, got '0'"),
        (["--quick"], "name a paper, or all, to run"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
    assert main(["toy", "table9"]) == 2
    assert "there is no toy table9; known are toy table1" in capsys.readouterr().err
    pytest.importorskip("distributed", reason="the message is about Dask")
    assert main(["toy", "--dask", "nonsense"]) == 2
    assert "--dask expects the address host:port of a Dask scheduler, got 'nonsense'" in capsys.readouterr().err


def test_commands(toy, capsys):
    assert main(["toy", "table1", "--quick", "--jobs", "1"]) == 0
    assert "left out for want of data" in capsys.readouterr().out
    assert main([]) == 0
    assert "2/8            MISSING ida/there-is-no-such-set" in capsys.readouterr().out


def test_another_version_of_a_system_makes_other_units_and_the_page_says_what_is_old(toy, tmp_path, monkeypatch):
    experiment = change(tmp_path, "runs = 4", 'systems = ["recursive svm"]\nruns = 4')
    assert run.run_experiment(experiment, quick=False, jobs=1) == (4, 0)
    assert not any(e.old for e in entries(experiment))
    monkeypatch.setitem(systems.VERSIONS, "recursive svm", systems.VERSIONS["recursive svm"] + 1)
    assert all(e.old for e in entries(experiment))
    page.write_pages()
    text = (tmp_path / "results" / "toy.html").read_text()
    assert "13 ± 2.6†" in text
    assert "<code>python -m experiments toy table1</code> runs it again" in text
    assert run.run_experiment(experiment, quick=False, jobs=1) == (4, 0)
    assert not any(e.old for e in entries(experiment))


def test_results_computed_from_other_results_are_old_when_those_change(toy, tmp_path):
    (tmp_path / "second.toml").write_text(
        TOML.replace('"table1"', '"table2"').replace("runs = 4", 'sources = ["toy table1"]\nruns = 4')
    )
    second, first = plan.experiments()
    for experiment in (first, second):
        run.run_experiment(experiment, quick=False, jobs=1)
    assert not any(e.old for e in entries(second))
    results = store.stored("toy", "table1")
    results.append([{**results.read()[0], "values": {"error": 0.0}}])
    assert all(e.old for e in entries(second))


def test_a_plan_that_names_an_unknown_system_is_refused(toy, tmp_path):
    with pytest.raises(ValueError, match=r"toy.toml: systems \['perpetuum mobile'\] are not in experiments.systems"):
        change(tmp_path, "runs = 4", 'systems = ["perpetuum mobile"]\nruns = 4')


def test_missing_sets_are_downloaded_when_asked_for(toy, tmp_path, monkeypatch, capsys):
    change(tmp_path, "ida/there-is-no-such-set", "uci/sonar")
    monkeypatch.delenv("FEWKERN_DATA", raising=False)
    asked = []

    def read(need):
        asked.append(need)
        raise DataNotFoundError("sonar cannot be had")

    monkeypatch.setattr(experiments.__main__, "fetch_set", read)
    assert main(["toy", "table1", "--quick", "--jobs", "1", "--download"]) == 0
    said = capsys.readouterr()
    assert asked == ["uci/sonar"]
    assert "sonar cannot be had" in said.err
    assert "left out for want of data: uci/sonar" in said.out


def test_units_run_on_a_dask_cluster(toy, capsys):
    distributed = pytest.importorskip("distributed", reason="the units of this test run on a Dask cluster")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as local:
        assert main(["toy", "table1", "--dask", local.scheduler_address]) == 0
    assert "4 units run" in capsys.readouterr().out
    assert sorted(record["values"]["error"] for record in store.stored("toy", "table1").read()) == [10, 12, 14, 16]


def test_every_plan_can_be_read_and_its_function_exists():
    found = plan.experiments()
    assert found
    for experiment in found:
        assert callable(experiment.load())
        for unit in experiment.units(quick=True):
            assert len(unit.key) == 16


def test_a_figure_is_drawn_from_its_curves(toy, tmp_path, monkeypatch):
    curves = TOML.replace('title = "Toy Table 1"', 'title = "Toy Fig. 1"\nkind = "figure"\naxes = { x = "x", y = "y" }')
    (tmp_path / "toy.toml").write_text(curves)
    monkeypatch.setattr("tests.experiments.test_runner.figures", lambda settings, run: {"x": [0, 1], "y": [run, 1]})
    run.run_experiment(plan.experiments()[0], quick=True, jobs=1)
    page.write_pages()
    assert 'alt="Toy Fig. 1" src="data:image/png;base64,' in (tmp_path / "results" / "toy.html").read_text()
