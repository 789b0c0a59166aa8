"""The look of the page: light and dark, wide and narrow, on paper."""

from __future__ import annotations

from fewkern.plotting.style import ACCENT, CLASSES, QUIET

__all__ = ["CSS"]

_LIGHT = {
    "paper": "#ffffff",
    "card": "#f4f7f9",
    "ink": "#1c2733",
    "soft": "#55646f",
    "line": "#d5dde3",
    "accent": ACCENT,
    "quiet": QUIET,
    "heat": "31, 78, 121",
    "good": "#1b7f5a",
    "bad": "#b3470b",
    **{f"class-{k}": color for k, color in enumerate(CLASSES)},
}
_DARK = {
    "paper": "#12181e",
    "card": "#1b242c",
    "ink": "#e6edf3",
    "soft": "#a3b1bd",
    "line": "#33404b",
    "accent": "#6fb1ea",
    "quiet": "#5d6c79",
    "heat": "111, 177, 234",
    "good": "#57c99a",
    "bad": "#f0925a",
    "class-0": "#6fb1ea",
    "class-1": "#f0925a",
    "class-2": "#4fc79c",
    "class-3": "#a9a4e6",
    "class-4": "#f27bb8",
    "class-5": "#9ccf5b",
    "class-6": "#f1c84b",
    "class-7": "#d0a764",
}


def _variables(values: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in values.items())


CSS = f"""
:root {{ color-scheme: light dark; {_variables(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {_variables(_DARK)} }} }}
:root[data-theme="dark"] {{ {_variables(_DARK)} }}
* {{ box-sizing: border-box; }}
body {{ font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; color: var(--ink); background: var(--paper);
  max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; overflow-wrap: break-word; }}
h1 {{ font-size: 1.7rem; line-height: 1.25; margin: 0 0 .25rem; }}
h2 {{ font-size: 1.3rem; margin: 2.75rem 0 .5rem; padding-top: .9rem; border-top: 1px solid var(--line); }}
h3 {{ font-size: 1.02rem; margin: 1.75rem 0 .4rem; }}
p {{ margin: .4rem 0; max-width: 46rem; }}
.soft, figcaption, footer, caption {{ color: var(--soft); font-size: .875rem; }}
.lead {{ font-size: 1.12rem; }}
.better {{ color: var(--good); }} .worse {{ color: var(--bad); }}
nav {{ margin: 1rem 0 0; font-size: .9rem; }} nav a {{ margin-right: 1rem; white-space: nowrap; }}
a {{ color: var(--accent); }}
.tiles {{ display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.1rem 0; padding: 0; list-style: none; }}
.tiles li {{ background: var(--card); border-radius: .5rem; padding: .6rem .9rem; flex: 1 1 9rem; }}
.tiles strong {{ display: block; font-size: 1.45rem; line-height: 1.25; font-variant-numeric: tabular-nums; }}
.tiles span {{ color: var(--soft); font-size: .85rem; }}
.figures {{ display: flex; flex-wrap: wrap; gap: 1.25rem 2rem; margin: 1rem 0; align-items: flex-start; }}
figure {{ margin: 0; max-width: 100%; }}
figure svg {{ display: block; width: 100%; height: auto; }}
figcaption {{ margin-top: .25rem; }}
.scroll {{ overflow-x: auto; max-width: 100%; margin: .6rem 0; }}
table {{ border-collapse: collapse; font-size: .9rem; }}
caption {{ text-align: left; padding-bottom: .3rem; }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; vertical-align: top; border-bottom: 1px solid var(--line); }}
th {{ font-weight: 600; overflow-wrap: normal; }} td:not(.n) {{ min-width: 3rem; max-width: 18rem; }}
td {{ overflow-wrap: break-word; }} td.short {{ white-space: nowrap; }}
th.n, td.n {{ text-align: right; font-variant-numeric: tabular-nums; }} td.n {{ white-space: nowrap; }}
table.heat td {{ text-align: center; min-width: 2.4rem; padding: .3rem .4rem; font-variant-numeric: tabular-nums; }}
table.heat thead th {{ text-align: center; padding: .3rem .4rem; }}
table.heat td.heat {{ background: rgba(var(--heat), var(--share)); }}
table.heat td.strong {{ color: var(--paper); }}
pre {{ background: var(--card); border-radius: .4rem; padding: .6rem .8rem; margin: .3rem 0; overflow-x: auto;
  font-size: .85rem; }}
.recipes {{ display: grid; gap: .25rem 1.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(21rem, 100%), 1fr)); }}
footer {{ margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }}
footer dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; }}
footer dd {{ margin: 0; }}
@media (max-width: 36rem) {{ body {{ padding: 1rem .8rem 2rem; font-size: 15px; }} h1 {{ font-size: 1.4rem; }}
  .tiles li {{ flex-basis: 40%; }} }}
@media print {{ :root, :root[data-theme="dark"] {{ {_variables(_LIGHT)} color-scheme: light; }}
  body {{ max-width: none; padding: 0; font-size: 10.5pt; }} nav {{ display: none; }}
  h2, h3 {{ break-after: avoid; }} figure, tr, .tiles li, pre {{ break-inside: avoid; }}
  .scroll {{ overflow: visible; }} .scroll table {{ font-size: 8pt; }} pre {{ white-space: pre-wrap; }}
  th, td {{ padding-right: .5rem; overflow-wrap: anywhere; }} td.n, td.short {{ white-space: normal; }}
  td:not(.n) {{ min-width: 0; }} table.heat td {{ min-width: 1.2rem; padding: .2rem; }}
  .tiles li, table.heat td.heat {{ print-color-adjust: exact; -webkit-print-color-adjust: exact; }} }}
"""
