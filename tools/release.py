"""``python -m tools.release --out dist``: the source archive, the wheel, and a list of what it needs.

The wheel is built twice, and both must be the same to the byte: whoever builds this commit again can compare. The list
is an SBOM in CycloneDX's JSON, made from the metadata of the wheel and of the packages in this environment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import uuid
import zipfile
from email.parser import HeaderParser
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
CONSTRAINTS = Path(__file__).with_name("constraints.txt")
# One word of a requirement: "numpy>=1.26; extra == 'plot'" needs numpy, and only for an extra.
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)([^;]*)(?:;(.*))?")


def epoch() -> str:
    """The time of the last commit, which all files in the archives get."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is not None:
        return given
    command = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def build(folder: Path) -> list[Path]:
    """Build the archives into ``folder``."""
    # a wheel names the version of the program that built it
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch(), "PIP_CONSTRAINT": str(CONSTRAINTS)}
    command = [sys.executable, "-m", "build", "-q", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, env=environment, check=True)
    return sorted(folder.iterdir())


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def required(requirements: list[str]) -> dict[str, str]:
    """Packages that are always required, without those of extras, and the versions that are allowed.

    Examples
    --------
    >>> from tools.release import required
    >>> required(["numpy>=1.26", "typer>=0.12; extra == 'cli'"])
    {'numpy': '>=1.26'}
    """
    found = {}
    for text in requirements:
        parsed = _REQUIREMENT.match(text)
        assert parsed is not None, text
        name, versions, marker = parsed.groups()
        if "extra" not in (marker or ""):
            found[re.sub(r"[-_.]+", "-", name).lower()] = versions.strip()
    return found


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:  # a requirement of another platform
        return None


def components(requirements: dict[str, str]) -> dict[str, dict[str, Any]]:
    """What is required, and what that requires in turn, as installed here, by name."""
    found: dict[str, dict[str, Any]] = {}
    waiting = list(requirements)
    while waiting:
        name = waiting.pop()
        package = None if name in found else _installed(name)
        if package is None:
            continue
        needs = required(package.requires or [])
        metadata: Any = package.metadata
        licence = metadata.get("License-Expression") or metadata.get("License", "")
        found[name] = {
            "type": "library",
            "bom-ref": name,
            "name": name,
            "version": package.version,
            "purl": f"pkg:pypi/{name}@{package.version}",
            "needs": sorted(needs),
        } | ({"licenses": [{"license": {"name": licence.splitlines()[0]}}]} if licence else {})
        waiting += needs
    return dict(sorted(found.items()))


def bill_of_materials(wheel: Path) -> dict[str, Any]:
    """The SBOM of a wheel (CycloneDX 1.6)."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    needs = required(metadata.get_all("Requires-Dist", []))
    found = components(needs)
    checksum = digest(wheel)
    package = {
        "type": "library",
        "bom-ref": "fewkern",
        "name": metadata["Name"],
        "version": metadata["Version"],
        "purl": f"pkg:pypi/{metadata['Name']}@{metadata['Version']}",
        "licenses": [{"license": {"id": metadata["License-Expression"]}}],
        "hashes": [{"alg": "SHA-256", "content": checksum}],
        "properties": [{"name": f"requires:{name}", "value": versions} for name, versions in sorted(needs.items())],
    }
    depends = {"fewkern": sorted(set(needs) & set(found))}
    depends |= {name: [n for n in entry.pop("needs") if n in found] for name, entry in found.items()}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(checksum[:32])}",
        "version": 1,
        "metadata": {"component": package},
        "components": list(found.values()),
        "dependencies": [{"ref": name, "dependsOn": names} for name, names in depends.items()],
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.release", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    first = [path for path in build(options.out) if path.suffix in (".whl", ".gz")]
    with tempfile.TemporaryDirectory() as folder:
        second = {path.name: digest(path) for path in build(Path(folder))}
    different = [path.name for path in first if second.get(path.name) != digest(path)]
    if different:
        print(f"built twice, {different} are not the same; empty {options.out} or see what differs (diffoscope).")
        return 1
    for path in first:
        print(f"{digest(path)}  {path.name} (built twice, the same bytes)")
    wheel = next(path for path in first if path.suffix == ".whl")
    bill = bill_of_materials(wheel)
    target = wheel.with_suffix(".cdx.json")
    target.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    print(f"{len(bill['components'])} packages are listed in {target.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
