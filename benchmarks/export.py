"""Size of models as C: bytes for this machine and for Cortex-M, in float and in 16 bits; what learning on a device
takes, and how far it is from partial_fit after 100,000 updates."""

from __future__ import annotations

import argparse
import ctypes
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from fewkern import ForwardDensity, KernelClassifier, KernelRegressor, to_c
from fewkern.datasets import make_banana, make_gaussian_laplacian

_CORTEX = {
    "Cortex-M0": ["-mcpu=cortex-m0", "-mthumb"],
    "Cortex-M4F": ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"],
}
_SIZE = ["-Os", "-std=c99", "-ffunction-sections", "-fdata-sections"]
_LINK = ["--specs=nano.specs", "--specs=nosys.specs", "-Wl,--gc-sections"]
_UPDATES = 100_000


def models() -> dict[str, Any]:
    """Models with nothing set, on data that needs no download."""
    return {
        "crescents, 2,000 samples": KernelClassifier().fit(*make_banana(2000, random_state=0)),
        "iris": KernelClassifier().fit(*load_iris(return_X_y=True)),
        "breast cancer": KernelClassifier().fit(*load_breast_cancer(return_X_y=True)),
        "diabetes": KernelRegressor().fit(*load_diabetes(return_X_y=True)),
        "normal and Laplace, 500 samples": ForwardDensity().fit(make_gaussian_laplacian(500, random_state=3)),
    }


def sections(binary: Path, tool: str = "size") -> tuple[int, int, int]:
    """Bytes of machine code, of constants, and of memory that changes."""
    out = subprocess.run([tool, "-A", str(binary)], check=True, capture_output=True, text=True).stdout
    sizes = {line.split()[0]: int(line.split()[1]) for line in out.splitlines() if line.startswith(".")}
    kinds = ((".text",), (".rodata", ".data.rel.ro"), (".data", ".bss"))
    code, constants, memory = (sum(n for name, n in sizes.items() if name.startswith(kind)) for kind in kinds)
    rest = sum(n for name, n in sizes.items() if name.startswith(".data.rel.ro"))
    return code, constants, memory - rest


def compiled(text: str, command: list[str], tool: str = "size") -> tuple[int, int, int]:
    """Sections of an object file, optimized for size."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "model.c"), Path(folder, "model.o")
        source.write_text(text)
        subprocess.run([*command, *_SIZE, "-c", str(source), "-o", str(binary)], check=True)
        return sections(binary, tool)


def program(text: str, command: list[str], main: str) -> int:
    """Bytes that a prediction adds to an empty program, with what it needs of the libraries, in flash."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.c").write_text(text)
        out = []
        for body in ("", main):
            Path(folder, "main.c").write_text(f'#include "model.c"\nint main(void) {{ {body} return 0; }}\n')
            line = [*command, *_SIZE, *_LINK, "main.c", "-lm", "-o", "main.elf"]
            subprocess.run(line, cwd=folder, check=True, capture_output=True)
            found = subprocess.run(["arm-none-eabi-size", "main.elf"], cwd=folder, check=True, capture_output=True)
            numbers = found.stdout.decode().splitlines()[1].split()
            out.append(int(numbers[0]) + int(numbers[1]))
        return out[1] - out[0]


def calls(model: Any, dtype: str) -> str:
    """Statements of a program that predicts."""
    given, out = ("int16_t", "int32_t") if dtype == "int16" else ("float", "float")
    x = f"static volatile {given} s[64]; {given} x[64]; for (int i = 0; i < 64; i++) x[i] = s[i];"
    if hasattr(model, "classes_"):
        return f"{x} return model_predict(x);"
    return f"{x} {out} y[1]; model_predict(x, y); return (int)y[0];"


def desktop(found: dict[str, Any], compiler: str) -> None:
    print("\n| data | model | vectors | features | constants, bytes | code, bytes | together |")
    print("|---|---|---|---|---|---|---|")
    for data, model in found.items():
        code, constants, _ = compiled(to_c(model, dtype="float"), [compiler])
        shape = f"{model.n_vectors_} | {model.vectors_.shape[1]}"
        print(f"| {data} | {type(model).__name__} | {shape} | {constants} | {code} | {code + constants} |", flush=True)


