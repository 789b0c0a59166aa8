"""Size of models as C: bytes of constants, and of compiled code for this machine."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from fewkern import ForwardDensity, KernelClassifier, KernelRegressor, to_c
from fewkern.datasets import make_banana, make_gaussian_laplacian


def models() -> dict[str, object]:
    """Models with nothing set, on data that needs no download."""
    return {
        "crescents, 2,000 samples": KernelClassifier().fit(*make_banana(2000, random_state=0)),
        "iris": KernelClassifier().fit(*load_iris(return_X_y=True)),
        "breast cancer": KernelClassifier().fit(*load_breast_cancer(return_X_y=True)),
        "diabetes": KernelRegressor().fit(*load_diabetes(return_X_y=True)),
        "normal and Laplace, 500 samples": ForwardDensity().fit(make_gaussian_laplacian(500, random_state=3)),
    }


def compiled(code: str, compiler: str) -> tuple[int, int]:
    """Bytes of machine code and of constants in the object file, optimized for size."""
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "model.c"), Path(folder, "model.o")
        source.write_text(code)
        subprocess.run([compiler, "-Os", "-std=c99", "-c", str(source), "-o", str(binary)], check=True)
        sections = subprocess.run(["size", "-A", str(binary)], check=True, capture_output=True, text=True).stdout
    sizes = {line.split()[0]: int(line.split()[1]) for line in sections.splitlines() if line.startswith(".")}
    code_bytes = sum(n for name, n in sizes.items() if name.startswith(".text"))
    return code_bytes, sum(n for name, n in sizes.items() if name.startswith((".rodata", ".data")))


def main(arguments: list[str]) -> None:
    argparse.ArgumentParser(prog="python -m benchmarks export", description=__doc__).parse_args(arguments)
    compiler = shutil.which("cc")
    if compiler is None:
        raise SystemExit("export: needs a C compiler, cc, on the path.")
    print("| data | model | vectors | features | constants, bytes | code, bytes | together |")
    print("|---|---|---|---|---|---|---|")
    for data, model in models().items():
        code, constants = compiled(to_c(model, name="model", dtype="float"), compiler)
        features = model.vectors_.shape[1]
        print(
            f"| {data} | {type(model).__name__} | {model.n_vectors_} | {features} | {constants} | {code} | "
            f"{code + constants} |",
            flush=True,
        )
