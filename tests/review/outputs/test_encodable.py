"""A name of a file that is no UTF-8 costs no report."""

import pytest

from tests.support.review.reviews import a_rich_review
from tiller_server.review.outputs import FORMATS
from tiller_server.review.outputs.json_report import read_json


@pytest.mark.parametrize("name", FORMATS)
def test_every_report_can_be_written_as_utf_8(name: str) -> None:
    written = FORMATS[name](a_rich_review()).encode("utf-8")
    assert b"bad" in written


def test_a_stored_review_with_such_a_name_can_be_read_again() -> None:
    made = a_rich_review()
    read = read_json(FORMATS["json"](made).encode("utf-8"), name="review.json")
    assert [one.path for one in read.findings][-1] == "bad\ufffd.py"
    assert [one.fingerprint for one in read.findings] == [one.fingerprint for one in made.findings]
