"""A small part of ``python -m tests.fuzz``, and proof that it can find something."""

from importlib import import_module

import pytest

from fewkern.io import ModelFileError
from tests.fuzz.lies import closed, opened
from tests.fuzz.models import load_bytes, subjects
from tests.fuzz.mutate import MUTATIONS
from tests.fuzz.run import many


def test_damaged_files_are_refused_or_predict(tmp_path):
    counts, wrong = many(range(300), 0, tmp_path)
    assert not wrong
    assert {name.partition(": ")[2] for name in counts} == {"refused", "predicted"}


def test_every_mutation_changes_files(rng):
    content = subjects()[0].content
    for name, mutation in MUTATIONS.items():
        assert any(mutation(content, rng) != content for _ in range(5)), name


def test_without_the_checks_the_fuzzer_finds_models_that_do_not_predict(tmp_path, monkeypatch):
    monkeypatch.setattr(import_module("fewkern.io.save"), "check_object", lambda made, stored, budget: None)
    _, wrong = many(range(200), 0, tmp_path)
    assert any(": use: " in line for line in wrong)


def test_a_process_is_not_crashed_by_sparse_indices(tmp_path):
    """SciPy's compiled code trusts them; here they never get that far."""
    subject = next(s for s in subjects() if s.name == "sparse-linear")
    header, arrays = opened(subject.content)
    parts = {name: node["array"] for name, node in header["model"]["state"]["vectors_"]["sparse"].items()}
    for name, value in (("indices", 2**30), ("indices", -5), ("indptr", 2**30)):
        changed = {**arrays, parts[name]: arrays[parts[name]].copy()}
        changed[parts[name]][-1] = value
        with pytest.raises(ModelFileError, match=r"indices must be|index pointer"):
            load_bytes(closed(header, changed), tmp_path)
