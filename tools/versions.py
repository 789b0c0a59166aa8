"""``python -m tools.versions``: a fast slice of the tests on the oldest declared and on the newest packages.

The oldest packages are the lower bounds of pyproject.toml, on the oldest Python; the newest are what pip finds, on
every Python from 3.11 on that is on the PATH or among pyenv's. Each pair has a virtual environment of its own, in a
temporary folder or in ``--folder``, where it is found again. Warnings are errors, deprecations included.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What meets other packages: arrays, linear algebra, scikit-learn's checks, files, tables, one fit of every estimator.
SLICE = (
    "tests/core",
    "tests/arrays",
    "tests/checks/test_estimators.py",
    "tests/io",
    "tests/tables",
    "tests/test_package.py",
)
# Python 3.<minor>; "t" is the build without the interpreter lock.
PYTHONS = [f"python3.{minor}{build}" for minor in range(11, 20) for build in ("", "t")]


@dataclass(frozen=True)
class Environment:
    """One Python and one choice of packages."""

    python: str
    packages: str
    """"oldest" or "newest"."""

    @property
    def name(self) -> str:
        return f"{Path(self.python).name}-{self.packages}"


def lower_bounds(project: dict[str, list[str]]) -> dict[str, str]:
    """The oldest version of every package that lists of requirements name, the newest where they differ.

    Examples
    --------
    >>> from tools.versions import lower_bounds
    >>> lower_bounds({"core": ["numpy>=1.26"], "test": ["fewkern[cli]", "pytest>=8", "furo"]})
    {'numpy': '1.26', 'pytest': '8'}
    """
    found: dict[str, str] = {}
    for requirement in (text for texts in project.values() for text in texts):
        parsed = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
        if parsed is not None:
            name, version = parsed.groups()
            found[name] = max(found.get(name, version), version, key=_numbers)
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def declared() -> dict[str, list[str]]:
    """The requirements of the package and of its tests, as pyproject.toml lists them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = ("cli", "experiments", "export", "test")
    return {"core": project["dependencies"]} | {key: project["optional-dependencies"][key] for key in wanted}


def pythons() -> list[str]:
    """Every Python that can be started, the oldest first."""
    folders = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep)]
    folders += sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"))
    found = []
    for name in PYTHONS:
        paths = [str(folder / name) for folder in folders if (folder / name).exists()]
        # a shim of pyenv for a version that is not active fails
        found += next(([path] for path in paths if _run([path, "-c", "pass"], quiet=True) == 0), [])
    return found


def _run(command: list[str], quiet: bool = False) -> int:
    stream = subprocess.DEVNULL if quiet else None
    return subprocess.run(command, cwd=ROOT, stdout=stream, stderr=stream, check=False).returncode


def try_environment(environment: Environment, folder: Path, tests: list[str]) -> str:
    """Install and test; "passed", or which of the two failed."""
    venv = folder / environment.name
    python = str(venv / "bin" / "python")
    installed = venv / "installed"
    if not installed.exists():
        constraints = folder / f"{environment.packages}.txt"
        bounds = lower_bounds(declared()) if environment.packages == "oldest" else {}
        constraints.write_text("".join(f"{name}=={version}\n" for name, version in bounds.items()), encoding="utf-8")
        install = [python, "-m", "pip", "install", "-q", "-e", ".[test]", "-c", str(constraints)]
        if _run([environment.python, "-m", "venv", "--clear", str(venv)]) or _run(install):
            return "not installed"
        installed.touch()
    return "failed" if _run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]) else "passed"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.versions", description=__doc__)
    parser.add_argument("--folder", type=Path, help="where the environments are kept (default: nowhere)")
    parser.add_argument("--only", default="", help="environments whose name contains this, such as 3.12 or oldest")
    parser.add_argument("tests", nargs=argparse.REMAINDER, help="what to give to pytest in place of the slice")
    options = parser.parse_args(arguments)
    present = pythons()
    print("found:", ", ".join(Path(p).name for p in present))
    environments = [Environment(present[0], "oldest"), *(Environment(p, "newest") for p in present)]
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        for environment in environments:
            if options.only in environment.name:
                results[environment.name] = try_environment(environment, folder, options.tests or list(SLICE))
    for name, result in results.items():
        print(f"{name:24} {result}")
    return int(any(result != "passed" for result in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
