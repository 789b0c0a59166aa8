"""The runner of the papers' tables: plan, store, resume, page."""

import json

import numpy as np
import pytest

import experiments.__main__
from experiments import page, plan, run, store
from experiments.__main__ import main
from experiments.data import DataNotFoundError, download

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


def test_a_row_without_its_data_is_left_out_and_named(toy):
    assert toy.missing() == ["ida/there-is-no-such-set"]
    assert [unit.row.label for unit in toy.units(quick=False)] == ["first"] * 4


def test_a_set_that_was_downloaded_is_here(toy, tmp_path, monkeypatch):
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


def test_a_killed_run_goes_on_where_it_stopped(toy):
    results = store.Store("toy", "table1")
    run.run_experiment(toy, quick=False, jobs=1)
    records = results.read()
    results.packed.unlink()
    # killed while writing the third record
    results.append(records[:2])
    with results.journal.open("a") as file:
        file.write(json.dumps(records[2])[:25])
    assert len(results.read()) == 2
    assert run.run_experiment(toy, quick=False, jobs=1) == (2, 2)
    assert sorted(record["run"] for record in results.read()) == [0, 1, 2, 3]


def test_a_finished_run_is_packed(toy):
    run.run_experiment(toy, quick=False, jobs=1)
    results = store.Store("toy", "table1")
    assert [path.name for path in results.packed.parent.iterdir()] == ["toy-table1.jsonl.xz"]
    before, records = results.packed.read_bytes(), results.read()
    # packing the same records in another order gives the same bytes
    results.packed.unlink()
    results.append(reversed(records))
    results.pack()
    assert results.packed.read_bytes() == before


def test_a_crash_while_packing_loses_nothing(toy, monkeypatch):
    results = store.Store("toy", "table1")

    def crash(path, write):
        raise OSError("no space left")

    monkeypatch.setattr(store, "write_atomically", crash)
    with pytest.raises(OSError, match="no space left"):
        run.run_experiment(toy, quick=False, jobs=1)
    assert not results.packed.exists()
    assert len(results.read()) == 4
    monkeypatch.undo()


def test_the_checksum_of_results_does_not_depend_on_where_they_are(toy):
    results = store.Store("toy", "table1")
    run.run_experiment(toy, quick=False, jobs=1)
    packed, records = results.checksum(), results.read()
    results.packed.unlink()
    results.append(records)
    assert results.checksum() == packed
    results.append([{**records[0], "values": {"error": -1.0}}])
    assert results.checksum() != packed


def test_two_runs_of_one_experiment_at_a_time_are_refused(toy, capsys):
    pytest.importorskip("fcntl", reason="files are not locked here")
    results = store.Store("toy", "table1")
    results.journal.parent.mkdir()
    with results._locked():
        assert main(["toy", "table1", "--jobs", "1"]) == 2
    assert "another process writes to toy-table1.jsonl; wait for it, or stop it" in capsys.readouterr().err


def test_an_interrupted_run_keeps_what_it_has(toy, monkeypatch):
    def break_off(unit):
        if unit.run == 2:
            raise KeyboardInterrupt
        return original(unit)

    original = run._work
    monkeypatch.setattr(run, "_work", break_off)
    with pytest.raises(KeyboardInterrupt):
        run.run_experiment(toy, quick=False, jobs=1)
    assert sorted(record["run"] for record in store.Store("toy", "table1").read()) == [0, 1]


def test_other_settings_make_other_units(toy, tmp_path):
    run.run_experiment(toy, quick=False, jobs=1)
    (tmp_path / "toy.toml").write_text(TOML.replace("slope = 2", "slope = 5"))
    changed = plan.experiments()[0]
    assert run.run_experiment(changed, quick=False, jobs=1) == (4, 0)
    assert page.figures(changed)[0].mean == pytest.approx(10 + 5 * 1.5)


def test_other_data_make_other_units_and_fresh_runs_all_again(toy, tmp_path, monkeypatch):
    (tmp_path / "toy.toml").write_text(TOML.replace("ida/there-is-no-such-set", "uci/sonar"))
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    (tmp_path / "uci").mkdir()
    for X, ran in ((np.zeros((2, 60)), 8), (np.zeros((2, 60)), 0), (np.ones((2, 60)), 4)):
        np.savez(tmp_path / "uci" / "sonar.npz", X=X, y=np.array([1, -1]))
        plan.data_checksum.cache_clear()
        assert run.run_experiment(plan.experiments()[0], quick=False, jobs=1)[0] == ran
    plan.data_checksum.cache_clear()
    assert run.run_experiment(toy, quick=True, jobs=1, fresh=True) == (2, 0)


def test_the_same_data_stored_otherwise_are_the_same(tmp_path, monkeypatch):
    found = set()
    monkeypatch.setenv("FEWKERN_DATA", str(tmp_path))
    (tmp_path / "uci").mkdir()
    X = np.arange(6.0).reshape(2, 3)
    for save, array in ((np.savez, X), (np.savez_compressed, X.astype(np.int8))):
        save(tmp_path / "uci" / "sonar.npz", X=array, y=np.array([1, -1]))
        plan.data_checksum.cache_clear()
        found.add(plan.data_checksum("uci/sonar"))
    plan.data_checksum.cache_clear()
    assert len(found) == 1


