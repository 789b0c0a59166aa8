"""No estimator changes its answers unnoticed."""

import pytest

from tests.golden.cases import cases, run
from tests.golden.record import differences, read


@pytest.fixture(scope="module")
def record():
    return read()


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_same_as_recorded(case, record):
    found = run(case)
    if found is None:
        pytest.skip(f"{case.library} is not installed")
    problems, _ = differences(found, record.get(case.name), case.tolerance)
    assert not problems, f"{problems}; if this is meant, run python -m tests.golden --write and say why in CHANGELOG.md"


def test_record_has_no_case_that_is_gone(record):
    assert {case.name for case in cases()} >= record.keys()
