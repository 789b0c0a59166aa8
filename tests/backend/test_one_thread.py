from types import SimpleNamespace

import pytest

from fewkern.backend import threads


def test_the_last_task_takes_the_limit_back(monkeypatch):
    events = []
    limit = SimpleNamespace(restore_original_limits=lambda: events.append("back"))
    monkeypatch.setattr(
        threads, "_controller", lambda: SimpleNamespace(limit=lambda **_: events.append("one") or limit)
    )
    with threads.one_thread():
        with threads.one_thread():
            pass
        assert events == ["one"]
    assert events == ["one", "back"]
    with pytest.raises(ValueError, match="x"), threads.one_thread():
        raise ValueError("x")
    assert events == ["one", "back", "one", "back"]
