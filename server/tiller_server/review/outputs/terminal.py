"""A review for the terminal: the summary first, then each finding with the lines it is about. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from agent_core.kernel.text import cell_count, plain
from agent_core.kernel.values import Value
from tiller_server.review.findings.result import Finding, Review, Severity
from tiller_server.review.findings.suggestions import replaced_by
from tiller_server.review.outputs.encoding import encodable
from tiller_server.review.outputs.summary import facts, headline, left_out_lines, place
from tiller_server.review.outputs.text_width import broken, cut

AROUND: Final = 2
"""Lines shown before and after a finding."""
MOST_LINES: Final = 12
MOST_LEFT_OUT: Final = 12
NARROWEST: Final = 10
"""In a window that is narrower still the terminal breaks the lines."""
LEAST_CODE: Final = 30
"""So much is shown of a line of code, also where the terminal has to break it."""
COLOURS: Final[Mapping[Severity, str]] = {"error": "31;1", "warning": "33;1", "note": "36;1"}
DIM: Final = "2"
BOLD: Final = "1"
RED: Final = "31"
GREEN: Final = "32"


class TerminalLayout(Value, frozen=True, kw_only=True):
    """Format of the output: width, colour, and the lines of the files."""

    width: int = 100
    """In cells of a terminal."""
    colour: bool = False
    texts: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict[str, "Sequence[str]"])
    """By path the lines of a file; a finding in another shows only its evidence."""

    def styled(self, text: str, style: str) -> str:
        """Return a text in a style, when there are any."""
        return f"\x1b[{style}m{text}\x1b[0m" if self.colour and text else text

    def wrapped(self, text: str, *, indent: str = "") -> Iterator[str]:
        """Wrap a text at the width; fenced code and lines that fit stay as they are."""
        is_code = False
        for line in plain(text).split("\n"):
            fence = line.lstrip().startswith("```")
            is_code = is_code != fence
            if fence or is_code or cell_count(line) + len(indent) <= self.width:
                yield f"{indent}{line}".rstrip()
            else:
                room = max(NARROWEST, self.width - len(indent))
                yield from (f"{indent}{part}" for part in broken(line, room))


def render_terminal(review: Review, paper: TerminalLayout) -> str:
    """Write a report for people at a terminal."""
    return encodable("\n".join(_lines(review, paper))) + "\n"


def render_text(review: Review) -> str:
    """Write the same without colours, for a file."""
    return render_terminal(review, TerminalLayout())


def _lines(review: Review, paper: TerminalLayout) -> Iterator[str]:
    yield paper.styled(f"Review: {headline(review)}", BOLD)
    if review.partial is not None:
        yield from _partial(review.partial, paper)
    yield ""
    yield from paper.wrapped(review.summary)
    for finding in review.findings:
        yield ""
        yield from _finding(finding, paper)
    yield ""
    for name, value in facts(review):
        yield paper.styled(f"{name + ':':<10} {value}", DIM)
    for line in left_out_lines(review, most=MOST_LEFT_OUT):
        yield from (paper.styled(one, DIM) for one in paper.wrapped(f"- {line}"))


def _partial(why: str, paper: TerminalLayout) -> Iterator[str]:
    for line in paper.wrapped(f"PARTIAL: {why}"):
        yield paper.styled(line, COLOURS["warning"])


def _finding(finding: Finding, paper: TerminalLayout) -> Iterator[str]:
    head = paper.styled(finding.severity, COLOURS[finding.severity])
    yield f"{head} {paper.styled(plain(finding.title), BOLD)}"
    sure = f"{finding.confidence * 100:.0f} % sure"
    yield paper.styled(f"  --> {plain(place(finding))} · {finding.category} · {sure}", DIM)
    yield from _frame(finding, paper)
    yield from paper.wrapped(finding.message, indent="  ")
    if finding.suggestion is not None:
        yield from _suggested(finding, paper)


def _frame(finding: Finding, paper: TerminalLayout) -> Iterator[str]:
    lines = paper.texts.get(finding.path)
    if lines is None:
        shown = list(enumerate(finding.evidence.split("\n"), start=finding.line))
    else:
        first = max(1, finding.line - AROUND)
        last = min(len(lines), finding.end_line + AROUND)
        shown = [(number, lines[number - 1]) for number in range(first, last + 1)]
    digits = len(str(shown[-1][0])) if shown else 1
    for number, text in shown[:MOST_LINES]:
        is_meant = finding.line <= number <= finding.end_line
        mark = ">" if is_meant else " "
        row = f"  {mark} {number:>{digits}} | {_cut(text, paper.width - digits - 7)}".rstrip()
        yield row if is_meant else paper.styled(row, DIM)
    if len(shown) > MOST_LINES:
        yield paper.styled(f"    {'':>{digits}} | … {len(shown) - MOST_LINES} more lines", DIM)


def _suggested(finding: Finding, paper: TerminalLayout) -> Iterator[str]:
    suggestion = finding.suggestion
    if suggestion is None:
        return
    lines = paper.texts.get(finding.path, ())
    yield paper.styled("  suggested:", DIM)
    for text in lines[suggestion.line - 1 : suggestion.end_line]:
        yield paper.styled(f"    - {_cut(text, paper.width - 6)}", RED)
    for text in replaced_by(suggestion):
        yield paper.styled(f"    + {_cut(text, paper.width - 6)}", GREEN)
    if not suggestion.replacement and not lines:
        yield f"    delete lines {suggestion.line} to {suggestion.end_line}"


def _cut(text: str, room: int) -> str:
    return cut(plain(text).expandtabs(4), max(LEAST_CODE, room))
