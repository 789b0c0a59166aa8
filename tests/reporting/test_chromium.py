"""The page in a browser: on a wide screen and on a phone, in the light, in the dark, and on paper."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.image import imread

from fewkern import report
from tests.reporting.helpers import QUICK, churn_model

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    report(*churn_model(), path=path, settings=QUICK)
    return path


def browse(path, *options):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *options, path.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=path.parent, check=False)
    if done.returncode:
        pytest.skip(f"Chromium does not start here: {done.stderr[-200:]}")
    return done.stdout


@pytest.mark.parametrize("width", [1400, 420])
def test_the_page_is_as_wide_as_the_window(page, width):
    """Only tables scroll sideways, each by itself."""
    script = "<script>document.title = document.documentElement.scrollWidth + ' of ' + innerWidth</script>"
    measured = page.with_name(f"measured-{width}.html")
    # in a frame of the given width, because a window cannot be made as narrow as a phone
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8")).replace(
        "</body>", script.replace("document.title", "parent.document.title") + "</body>"
    )
    inner = page.with_name(f"inner-{width}.html")
    inner.write_text(text, encoding="utf-8")
    measured.write_text(f'<iframe src="{inner.name}" style="width: {width}px; height: 900px; border: 0"></iframe>')
    found = browse(measured, "--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom")
    wide, window = map(int, re.search(r"<title>(\d+) of (\d+)</title>", found).groups())
    assert window == width
    assert wide <= window


def test_light_and_dark(page):
    def shown(*options):
        browse(page, "--window-size=1000,1200", f"--screenshot={page.with_name('shot.png')}", *options)
        return imread(page.with_name("shot.png"))[:, :, :3]

    light, dark = shown(), shown("--blink-settings=preferredColorScheme=0")
    assert light.mean() > 0.85
    assert dark.mean() < 0.3
    # there is something to see in both
    assert min(np.ptp(light), np.ptp(dark)) > 0.7


def test_on_paper(page):
    target = page.with_name("report.pdf")
    browse(page, f"--print-to-pdf={target}")
    assert target.read_bytes().startswith(b"%PDF")
    assert target.stat().st_size > 20_000
