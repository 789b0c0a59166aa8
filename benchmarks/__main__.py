"""``python -m benchmarks`` lists the benchmarks; ``python -m benchmarks NAME [options]`` runs one."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks

# Modules that the benchmarks share.
SHARED = ("__main__", "frontier_picture", "measure", "methods", "scale_methods", "splits", "times_cases", "workers")


def names() -> list[str]:
    """Modules of this package that define ``main``."""
    return [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in SHARED]


def main() -> int:
    known = names()
    if len(sys.argv) < 2 or sys.argv[1] not in known:
        print("usage: python -m benchmarks NAME [options]\n")
        for name in known:
            doc = importlib.import_module(f"benchmarks.{name}").__doc__ or ""
            print(f"  {name:11s} {doc.strip().splitlines()[0]}")
        return 0 if len(sys.argv) < 2 else 2
    importlib.import_module(f"benchmarks.{sys.argv[1]}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
