"""Results as JSON lines, one per unit of work, appended as they come."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

__all__ = ["RESULTS", "Store"]

RESULTS = Path(__file__).parent / "results"


class Store:
    """The results of one experiment: ``results/PAPER-NAME.jsonl``."""

    def __init__(self, paper: str, name: str, folder: Path | None = None) -> None:
        self.path = (folder or RESULTS) / f"{paper}-{name}.jsonl"

    def read(self) -> list[dict[str, Any]]:
        """All whole lines; the last of equal keys counts. A line cut short by a crash is dropped."""
        if not self.path.is_file():
            return []
        found: dict[str, dict[str, Any]] = {}
        for line in self.path.read_text().splitlines():
            try:
                record = json.loads(line)
            except json.JSONDecodeError:
                continue
            found[record["key"]] = record
        return list(found.values())

    def checksum(self) -> str:
        """Changes with the results."""
        return hashlib.sha256(self.path.read_bytes() if self.path.is_file() else b"").hexdigest()

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Write each record as it comes, and see it on the disk before the next."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._mend()
        with self.path.open("a") as file:
            for record in records:
                file.write(json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())

    def _mend(self) -> None:
        """End a line that a crash has cut short, so that the next one starts on its own."""
        if self.path.is_file():
            text = self.path.read_bytes()
            if text and not text.endswith(b"\n"):
                whole = text[: text.rfind(b"\n") + 1]
                part = self.path.with_suffix(".part")
                part.write_bytes(whole)
                os.replace(part, self.path)