def test_bad_options(toy, capsys):
    for arguments, message in (
        (["toy", "--jobs", "0"], "expected a whole number of at least 1, got '0'"),
        (["--quick"], "name a paper, or all, to run"),
    ):
        with pytest.raises(SystemExit):
            main(arguments)
        assert message in capsys.readouterr().err
    pytest.importorskip("distributed", reason="the message is about Dask")
    assert main(["toy", "--dask", "nonsense"]) == 2
    assert "--dask expects the address host:port of a Dask scheduler, got 'nonsense'" in capsys.readouterr().err


def test_the_list_counts_runs_whose_data_are_elsewhere(toy, capsys):
    run.run_experiment(toy, quick=False, jobs=1)
    assert main([]) == 0
    assert "4/8      MISSING ida/there-is-no-such-set" in capsys.readouterr().out


def test_records_say_what_they_were_made_with(toy):
    run.run_experiment(toy, quick=True, jobs=1)
    record = store.Store("toy", "table1").read()[0]
    assert record["settings"] == {"offset": 10, "slope": 2}
    assert {"fewkern", "data", "seconds", "run", "protocol"} <= set(record)


def test_page_compares_with_the_published_figure(toy):
    run.run_experiment(toy, quick=False, jobs=1)
    figure = page.figures(toy)[0]
    assert (figure.mean, figure.published, figure.runs) == (13.0, 13.0, 4)
    assert figure.verdict == "reproduced within one standard deviation"
    markdown, html = page.write_pages()
    assert "| first | paper | error | 13 ± 2 | 13 ± 2.6 | 4 | +0 | reproduced" in markdown.read_text()
    assert "http" not in html.read_text()


def test_page_counts_the_last_result_of_a_run_and_gives_the_reason_of_the_figure(toy, tmp_path):
    published = "{ error = 13.0, error_sd = 2.0 }"
    reason = 'why = { other = "no", error = "yes" }'
    (tmp_path / "toy.toml").write_text(TOML.replace(published, "{ error = 99.0 }\n" + reason))
    changed = plan.experiments()[0]
    run.run_experiment(changed, quick=False, jobs=1)
    results = store.Store("toy", "table1")
    again = {**results.read()[0], "key": "another", "values": {"error": 20.0}}
    results.append([again])
    figure = page.figures(changed)[0]
    assert figure.runs == 4
    assert figure.mean == pytest.approx((20 + 12 + 14 + 16) / 4)
    assert figure.verdict == "not reproduced: yes"
    markdown, html = page.write_pages()
    assert "| Toy Table 1 | 1 | 0 | 1 |" in markdown.read_text()
    assert 'href="#toy-table1"' in html.read_text()


def test_equal_results_have_no_spread(toy, monkeypatch):
    original = run._work
    monkeypatch.setattr(run, "_work", lambda unit: {**original(unit), "values": {"error": 210.2445}})
    run.run_experiment(toy, quick=False, jobs=1)
    assert page.figures(toy)[0].deviation == 0


def test_commands(toy, capsys):
    assert main([]) == 0
    assert "MISSING ida/there-is-no-such-set" in capsys.readouterr().out
    assert main(["toy", "table1", "--quick", "--jobs", "1"]) == 0
    assert "left out for want of data" in capsys.readouterr().out
    assert main(["toy", "table9"]) == 2
    assert "there is no toy table9; known are toy table1" in capsys.readouterr().err


def test_missing_sets_are_downloaded_when_asked_for(toy, tmp_path, monkeypatch, capsys):
    (tmp_path / "toy.toml").write_text(TOML.replace("ida/there-is-no-such-set", "uci/sonar"))
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
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as local:
        assert main(["toy", "table1", "--dask", local.scheduler_address]) == 0
    assert "4 units run" in capsys.readouterr().out
    assert sorted(record["values"]["error"] for record in store.Store("toy", "table1").read()) == [10, 12, 14, 16]


def test_every_plan_can_be_read_and_its_function_exists():
    found = plan.experiments()
    assert found
    for experiment in found:
        assert callable(experiment.load())
        for unit in experiment.units(quick=True):
            assert len(unit.key) == 16


def test_the_protocol_of_a_kfd_row_is_the_one_it_runs():
    for experiment in plan.experiments():
        if experiment.id in ("kfd table1", "kfd table2"):
            for row in experiment.rows:
                assert (row.protocol == "paper") == (row.settings["protocol"] == "one machine"), row.label


def test_a_figure_is_drawn_from_its_curves(toy, tmp_path, monkeypatch):
    curves = TOML.replace('title = "Toy Table 1"', 'title = "Toy Fig. 1"\nkind = "figure"\naxes = { x = "x", y = "y" }')
    (tmp_path / "toy.toml").write_text(curves)
    monkeypatch.setattr("tests.experiments.test_runner.figures", lambda settings, run: {"x": [0, 1], "y": [run, 1]})
    run.run_experiment(plan.experiments()[0], quick=True, jobs=1)
    _, html = page.write_pages()
    assert 'alt="Toy Fig. 1" src="data:image/png;base64,' in html.read_text()
