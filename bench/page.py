"""The page of a comparison: writes its table and its picture from the JSON of one run."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.chart import svg
from bench.lab import ROOT
from bench.report import summary

PAGE = ROOT / "docs/performance.md"
PICTURE = ROOT / "docs/pictures/performance.svg"
BEGIN = "<!-- figures: written by `python -m bench --page` -->"
END = "<!-- end of the figures -->"
PREFIX = "peer-"
PEERS: Mapping[str, str] = {"pi": "pi", "codex": "Codex"}
VERDICTS: Mapping[bool | None, str] = {True: "held", False: "missed", None: "not measured"}


TIMES = "\N{MULTIPLICATION SIGN}"


class PageError(Exception):
    """The page cannot be written."""


def write_page(document: Mapping[str, Any], *, page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Write the figures of a run into the page, and the picture beside it.

    Raises:
        PageError: The run measured no other agent, or the page has lost its marks.
    """
    rows = list(rows_of(document))
    if not rows:
        raise PageError("the run has no comparison: measure with `make bench PEERS=pi,codex`")
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        message = f"{page} has no part between {BEGIN!r} and {END!r}"
        raise PageError(message)
    part = figures(document)
    page.write_text(f"{before}{BEGIN}\n\n{part}\n{END}{after}", encoding="utf-8")
    picture.parent.mkdir(exist_ok=True)
    picture.write_text(svg(rows, about=machine_of(document)), encoding="utf-8")


def rows_of(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a document that compare with other agents."""
    for benchmark in document["benchmarks"]:
        if benchmark["name"].startswith(PREFIX):
            yield from benchmark["rows"]


def figures(document: Mapping[str, Any]) -> str:
    """Return the part of the page that a run decides: where it ran, and the table."""
    loads = [load for one in document["benchmarks"] for load in one["load"]]
    versions = ", ".join(document.get("peers", {}).values())
    when = f"Measured on {document['at'][:10]} at {document['commit']}, {document['plan']} run"
    load = f"load average {min(loads):.1f} to {max(loads):.1f}"
    lines = [
        f"{when}, beside {versions}. {machine_of(document)}; {load}.",
        "Each figure is the median with the range.",
        "",
        "| | Floor | pi | Codex | Tiller | Bar | |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_line(row) for row in rows_of(document)),
        *_failures(document),
    ]
    return "\n".join(lines) + "\n"


def machine_of(document: Mapping[str, Any]) -> str:
    """Return what the machine is, as far as figures depend on it."""
    about = document["machine"]
    memory = about.get("memory_gib", "?")
    return f"{about['processors']} cores, {memory} GiB, {about['system']}, Python {about['python']}"


def bar_of(row: Mapping[str, Any]) -> str:
    """Return what the bar of a row asks for, in words."""
    bar = row.get("bar")
    if bar is None:
        return ""
    if bar["of"] != "ratio":
        return f"{bar['at_most']:g} {row['unit']}"
    peer = row["peer"]["name"] if "peer" in row else "?"
    return f"{bar['at_most']:g} {TIMES} {PEERS.get(peer, peer)}"


def verdict_of(row: Mapping[str, Any]) -> str:
    """Return what became of the bar: the ratio or the word alone."""
    bar = row.get("bar")
    if bar is None:
        return ""
    verdict = VERDICTS[bar["held"]]
    measured = bar["measured"]
    return f"{measured:.2f} {TIMES}, {verdict}" if bar["of"] == "ratio" and measured else verdict


def _line(row: Mapping[str, Any]) -> str:
    peers = [*([row["peer"]] if "peer" in row else []), *row.get("others", ())]
    by_name = {peer["name"]: peer for peer in peers}
    floors = [_floor(peer, row["unit"]) for peer in peers if peer["name"] not in PEERS]
    cells = [
        row["what"],
        "; ".join(filter(None, floors)),
        *(_cell(by_name[name], row["unit"]) if name in by_name else "" for name in PEERS),
        f"**{_cell(row['tiller'], row['unit'])}**",
        bar_of(row),
        verdict_of(row),
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _floor(peer: Mapping[str, Any], unit: str) -> str:
    """Return the figure of a floor; one that has none is not worth a reason."""
    if not peer["samples"]:
        return ""
    shown = _cell(peer, unit)
    return shown if peer["name"] == "floor" else f"{peer['name']} {shown}"


def _cell(figure: Mapping[str, Any], unit: str) -> str:
    if not figure["samples"]:
        return str(figure.get("why_none") or "-")
    middle, *ends = summary(figure["samples"]).split(" ", 1)
    return " ".join([middle, unit, *ends])


def _failures(document: Mapping[str, Any]) -> Iterator[str]:
    for one in document["benchmarks"]:
        if one["name"].startswith(PREFIX) and one["failure"]:
            yield ""
            yield f"{one['title']} could not be measured: {one['failure']}"
