"""Numbers of a policy with sections, each changed alone: what is measured, kept and printed."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from benchmarks import sensitivity


@dataclass(frozen=True)
class Search:
    ladder: tuple[int, ...] = (5, 10)
    zero: int = 0


@dataclass(frozen=True)
class Policy:
    search: Search = field(default_factory=Search)
    share: float = 0.2
    name: str = "x"


class Machine:
    """A model whose error and vectors are what its policy says."""

    def set_params(self, categorical_features):
        self.categories = categorical_features

    def fit(self, X, y):
        if self._policy.share > 0.3:
            raise ValueError("too large a share")
        self.n_vectors_, self.every = self._policy.search.ladder[0], round(1 / self._policy.share)
        return self

    def predict(self, X):
        return np.arange(len(X)) % self.every == 0


def test_sensitivity(folder, monkeypatch, capsys):
    monkeypatch.setattr(sensitivity, "default_policy", Policy)
    monkeypatch.setattr(sensitivity, "kernel_machine", lambda task, prefer: Machine())
    asked = ["--sets", "first", "second", "--jobs", "0", "--results", str(folder / "s.jsonl")]
    sensitivity.main(asked)
    printed = capsys.readouterr().out
    assert "Not numeric, left out: name." in printed
    assert "10 units measured" in printed
    rows = {tuple(line.split()[:3]): line.split() for line in printed.splitlines()}
    assert " ".join(rows["search.ladder", "5", "10"][3:]).startswith("10 20 2 +0.00 1.00 ± 0.00 2.00 ")
    assert rows["share", "0.2", "0.4"][-1] == "2"
    assert "failed: share x 2, first: ValueError: too large a share" in printed
    sensitivity.main([*asked, "--fields", "search.ladder"])
    assert "0 units measured, 6 known" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="no such numeric field: name"):
        sensitivity.main([*asked, "--fields", "name"])


def test_numbers_of_sections():
    found, others = sensitivity.numbers(Policy())
    assert found == {"search.ladder": (5, 10), "search.zero": 0, "share": 0.2}
    assert others == ["name"]
    assert sensitivity.changed(Policy(), "search.ladder", 2.0) == Policy(Search((10, 20)))
    assert sensitivity.changed(Policy(), "share", 0.5) == Policy(share=0.1)
    assert sensitivity.variants(Policy()) == [(n, f) for n in ("search.ladder", "share") for f in (0.5, 2.0)]
