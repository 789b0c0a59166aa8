"""What a release is made of says the same everywhere."""

import json
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import fewkern
from tools import release, versions

ROOT = Path(release.__file__).parents[1]


def wheel(folder, requirements):
    """A file with the metadata of a wheel."""
    path = folder / "toy-1.0-py3-none-any.whl"
    lines = ["Metadata-Version: 2.4", "Name: toy", "Version: 1.0", "License-Expression: MIT"]
    lines += [f"Requires-Dist: {text}" for text in requirements]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy-1.0.dist-info/METADATA", "\n".join(lines) + "\n\nWhat it is.\n")
    return path


def test_a_bill_of_materials_names_what_is_required_and_what_that_requires(tmp_path):
    bill = release.bill_of_materials(wheel(tmp_path, ["scikit-learn>=1.6", "nosuchpackage>=1", "rich; extra == 'cli'"]))
    json.dumps(bill)
    found = {entry["name"]: entry for entry in bill["components"]}
    assert {"scikit-learn", "numpy", "scipy", "joblib"} <= set(found)
    assert not {"rich", "nosuchpackage", "toy"} & set(found)
    assert found["numpy"]["purl"] == f"pkg:pypi/numpy@{found['numpy']['version']}"
    own = bill["metadata"]["component"]
    assert own["hashes"][0]["content"] == release.digest(tmp_path / "toy-1.0-py3-none-any.whl")
    depends = {entry["ref"]: entry["dependsOn"] for entry in bill["dependencies"]}
    assert depends["fewkern"] == ["scikit-learn"]
    assert "numpy" in depends["scikit-learn"]
    assert {name for names in depends.values() for name in names} <= set(found)


def test_archives_that_differ_are_refused(tmp_path, monkeypatch, capsys):
    count = iter(range(10))

    def build(folder):
        path = wheel(folder, [f"numpy>={next(count)}"])
        return [path]

    monkeypatch.setattr(release, "build", build)
    assert release.main(["--out", str(tmp_path)]) == 1
    assert "are not the same" in capsys.readouterr().out
    monkeypatch.setattr(release, "build", lambda folder: [wheel(folder, ["numpy>=1"])])
    monkeypatch.setattr(zipfile.time, "localtime", lambda *_: (2026, 1, 1, 0, 0, 0, 0, 0, 0))
    assert release.main(["--out", str(tmp_path)]) == 0
    assert (tmp_path / "toy-1.0-py3-none-any.cdx.json").exists()


def test_lower_bounds_of_the_project_are_found():
    bounds = versions.lower_bounds(versions.declared())
    assert {"numpy", "scipy", "scikit-learn", "pytest", "onnx"} <= set(bounds)
    assert versions.lower_bounds({"a": ["x>=1.9"], "b": ["x>=1.10"]}) == {"x": "1.10"}


def test_an_environment_that_cannot_be_installed_is_not_taken_for_one(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(versions, "_run", lambda command, quiet=False: ran.append(command) or int("install" in command))
    old = versions.Environment("python3.11", "oldest")
    assert versions.try_environment(old, tmp_path, ["tests/core"]) == "not installed"
    assert "numpy==" in (tmp_path / "oldest.txt").read_text(encoding="utf-8")
    assert not any("pytest" in command for command in ran)


@pytest.mark.parametrize("tool", ["ruff", "mypy", "import-linter", "scipy-stubs", "build", "hatchling"])
def test_tools_are_pinned(tool):
    lines = release.CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.fullmatch(rf"{tool}==[\d.]+", line)]


def test_the_version_is_the_same_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fewkern.__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {fewkern.__version__}" in changelog
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nlicense: {project['license']}\n" in citation


def test_a_forge_runs_what_we_run():
    assert "run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
