"""When a published figure counts as reproduced, and what the pages say about it."""

import numpy as np
import pytest

from experiments import page, plan, store
from experiments.claims import CLAIMS, Evidence, Results
from experiments.plan import Experiment, Remark, Row
from experiments.verdict import Verdict, count, entries, quantity


def row(label="heart: ours", protocol="paper", published=None, why=None, **more):
    return Row(label, protocol, {}, published or {}, why or {}, None, (), (), **more)


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A function from rows, their values by run, and options, to an experiment with these results."""
    monkeypatch.setattr(store, "RESULTS", tmp_path)

    def make(rows, values, **options):
        records = [
            {"key": f"{i} {k}", "row": r.label, "protocol": r.protocol, "run": k, "settings": {},
             "versions": {}, "values": v}
            for i, r in enumerate(rows)
            for k, v in enumerate(values[i])
        ]  # fmt: skip
        store.stored("toy", "table1").append(records)
        return Experiment("toy", "table1", "Toy Table 1", "nowhere", tuple(rows), **options)

    return make


def spread(mean, deviation, runs, name="error"):
    """Values of exactly this mean and standard deviation."""
    z = np.linspace(-1, 1, runs)
    return [{name: float(mean + deviation * v / z.std(ddof=1))} for v in z]


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [(21.5, Verdict.REPRODUCED), (25.6, Verdict.WORSE), (18.0, Verdict.BETTER), (22.4, Verdict.REPRODUCED)],
)
def test_the_standard_error_of_the_mean_decides_not_the_deviation_of_a_run(table, mean, verdict):
    # KFD's breast-cancer: 21.3 with deviation 3.7 over 100 runs; one standard error of the difference is 0.57
    published = {"error": 21.3, "error_sd": 3.7}
    (entry,) = entries(table([row(published=published)], [spread(mean, 4.4, 100)], paper_runs={"": 100}))
    assert entry.error == pytest.approx(np.hypot(0.37, 0.44), abs=1e-6)
    assert entry.verdict is verdict


def test_margins(table):
    # no spread at all, 0.3 % off: a per cent is allowed for operations, nothing for a better reason
    rows = [row(published={"counted": 757.51}), row("other", published={"counted": 700.0})]
    found = entries(table(rows, [[{"counted": 759.76}], [{"counted": 759.76}]]))
    assert [e.verdict for e in found] == [Verdict.REPRODUCED, Verdict.WORSE]
    # of the table, by set
    rows = [row("yale 2: PCA", published={"rate": 52.6}), row("orl 2: PCA", published={"rate": 52.6})]
    found = entries(table(rows, [[{"rate": 53.3}], [{"rate": 53.3}]], margins={"rate": {"yale 2": 0.8, "orl 2": 0.37}}))
    assert [e.verdict for e in found] == [Verdict.REPRODUCED, Verdict.BETTER]


def test_a_published_figure_of_one_run_is_as_uncertain_as_one_of_ours(table):
    rows, values = [row(published={"rate": 88.6})], [spread(88.0, 0.5, 30, "rate")]
    (entry,) = entries(table(rows, values, paper_runs={"rate": 1}))
    assert entry.error == pytest.approx(0.5 * np.sqrt(1 + 1 / 30))
    assert entry.verdict is Verdict.REPRODUCED


@pytest.mark.parametrize(
    ("mean", "verdict"), [(25.9, Verdict.UNCERTAIN), (2.8, Verdict.UNCERTAIN), (90.0, Verdict.WORSE)]
)
def test_agreement_within_a_wide_error_says_nothing(table, mean, verdict):
    # ringnorm, kFDA_.5, strict: 2.8 % of the samples kept, ours 25.9 with an error of 39.8
    (entry,) = entries(table([row(published={"retained": 2.8})], [spread(mean, 89.0, 5, "retained")]))
    assert entry.error == pytest.approx(39.8, abs=0.1)
    assert entry.verdict is verdict
    # a quarter of the figure is enough
    (entry,) = entries(table([row("at", published={"error": 10.0})], [spread(11.0, 1.25 * 2, 4)]))
    assert entry.verdict is Verdict.REPRODUCED


def test_equal_results_have_no_spread(table):
    (entry,) = entries(table([row(published={"error": 10.0})], [[{"error": 210.2445}] * 4]))
    assert (entry.deviation, entry.error, entry.verdict) == (0, 0, Verdict.WORSE)


def test_remarks_are_for_the_cells_they_name(table):
    rows = [
        row("heart: kFDA_1", "honest", {"error": 10.0, "retained": 5.0}, {"retained": "own reason"}),
        row("heart: kFDA_1", "paper", {"error": 10.0}),
    ]
    remarks = (
        Remark("not comparable", "tested on its training samples", "kFDA", "honest", "error"),
        Remark("why", "one machine", protocol="paper"),
        Remark("caveat", "five training sets", protocol="honest"),
    )
    values = [[{"error": 12.0, "retained": 9.0}], [{"error": 12.0}]]
    error, retained, paper = entries(table(rows, values, remarks=remarks))
    assert (error.verdict, error.remarks) == (Verdict.INCOMPARABLE, ("tested on its training samples",))
    assert (retained.verdict, retained.remarks) == (Verdict.WORSE, ("own reason",))
    assert (paper.verdict, paper.remarks, paper.caveats) == (Verdict.WORSE, ("one machine",), ())
    assert error.caveats == retained.caveats == ("five training sets",)
    counted = count([error, retained, paper])
    assert counted["honest", "error, points", Verdict.INCOMPARABLE] == 1
    assert counted["paper", "error, points", Verdict.WORSE] == 1


def test_unknown_kinds_and_quantities_are_refused():
    with pytest.raises(ValueError, match="a remark is 'not comparable', 'why' or 'caveat', got 'excuse'"):
        Remark("excuse", "text")
    with pytest.raises(ValueError, match=r"expected a figure of \[.*\] beside a published one, got 'happiness'"):
        quantity("happiness")
    assert quantity("rate_5") is quantity("rate")


def test_a_reason_is_said_once_on_the_page(table, tmp_path, monkeypatch):
    rows = [row(f"set {i}: ours", "honest", {"error": 10.0}) for i in range(7)]
    remark = Remark("not comparable", "the published figure measures something else")
    made = table(
        rows, [[{"error": 12.0}]] * 7, remarks=(remark,), layout="matrix", quoted={"best": {"set 1": {"error": 9.5}}}
    )
    monkeypatch.setattr(page, "experiments", lambda: [made])
    monkeypatch.setattr(page, "DOCS", tmp_path)
    paths = page.write_pages()
    assert [path.name for path in paths] == ["index.html", "toy.html"]
    text = (tmp_path / "results" / "toy.html").read_text()
    assert text.count("The published figure measures something else.") == 1
    assert "best (quoted)" in text
    assert "<td class=n>9.5</td>" in text
    assert "http" not in text
    summary = (tmp_path / "results" / "index.html").read_text()
    assert '<a href="toy.html">toy</a>' in summary
    assert "<td>honest</td><td>error, points</td><td class=n>7</td>" in summary
    # what the documentation includes
    assert (tmp_path / "results" / "toy.md").read_text().startswith("# toy\n\n`````{raw} html\n")
    assert "\ntoy\n" in (tmp_path / "results" / "index.md").read_text()


def test_a_claim_without_results_is_not_judged(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    for claim in CLAIMS:
        assert claim.evidence(Results(claim.paper)) is None, claim.text


def test_every_claim_is_judged_on_the_stored_results():
    results = {paper: Results(paper) for paper in {claim.paper for claim in CLAIMS}}
    known = {(e.paper, e.name) for e in plan.experiments()}
    for claim in CLAIMS:
        evidence = claim.evidence(results[claim.paper])
        assert isinstance(evidence, Evidence), claim.text
        assert evidence.text
        assert {(claim.paper, figure) for figure in claim.figures} <= known


def test_every_figure_of_the_papers_has_a_verdict():
    figures = {(e.paper, e.name) for e in plan.experiments() if e.kind == "figure"}
    # KFD's Fig. 1 draws three formulas
    assert figures - {(c.paper, name) for c in CLAIMS for name in c.figures} == {("kfd", "fig1")}


def test_evidence_in_words():
    said = {True: "holds", False: "does not hold", (3, 3): "holds", (1, 3): "1 of 3", (0, 3): "does not hold"}
    assert {holds: Evidence(holds, "").verdict for holds in said} == said


def test_every_published_figure_has_a_quantity_and_every_remark_a_row():
    for experiment in plan.experiments():
        for r in experiment.rows:
            for name in r.published:
                if not name.endswith("_sd"):
                    quantity(name)
        for remark in experiment.remarks:
            assert any(remark.about(r, name) for r in experiment.rows for name in (*r.published, "error", "rate")), (
                experiment.id,
                remark.text,
            )
        groups = {r.group for r in experiment.rows}
        for column in experiment.quoted.values():
            assert set(column) <= groups, experiment.id
