"""The page: complete, in order, self-contained, closed tags, nothing injected."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fewkern
from fewkern import ReportSettings, report
from fewkern.datasets import make_banana
from tests.reporting.helpers import QUICK, Parsed, churn_model, customers, encoder, iris_model, price_model

HOSTILE = (
    "</text></svg><script>alert(1)</script><b onload='x'>\"'&amp; $x^2$ font-family: a; style=\"color:#000000\" {}%s"
)


def iris(columns=4):
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X.iloc[:, :columns], y


def scaled(model, columns=4):
    X, y = iris(columns)
    return make_pipeline(StandardScaler(), model).fit(X), X, y if hasattr(model, "transform") else None


def linear_model():
    X, y = iris()
    return fewkern.GraphEmbedding(n_components=1).fit(X, y), X, y


def plane_model():
    X, y = make_banana(150)
    frame = pd.DataFrame(X, columns=["x", "y"])
    return fewkern.FeatureVectorDiscriminant(max_vectors=8).fit(frame, y), frame, pd.Series(y, name="side")


TASKS = {
    "two classes": churn_model,
    "many classes": iris_model,
    "two columns": plane_model,
    "numbers": price_model,
    "components": lambda: scaled(fewkern.FeatureVectorPCA(n_components=2, max_vectors=20)),
    "one component": linear_model,
    "density of 1": lambda: scaled(fewkern.ForwardDensity(), 1),
    "density of 4": lambda: scaled(fewkern.ForwardDensity(), 4),
}
SUPERVISED = ["How good is it?", "What drives it?", "Where does it err?", "What does it keep?", "How do I use it?"]


@pytest.fixture(scope="module", params=list(TASKS))
def made(request):
    model, X, y = TASKS[request.param]()
    settings = ReportSettings(compare=False, source="table.csv", command="fewkern fit table.csv --report r.html")
    return report(model, X, y, settings=settings)


def test_one_document_without_network_or_scripts(made):
    page = Parsed(made.html)
    assert not {"script", "link", "img"} & {tag for tag, _ in page.elements}
    for word in ("http:", "https:", "@import"):
        assert word not in made.html
    policy = [attrs["content"] for attrs in page.tags("meta") if "http-equiv" in attrs]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"]
    for attrs in (attrs for _, attrs in page.elements):
        assert not any(name.startswith("on") or name == "src" for name in attrs)
        assert attrs.get("href", "#").startswith("#")
    # for any screen, and for paper: every table scrolls by itself
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.tags("meta")
    assert "prefers-color-scheme: dark" in made.html
    assert "@media print" in made.html
    assert len(page.tags("table")) == made.html.count('<div class="scroll" tabindex="0"><table')


def test_parts_in_order(made):
    page = Parsed(made.html)
    titles = re.findall(r"<h2>(.*?)</h2>", made.html)
    assert (titles[0], titles[-1]) == ("How good is it?", "Remarks")
    anchors = [attrs["href"] for attrs in page.tags("a")]
    assert anchors == [f"#{attrs['id']}" for attrs in page.tags("section")]
    order = ["good", "importances", "errors", "vectors", "uncertainty", "usage", "remarks"]
    assert [a[1:] for a in anchors] == [a for a in order if f"#{a}" in anchors]
    if made.findings.quality is not None:
        assert [title for title in titles if title != "How certain is it?"] == [*SUPERVISED, "Remarks"]
    if made.findings.density is not None:
        texts = re.findall(r"<text[^>]*>(.*?)(?: \(cm\))?</text>", made.html)
        assert {name.split(" (")[0] for name in made.findings.density.columns} <= set(texts)


def test_pictures_have_the_colors_of_the_page_and_words(made):
    pictures = re.findall(r"<svg.*?</svg>", made.html, flags=re.DOTALL)
    assert pictures
    for picture in pictures:
        assert re.match(r'<svg role="img" aria-label="[^"]+" viewBox="0 0 ', picture)
        assert "var(--ink" in picture
        assert not re.search(r'"[^"]*(?<!, )#101418[^"]*"', picture)
        for word in ("<style", "DejaVu", "NaN"):  # the font is that of the page
            assert word not in picture
    # identifiers are unique and found
    ids = Parsed(made.html).ids
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:url\(#|href="#)([\w.-]+)', made.html)) <= set(ids)


def test_the_first_sentence_and_the_footer(made):
    text, first = Parsed(made.html).text, made.findings.headline[0]
    assert first in text
    assert str(made).startswith(first)
    command = "command fewkern fit table.csv --report"
    for words in ("table table.csv", f"by fewkern {fewkern.__version__}", "seed 0", command):
        assert words in text
    assert re.search(r"made \d{4}-\d\d-\d\d \d\d:\d\d", text)


def page_of(model, X, y, **options):
    return report(model, X, y, settings=ReportSettings(compare=False, **options)).html


def test_sentences_about_columns_and_vectors():
    text = Parsed(page_of(*price_model())).text
    assert "area matters most: shuffling its values raises the mean absolute error from " in text
    text = Parsed(page_of(*churn_model())).text
    assert re.search(r"matters most: shuffling its values raises the error rate from [\d.]+% to [\d.]+%", text)
    assert "1 of 3 columns makes no difference beyond chance." in text
    assert re.search(
        r"The model keeps \d+ of 240 rows \([\d.]+%\), and predicts .* from its similarity to them alone", text
    )
    assert "personal data" in text
    text = Parsed(page_of(churn_model()[0], *customers(60, seed=4))).text
    assert re.search(r"The model keeps \d+ rows of the table that it was fitted to, and", text)
    text = Parsed(page_of(*churn_model(moved=True))).text
    assert re.search(r"The model keeps \d+ vectors, and .*The fit moved them", text)
    assert "personal data" not in text
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) < 57
    text = Parsed(page_of(fewkern.FeatureVectorDiscriminant(max_vectors=2).fit(X, y), X, y)).text
    assert "No column clearly matters" in text


@pytest.mark.parametrize(("classes", "drawn"), [(12, True), (35, False)])
def test_confusions_are_a_matrix_or_pairs(classes, drawn):
    """Dots for zeros, and numeric order, also where classes are texts; a larger matrix cannot be read."""
    codes = np.arange(120) % classes
    X = np.random.default_rng(0).normal(size=(120, 2)) + (6 if drawn else 1) * codes[:, None]
    y = codes.astype(str)
    page = page_of(fewkern.FeatureVectorDiscriminant(max_vectors=30).fit(X, y), X, y, rows="new")
    heads = re.findall(r'<th scope="col">(.*?)</th>', page)
    assert heads == [str(k) for k in range(classes)] * drawn
    matrix = re.search(r'<table class="heat">.*?</table>', page, flags=re.DOTALL)
    if drawn:
        assert "<td>·</td>" in matrix[0]
        assert ">0</td>" not in matrix[0]
    else:
        assert matrix is None
        assert "The most frequent confusions" in page


def test_nothing_in_a_table_can_inject():
    frame, y = customers(120)
    frame = frame.rename(columns={"age": HOSTILE, "plan": f"plan {HOSTILE}"})
    frame[f"plan {HOSTILE}"] = frame[f"plan {HOSTILE}"] + HOSTILE
    frame.index = [f"{HOSTILE} {i}" for i in range(120)]
    y = (y + HOSTILE).rename(HOSTILE)
    model = make_pipeline(encoder(HOSTILE, f"plan {HOSTILE}"), fewkern.FeatureVectorDiscriminant(max_vectors=8)).fit(
        frame, y
    )
    clean = report(*churn_model(), settings=QUICK)
    settings = ReportSettings(compare=False, source=HOSTILE, command=HOSTILE)
    made = report(model, frame, y, title=HOSTILE, settings=settings)
    page, allowed = Parsed(made.html), Parsed(clean.html)
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in allowed.elements}
    assert {name for _, attrs in page.elements for name in attrs} <= {n for _, attrs in allowed.elements for n in attrs}
    assert "alert(1)" in page.text
    shown = made._repr_html_()
    assert shown.count("<") == 2  # the frame, and its end
    assert Parsed(shown).tags("iframe")[0]["srcdoc"] == made.html


CONTROLS = "\x1b[2J\x00\x07\u202e\u2066\x9b"


def test_controls_in_a_table_are_written_out():
    frame, y = customers(120)
    frame = frame.rename(columns={"age": f"age{CONTROLS}"}).assign(key=[f"{CONTROLS}{i}" for i in range(120)])
    y = (y + CONTROLS).rename(f"churn{CONTROLS}")
    columns = [f"age{CONTROLS}", "noise"]
    model = make_pipeline(StandardScaler(), fewkern.FeatureVectorDiscriminant(max_vectors=8)).fit(frame[columns], y)
    made = report(model, frame, y, title=CONTROLS, settings=ReportSettings(compare=False, source=CONTROLS))
    for text in (made.html, str(made)):
        assert not set(CONTROLS[:1] + CONTROLS[4:]) & set(text)
        assert r"\u001b[2J\u0000\u0007\u202e\u2066\u009b" in text
    made.html.encode()


def test_saved_where_it_should_be(tmp_path):
    model, X, y = iris_model()
    path = tmp_path / "r.html"
    made = report(model, X, y, path=path, title="About iris", settings=QUICK)
    assert path.read_text(encoding="utf-8") == made.html
    assert "<title>About iris</title>" in made.html
    assert made.save(tmp_path / "again.html") == tmp_path / "again.html"
    assert {p.name for p in tmp_path.iterdir()} == {"r.html", "again.html"}
    with pytest.raises(FileNotFoundError, match=r"cannot write r\.html: the folder .* does not exist"):
        made.save(tmp_path / "nowhere" / "r.html")
    assert len(repr(made)) < 200


def test_the_same_page_from_the_same_model():
    model, X, y = price_model()

    def timeless():
        page = report(model, X, y, settings=QUICK).html
        return re.sub(r"<td class=\"n\">[\d.]+</td>|<strong>[\d.]+ µs|made</dt><dd>[^<]*", "", page)

    assert timeless() == timeless()


def test_the_function_is_not_hidden_by_a_module():
    """``fewkern.report`` is the function, whatever was imported before."""
    code = "import fewkern.reporting.make, fewkern\nprint(fewkern.report.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "report\n"


def test_a_leak_stands_in_place_of_the_recommendation():
    model, X, y = price_model()
    made = report(model, X, y, settings=QUICK)
    assert f'<p class="advice">{made.findings.quality.recommendation}</p>' in made.html
    X = X.assign(cost=y / 1000)
    page = report(fewkern.FeatureVectorRegressor(max_vectors=10).fit(X, y), X, y, settings=QUICK).html
    assert '<p class="advice leak">Column &#39;cost&#39; alone predicts price almost perfectly.' in page
    assert 'class="advice">' not in page


@pytest.mark.parametrize(("what", "package"), [("the page", "jinja2"), ("every figure", "matplotlib")])
def test_without_a_package_it_says_what_to_install(monkeypatch, what, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"{what} needs {package}: pip install {package}"):
        report(*iris_model(), settings=QUICK)
