"""``python -m tests.mutate core.path --count 20 --seed 1``: change the source a little and see whether a test fails.

A random sample of the mutants of the named packages or modules, each in a copy of the package, against the tests and
the laws of its package and the record of results. Survivors are printed. Those that nobody could tell from the original
are listed in ``equivalent.toml`` with their reasons, and not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.mutate.mutants import Mutant, equivalent, mutants_of

ROOT = Path(__file__).parents[2]
# Each with its laws; those of the learner, of compression and of tables are among their tests.
PACKAGES = {
    "arrays": "test_fvs",
    "core": "test_fvs",
    "select": "test_fvs",
    "learn": None,
    "fisher": "test_kfd_laws",
    "margins": "test_margin_laws",
    "density": "test_density_laws",
    "compression": None,
    "tables": None,
}
# Of io, what reads and writes model files, and the tests of that; exports have compilers and runtimes to tell on them.
FILES = ("archive", "fields", "save", "steps", "trial")
FILE_TESTS = ("storable", "hostile_files", "save", "saved_pipelines", "limits")
# A mutant whose tests take this many times as long as without it does not end.
PATIENCE = 4


def sources(names: list[str]) -> dict[str, str]:
    """Sources of the modules with these names, such as "core.path", or in packages with these names."""
    files = [path for package in PACKAGES for path in sorted((ROOT / "src" / "fewkern" / package).glob("*.py"))]
    files += [ROOT / "src" / "fewkern" / "io" / f"{name}.py" for name in FILES]
    every = {f"{path.parent.name}.{path.stem}": path for path in files}
    return {
        f"fewkern.{key}": path.read_text(encoding="utf-8")
        for key, path in every.items()
        if not names or key in names or key.partition(".")[0] in names
    }


def tests_of(module: str) -> list[str]:
    """Tests that should notice a mutant of a module, those with its name first."""
    _, package, name = module.split(".")
    if package == "io":
        return [f"tests/io/test_{part}.py" for part in FILE_TESTS]
    # what arrays computes is tested where it is used first
    folders = (package, "core") if package == "arrays" else (package,)
    every = [path for folder in folders for path in sorted((ROOT / "tests" / folder).glob("test_*.py"))]
    own = sorted(every, key=lambda path: name not in path.stem)
    laws = [f"tests/laws/{PACKAGES[package]}.py"] if PACKAGES[package] else []
    return [*(str(path.relative_to(ROOT)) for path in own), *laws, "tests/golden/test_golden.py"]


def fails(folder: Path, module: str, seconds: float | None = None) -> bool:
    """Whether a test fails, or does not end, with the package in this folder."""
    command = [sys.executable, "-m", "pytest", "-qx", "-n0", "-p", "no:cacheprovider", *tests_of(module)]
    environment = os.environ | {"PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode != 0


def survives(mutant: Mutant, folder: Path, seconds: float) -> bool:
    """Whether no test notices a mutant."""
    file = folder / Path(*mutant.module.split(".")).with_suffix(".py")
    original = file.read_text(encoding="utf-8")
    file.write_text(mutant.source, encoding="utf-8")
    try:
        return not fails(folder, mutant.module, seconds)
    finally:
        file.write_text(original, encoding="utf-8")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("names", nargs="*", help="packages or modules, such as fisher or core.path; all without any")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=50, help="size of the sample")
    options = parser.parse_args(arguments)
    mutants = [m for module, source in sources(options.names).items() for m in mutants_of(module, source)]
    known = equivalent()
    sample = random.Random(options.seed).sample(mutants, min(options.count, len(mutants)))
    tried = [mutant for mutant in sample if mutant.key not in known]
    killed, limits = Counter[str](), {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "src" / "fewkern", folder / "fewkern")
        for mutant in tried:
            package = mutant.module.split(".")[1]
            if package not in limits:
                began = time.perf_counter()
                if fails(folder, mutant.module):
                    sys.exit(f"tests of {package} fail without any mutant")
                limits[package] = PATIENCE * (time.perf_counter() - began)
            if survives(mutant, folder, limits[package]):
                print(f"survived: {mutant}", flush=True)
            else:
                killed[package] += 1
    for package, limit in limits.items():
        total = sum(mutant.module.split(".")[1] == package for mutant in tried)
        print(f"{package}: {killed[package]} of {total} killed; its tests take {limit / PATIENCE:.0f} s")
    share = killed.total() / max(len(tried), 1)
    print(f"seed {options.seed}: {killed.total()} of {len(tried)} killed ({share:.1%}), of {len(mutants):,} mutants")
    if not options.names:
        for gone in sorted(known - {mutant.key for mutant in mutants}):
            print(f"no longer there, delete it from equivalent.toml: {gone}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
