"""The package as a whole: modules, names, layers."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fewkern
import fewkern.datasets
import fewkern.kernels
import fewkern.margins.rules

ROOT = Path(fewkern.__file__).parent
MODULES = sorted(m.name for m in pkgutil.walk_packages([str(ROOT)], "fewkern."))
PUBLIC = [
    *[("fewkern", name) for name in fewkern.__all__ if name not in ("__version__", "kernels", "graphs")],
    *[("fewkern.kernels", name) for name in fewkern.kernels.__all__ if name != "Kernel"],
    *[("fewkern.graphs", name) for name in (*fewkern.margins.rules.__all__, "GraphPair")],
    *[("fewkern.datasets", name) for name in fewkern.datasets.__all__ if name.startswith("make_")],
]


def test_every_module_imports_and_says_what_it_is():
    for name in MODULES:
        module = importlib.import_module(name)
        assert module.__doc__ or name.endswith("._version"), name
        assert all(hasattr(module, exported) for exported in getattr(module, "__all__", [])), name


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.?(dev|a|b|rc)\d+)?", fewkern.__version__)


def test_every_public_name_has_a_docstring_with_an_example():
    for module, name in PUBLIC:
        doc = inspect.getdoc(getattr(importlib.import_module(module), name))
        assert "Examples\n--------\n>>> " in (doc or ""), name


def test_every_parameter_of_an_estimator_is_documented_and_keyword_only():
    for cls in (getattr(fewkern, name) for name in fewkern.__all__ if hasattr(getattr(fewkern, name), "fit")):
        for parameter in list(inspect.signature(cls).parameters.values()):
            # "name : type", alone or in a row of names; a row may refer to another class instead of giving a type
            pattern = rf"^(\w+, )*{parameter.name}((, \w+)* : |(, \w+)*\n +As in )"
            assert re.search(pattern, inspect.getdoc(cls), flags=re.MULTILINE), (cls.__name__, parameter.name)
            # n_components comes first in scikit-learn's PCA and KernelPCA, and may be given without its name here too
            assert parameter.kind is parameter.KEYWORD_ONLY or parameter.name == "n_components"


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


# Estimators: the modules of a method that know scikit-learn. All other modules of the methods, and core, do not.
ESTIMATORS = {
    "select": {"base", "selector", "predictors"},
    "fisher": {"classifiers", "fitting", "path"},
    "margins": {"reducer", "svm", "graph_reducers"},
    "density": {"base", "classifier", "forward", "paper"},
}
# Packages whose fits are NumPy: samples of other array libraries are converted at the door. The expansions among them
# predict on any array library.
NUMPY, EXPANSIONS = {"fisher", "margins", "density"}, {"mixture", "edges"}


@pytest.mark.parametrize("layer", ["core", *ESTIMATORS])
def test_core_and_algorithms_know_no_array_library(layer):
    for path in (ROOT / layer).glob("*.py"):
        if path.stem in ESTIMATORS.get(layer, ()):
            continue
        barred, text = {"numpy", "scipy", "torch", "sklearn", "dask", "array_api_compat"}, path.read_text("utf-8")
        if layer in NUMPY and path.stem not in EXPANSIONS:
            barred -= {"numpy"}
            assert not re.search(r"\bnamespace\(|\bdevice=", text), path.name
        assert not set(imports(path)) & barred, path.name
        # an attribute that NumPy before 2.0 does not have; arrays.namespace.device knows
        assert not re.search(r"\.device\b", text), path.name


def test_private_names_of_scikit_learn_in_one_file_only():
    for path in ROOT.rglob("*.py"):
        private = re.search(r"from sklearn[\w.]*\._|from sklearn[\w.]* import _", path.read_text(encoding="utf-8"))
        assert not private or path.name == "validation.py", path.name


def test_nothing_on_the_loading_path_can_unpickle():
    for name in ("io/save.py", "tables/model.py", "tables/reading.py", "app/jobs.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not set(imports(ROOT / name)) & {"pickle", "joblib", "marshal", "shelve", "dill"}
        assert "allow_pickle=True" not in text


def test_public_names_are_imported_when_they_are_used():
    stub = ast.parse(Path(fewkern.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    known = {alias.asname for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert known == set(ast.literal_eval(stub.body[-1].value)) == set(fewkern.__all__)
    assert set(fewkern.__all__) <= set(dir(fewkern))
    with pytest.raises(AttributeError, match="module 'fewkern' has no attribute 'nothing'"):
        fewkern.nothing
    code = "import sys, fewkern; print(sorted({'numpy', 'sklearn', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_import_of_the_package_needs_no_extra():
    """With the core requirements only, every public module but the command line's inside imports."""
    hidden = ["typer", "rich", "pandas", "pyarrow", "matplotlib", "jinja2", "pooch", "torch", "dask", "onnx", "polars"]
    names = [name for name in MODULES if not name.endswith(("._commands", "._terminal"))]
    code = f"""
import importlib, sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}")
sys.meta_path.insert(0, Hide())
for name in {names!r}:
    importlib.import_module(name)
import fewkern
from fewkern.datasets import make_banana
X, y = make_banana(30)
fewkern.FeatureVectorDiscriminant(max_vectors=3, verbose=True).fit(X, y)
try:
    from fewkern.plotting import PathDisplay
    PathDisplay.from_estimator(fewkern.FeatureVectorDiscriminant(max_vectors=3).fit(X, y))
except ImportError as error:
    assert "pip install matplotlib" in str(error), error
else:
    raise AssertionError("no error without matplotlib")
from fewkern.app import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "pip install typer rich pandas" in done.stderr
    assert "Traceback" not in done.stderr
