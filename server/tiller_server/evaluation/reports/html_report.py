"""An evaluation as one HTML file, which loads nothing and runs nothing."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from tiller_server.evaluation.reports.text_report import cost_text, decimal, percent
from tiller_server.evaluation.result import Attempt, Evaluation, Rates

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
STYLE: Final = """
:root { color-scheme: light dark; --bg: #ffffff; --fg: #1f2328; --quiet: #59636e; --line: #d1d9e0; --card: #f6f8fa;
  --passed: #1a7f37; --failed: #cf222e; --invalid: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --bg: #0d1117; --fg: #e6edf3; --quiet: #9198a1; --line: #3d444d;
  --card: #151b23; --passed: #3fb950; --failed: #ff7b72; --invalid: #d29922 } }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, sans-serif }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .25rem 0 } .quiet { color: var(--quiet) }
.cards { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.25rem 0 }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; min-width: 7rem }
.card b { display: block; font-size: 1.4rem }
.wide { overflow-x: auto } table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top }
th { color: var(--quiet); font-weight: 600 } .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.mark { display: inline-block; min-width: 1.5rem; text-align: center; border-radius: 4px; border: 1px solid currentColor }
.passed { color: var(--passed) } .failed { color: var(--failed) } .invalid { color: var(--invalid) }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere } ul { margin: .2rem 0; padding-left: 1.2rem }
""".strip()
MARKS: Final[Mapping[str, str]] = {"passed": "✓", "failed": "✗", "invalid": "?"}
NUMBER: Final = ' class="number"'


def as_html(evaluation: Evaluation) -> str:
    """Return an evaluation as a page. Pure."""
    title = f"Evaluation of {evaluation.model}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">{escape(_about(evaluation))}</p>',
        _cards(evaluation),
        "<h2>Kinds</h2>",
        _kinds(evaluation),
        "<h2>Tasks</h2>",
        _tasks(evaluation),
        *_failures(evaluation),
        *_skipped(evaluation),
    ]
    head = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}\n</style>\n</head>\n<body>\n"
    )
    return head + "\n".join(parts) + "\n</body>\n</html>\n"


def _about(evaluation: Evaluation) -> str:
    return (
        f"{evaluation.suite} · {evaluation.started_at} · {evaluation.duration_s:.0f} s · "
        f"k = {evaluation.k} · containment {evaluation.containment} · Tiller {evaluation.version}"
    )


def _cards(evaluation: Evaluation) -> str:
    rates = evaluation.rates()
    cards = [("pass@1", percent(rates.pass_at_1))]
    if evaluation.k > 1:
        cards.append((f"pass@{evaluation.k}", percent(rates.pass_at_k)))
        cards.append((f"pass^{evaluation.k}", percent(rates.pass_hat_k)))
    cards.append(("passed", f"{rates.passed} of {rates.attempts}"))
    if rates.invalid:
        cards.append(("not counted", str(rates.invalid)))
    cards.append(("cost", cost_text(evaluation.attempts)))
    score = evaluation.review()
    if score is not None:
        cards.append(("review recall", percent(score.recall)))
        cards.append(("review precision", percent(score.precision)))
        cards.append(("doubles", str(score.doubles)))
        cards.append(("noise per 1,000 lines", decimal(score.noise_per_1000)))
    made = "".join(
        f'<div class="card"><span class="quiet">{escape(name)}</span><b>{escape(value)}</b></div>'
        for name, value in cards
    )
    return f'<div class="cards">{made}</div>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """Return a table of cells that are HTML; those after the first so many are numbers."""
    head = "".join(
        f"<th{NUMBER if column >= texts else ''}>{escape(name)}</th>"
        for column, name in enumerate(heads)
    )
    body = "".join(
        "<tr>"
        + "".join(
            f"<td{NUMBER if column >= texts else ''}>{cell}</td>" for column, cell in enumerate(row)
        )
        + "</tr>\n"
        for row in rows
    )
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>'


def _kinds(evaluation: Evaluation) -> str:
    many = evaluation.k > 1
    heads = ["kind", "tasks", "passed", "pass@1"]
    if many:
        heads += [f"pass@{evaluation.k}", f"pass^{evaluation.k}"]
    rows: list[list[str]] = []
    for kind in (*evaluation.kinds, None):
        rates = evaluation.rates(kind)
        rows.append([kind or "<b>all</b>", str(rates.tasks), *_rates(rates, many=many)])
    return _table(heads, rows, texts=1)


def _rates(rates: Rates, *, many: bool) -> list[str]:
    cells = [f"{rates.passed} of {rates.attempts}", percent(rates.pass_at_1)]
    return [*cells, percent(rates.pass_at_k), percent(rates.pass_hat_k)] if many else cells


def _tasks(evaluation: Evaluation) -> str:
    rows: list[list[str]] = []
    for name in dict.fromkeys(one.task for one in evaluation.attempts):
        attempts = evaluation.of_task(name)
        count = len(attempts)
        rows.append(
            [
                f"<code>{escape(name)}</code>",
                escape(attempts[0].kind),
                " ".join(_mark(one) for one in attempts),
                f"{sum(one.turns for one in attempts) / count:.0f}",
                f"{sum(one.tokens for one in attempts) / count:,.0f}",
                escape(cost_text(attempts)),
                f"{sum(one.duration_s for one in attempts) / count:.1f} s",
            ]
        )
    heads = ("task", "kind", "attempts", "turns", "tokens", "cost", "time")
    return _table(heads, rows, texts=3)


def _mark(attempt: Attempt) -> str:
    why = escape("; ".join((attempt.verdict, *attempt.reasons)), quote=True)
    return f'<span class="mark {attempt.verdict}" title="{why}">{MARKS[attempt.verdict]}</span>'


def _failures(evaluation: Evaluation) -> Iterator[str]:
    others = [one for one in evaluation.attempts if one.verdict != "passed"]
    if not others:
        return
    yield "<h2>Attempts that did not pass</h2>"
    for one in others:
        name = f"{one.task} #{one.number}"
        yield f'<p><b class="{one.verdict}">{one.verdict}</b> <code>{escape(name)}</code></p>'
        lines = [escape(reason) for reason in one.reasons]
        if one.session is not None:
            lines.append(f"session: <code>tiller sessions import {escape(one.session)}</code>")
        if one.patch is not None:
            lines.append(f"changes: <code>{escape(one.patch)}</code>")
        yield "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


def _skipped(evaluation: Evaluation) -> Iterator[str]:
    if evaluation.skipped:
        yield "<h2>Skipped tasks</h2>"
        lines = [
            f"<li><code>{escape(one.task)}</code>: {escape(one.reason)}</li>"
            for one in evaluation.skipped
        ]
        yield "<ul>" + "".join(lines) + "</ul>"
