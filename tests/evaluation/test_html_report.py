"""The page of an evaluation is one file that loads nothing, and shows foreign text as text."""

from html.parser import HTMLParser

from typing_extensions import override

from tiller_server.evaluation.reports.html_report import as_html
from tiller_server.evaluation.reports.text_report import as_table
from tiller_server.evaluation.result import Attempt, Evaluation, SkippedTask
from tiller_server.evaluation.review_score import ReviewScore

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


def evaluation(*, k: int = 2, model: str = "lab/m") -> Evaluation:
    return Evaluation(
        version="1",
        model=model,
        suite="/tasks",
        started_at="2026-01-01T00:00:00+00:00",
        k=k,
        containment="full",
        attempts=(
            Attempt(task="a", kind="repair", number=1, verdict="passed", cost_usd=0.5, turns=3),
            Attempt(
                task="a",
                kind="repair",
                number=2,
                verdict="failed",
                reasons=(HOSTILE,),
                cost_usd=None,
                session="/results/a-2/session.jsonl",
            ),
            Attempt(
                task="r",
                kind="review",
                number=1,
                verdict="invalid",
                reasons=("an outage",),
                review=ReviewScore(defects=4, found=3, doubles=1, noise=1, lines=250),
            ),
        ),
        skipped=(SkippedTask(task="js", kind="repair", reason="node is not installed"),),
    )


class Page(HTMLParser):
    """Collects elements, attributes and text of a page."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.texts: list[str] = []
        self.feed(document)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    @override
    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_foreign_text_is_text_and_nothing_is_loaded() -> None:
    page = Page(as_html(evaluation(model=HOSTILE)))
    assert HOSTILE in page.texts
    assert not {"script", "img", "link", "iframe", "a"} & set(page.tags)
    assert not {"src", "href", "onerror"} & page.names
    assert "http:" not in as_html(evaluation())
    assert "https:" not in as_html(evaluation())


def test_the_page_has_what_the_table_has() -> None:
    text = " ".join(Page(as_html(evaluation())).texts)
    for part in ("pass^2", "1 of 2", "≥ $0.5000", "75.0 %", "4.0", "node is not installed"):
        assert part in text, part
    assert "tiller sessions import" in text


def test_the_table_names_attempts_that_are_not_counted() -> None:
    lines = as_table(evaluation()).splitlines()
    assert "a     repair      1/2      2       0  ≥ $0.5000  0.0 s" in lines
    assert "r     review  invalid      0       0    unknown  0.0 s" in lines
    assert "r #1 invalid: an outage" in lines
    assert "js skipped: node is not installed" in lines
    assert (
        "all: pass@1 50.0 % of 2 tasks, pass@2 100.0 %, pass^2 0.0 %, 1 attempt not counted"
        in lines
    )
    assert "reviews: recall 75.0 %, precision 75.0 %, 1 double, noise 4.0 per 1,000 lines" in lines


def test_with_one_attempt_each_there_is_only_pass_at_1() -> None:
    assert "pass^" not in as_table(evaluation(k=1))
    assert "pass^" not in as_html(evaluation(k=1))
