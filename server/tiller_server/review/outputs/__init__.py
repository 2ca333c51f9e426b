"""The forms a review can be written in."""

from collections.abc import Callable, Mapping
from typing import Final

from tiller_server.review.findings.result import Review
from tiller_server.review.outputs.annotations import render_annotations
from tiller_server.review.outputs.code_quality import render_code_quality
from tiller_server.review.outputs.json_report import render_json
from tiller_server.review.outputs.markdown import render_markdown
from tiller_server.review.outputs.sarif import render_sarif
from tiller_server.review.outputs.terminal import render_text

FORMATS: Final[Mapping[str, Callable[[Review], str]]] = {
    "text": render_text,
    "md": render_markdown,
    "json": render_json,
    "sarif": render_sarif,
    "github": render_annotations,
    "gitlab": render_code_quality,
}
"""By the name that `--format` takes."""
