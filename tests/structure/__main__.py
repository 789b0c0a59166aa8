"""Print the shape of the package: ``python -m tests.structure``."""

from sklearn.base import is_regressor

from tests.golden.cases import table
from tests.structure.measure import LONGEST, MOST_PARAMETERS, estimators, functions, summary, upward_calls


def main() -> None:
    for name, value in summary().items():
        print(f"{name:40} {value}")
    print("upward calls in a fit and a prediction of 60 rows:")
    for name, cls in estimators().items():
        X, y, _, _ = table("real" if is_regressor(cls()) else "two", 60)
        calls = upward_calls(cls(), X, y)
        print(f"  {name:38} {sum(calls.values())}")
        for (here, there), count in calls.most_common(5):
            print(f"    {count} x {here} -> {there}")
    for function in functions():
        if function.lines > LONGEST or function.parameters > MOST_PARAMETERS:
            print(f"{function.where}: {function.lines} lines, {function.parameters} parameters")


if __name__ == "__main__":
    main()