def cortex(found: dict[str, Any]) -> None:
    print(f"\n| data | numbers | {' | '.join(f'{name}: file | in a program' for name in _CORTEX)} |")
    print("|---|---|---|---|---|---|")
    for data, model in found.items():
        for dtype in ("float", "int16"):
            if dtype == "int16" and not isinstance(model, (KernelClassifier, KernelRegressor)):
                continue
            text, cells = to_c(model, dtype=dtype), []
            for options in _CORTEX.values():
                command = ["arm-none-eabi-gcc", *options]
                cells.append(f"{sum(compiled(text, command, 'arm-none-eabi-size')[:2]):,}")
                needs = isinstance(model, ForwardDensity)
                cells.append("" if needs else f"{program(text, command, calls(model, dtype)):,}")
            print(f"| {data} | {dtype} | {' | '.join(cells)} |", flush=True)


def learners() -> dict[str, tuple[Any, Any]]:
    """Models that go on learning, and rows for them: a function of two columns, as numbers."""

    def rows(n: int, seed: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-2, 2, (n, 2)).astype(np.float32).astype(float)
        y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 / 2 + 0.3 * rng.standard_normal(n)
        return X, y.astype(np.float32).astype(float)

    more = rows(_UPDATES, 1)
    return {
        f"regression on 2 columns, {m} vectors": (KernelRegressor(n_vectors=m).fit(*rows(300, 0)), more)
        for m in (20, 50)
    }


def learning(compiler: str, arm: bool) -> None:
    print(f"\nLearning in float. Gap: the largest to partial_fit after {_UPDATES:,} updates, over the largest value.\n")
    print(f"| model | {' | '.join(_CORTEX)} | memory, bytes | gap |")
    print("|---|---|---|---|---|")
    for name, (model, (X, y)) in learners().items():
        text = to_c(model, dtype="float", update=True)
        sizes, memory = ["", ""], 0
        if arm:
            found = [compiled(text, ["arm-none-eabi-gcc", *one], "arm-none-eabi-size") for one in _CORTEX.values()]
            sizes, memory = [f"{code + constants:,}" for code, constants, _ in found], found[0][2]
        print(f"| {name} | {' | '.join(sizes)} | {memory:,} | {drift(model, X, y, text, compiler):.1g} |", flush=True)


def drift(model: Any, X: Any, y: Any, text: str, compiler: str) -> float:
    """Largest difference from partial_fit after all rows, over the largest value."""
    loop = "for (int i = 0; i < n; i++) model_update(X + 2 * i, y + i, 1);"
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "model.c"), Path(folder, "model.so")
        source.write_text(f"{text}\nvoid loop(const float *X, const float *y, int n) {{ {loop} }}\n")
        subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
        code = ctypes.CDLL(str(library))
        rows, targets = X.astype(np.float32), y.astype(np.float32)
        code.loop(rows.ctypes.data_as(ctypes.c_void_p), targets.ctypes.data_as(ctypes.c_void_p), len(X))
        found = np.zeros(200, np.float32)
        for i in range(200):
            code.model_predict(*(a[i : i + 1].ctypes.data_as(ctypes.c_void_p) for a in (rows, found)))
    truth = model.partial_fit(X, y).predict(X[:200])
    return float(np.abs(found - truth).max() / np.abs(truth).max())


def main(arguments: list[str]) -> None:
    argparse.ArgumentParser(prog="python -m benchmarks export", description=__doc__).parse_args(arguments)
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("export: needs a C compiler, cc, on the path.")
    warnings.simplefilter("ignore")
    found, arm = models(), shutil.which("arm-none-eabi-gcc") is not None
    desktop(found, compiler)
    if arm:
        cortex(found)
    else:
        print("\nNo figures for Cortex-M: there is no arm-none-eabi-gcc (package gcc-arm-none-eabi of Debian).")
    learning(compiler, arm)
