"""Writes the reports of an evaluation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.errors import StorageUnavailable
from tiller_server.evaluation.reports.html_report import as_html
from tiller_server.evaluation.reports.text_report import as_json, as_table
from tiller_server.evaluation.result import Evaluation

JSON: Final = "report.json"
TABLE: Final = "report.txt"
PAGE: Final = "report.html"


def write_reports(evaluation: Evaluation, folder: Path) -> Sequence[Path]:
    """Write the reports into a folder, in the place of earlier ones; return their files. Blocking.

    Raises:
        StorageUnavailable: One cannot be written.
    """
    documents = {JSON: as_json(evaluation), TABLE: as_table(evaluation), PAGE: as_html(evaluation)}
    for name, document in documents.items():
        try:
            _ = (folder / name).write_text(document, "utf-8")
        except OSError as error:
            message = f"{str(folder / name)!r} could not be written ({error.strerror})"
            raise StorageUnavailable(message) from error
    return [folder / name for name in documents]
