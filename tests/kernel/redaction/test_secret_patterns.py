"""What strangers' secrets look like, measured on the rows that may be tuned on."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_core.kernel.redaction.pattern_search import is_secret_name, looks_secret, secret_spans
from agent_core.kernel.redaction.redactor import Redactor
from tests.support.harness.shared import shared_path
from tests.support.harness.untraced import processor_s

Row = dict[str, Any]


def _rows(expect: str) -> list[Row]:
    text = shared_path("data", "hostile", "secrets.jsonl").read_text(encoding="utf-8")
    rows = (json.loads(line) for line in text.splitlines())
    return [row for row in rows if row["expect"] == expect]


def _pieces(row: Row) -> Iterator[tuple[int, int]]:
    """Give where the secret parts of a row lie."""
    place = 0
    for number, part in enumerate(row["parts"]):
        if part and number in row["secret_parts"]:
            yield place, place + len(part)
        place += len(part)


def _is_found(row: Row) -> bool:
    spans = [(begin, end) for begin, end, _ in secret_spans("".join(row["parts"]))]
    places = [place for begin, end in _pieces(row) for place in range(begin, end)]
    return all(any(begin <= place < end for begin, end in spans) for place in places)


def test_all_secrets_are_found_and_no_harmless_line_is_touched() -> None:
    secret, harmless = _rows("redact"), _rows("keep")
    missed = [row["kind"] for row in secret if not _is_found(row)]
    touched = [row["kind"] for row in harmless if any(secret_spans("".join(row["parts"])))]
    recall, false = 1 - len(missed) / len(secret), len(touched) / len(harmless)
    print(f"found {recall:.1%} of {len(secret)}, touched {false:.1%} of {len(harmless)} harmless")
    assert not missed
    assert not touched


def test_no_secret_part_of_a_found_row_survives() -> None:
    redactor = Redactor()
    for row in _rows("redact"):
        text = "".join(row["parts"])
        clean = redactor.text(text)
        for begin, end in _pieces(row):
            if _is_found(row):
                assert text[begin:end] not in clean, row["kind"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("DB_PASSWORD=e9aQMvrarFccjP", "DB_PASSWORD=[redacted:secret]"),
        ('{"client_secret": "a1B2c3D4e5F6"}', '{"client_secret": "[redacted:secret]"}'),
        ("postgres://app:s3cr3t@db/x", "postgres://app:[redacted:password]@db/x"),
        ("Authorization: Bearer abcDEF123456ghiJKL", "Authorization: Bearer [redacted:authorization]"),
        ("?sig=a1B2c3D4e5F6&x=1", "?sig=[redacted:token]&x=1"),
        ("curl -u me:Tr0ub4dor3 https://x", "curl -u me:[redacted:password] https://x"),
        ("tool --api-key a1B2c3D4e5F6 go", "tool --api-key [redacted:secret] go"),
        ("machine h login me password a1B2c3", "machine h login me password [redacted:password]"),
    ],
)  # fmt: skip
def test_what_a_secret_follows_gives_it_away(text: str, clean: str) -> None:
    assert Redactor().text(text) == clean


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()",
        "token: ${{ secrets.TOKEN }}",
        "api_key = settings.api_key",
        "secretName: kubernetes-tls",
        "max_tokens = 128000",
        "password: changeme",
        "PATH=/usr/local/bin:/usr/bin",
        "KEY_FILE=/etc/ssl/private.pem",
        "https://user:password@host",
        "tokenizer = AutoTokenizer1234",
        "[redacted:github-token]",
        "password=[redacted:secret]",
    ],
)
def test_words_references_and_marks_stay(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("GITHUB_TOKEN", True), ("DB_PASSWORD", True), ("apiKey", True), ("PGPASSWORD", True), ("MYSQL_PWD", True),
        ("AWS_SECRET_ACCESS_KEY", True), ("npm_config__auth", True), ("PATH", False), ("PWD", False),
        ("AUTHOR", False), ("MAX_TOKENS", False), ("TOKENIZERS_PARALLELISM", False), ("KEYMAP", False),
        ("COMPASS", False), ("PATTERN", False),
    ],
)  # fmt: skip
def test_names_of_secrets(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    "word", ["", "short1", "a" * 30, "production", "kubernetes-tls-2", "1.2.3.4", "12345678"]
)
def test_words_and_numbers_are_no_secrets(word: str) -> None:
    assert not looks_secret(word)


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "-",
        "password=",
        "://a:",
        "-----BEGIN " + "PRIVATE KEY-----",
        "eyJ.",
        "x.eyJ",
        "token ",
        "Bearer ",
        "\\",
        "\\/",
        "\\" * 900 + "/",
        "\\\n",
        "\\u003d",
        "\\\\\\n",
        "mysql ",
        "--",
        "aws/",
        "cookie=a",
        "cookie=a; ",
        'key="',
        "key is ",
        "A" * 17 + "\n",
    ],
)
def test_no_text_makes_it_slow(piece: str) -> None:
    """Eight times the text must not take much more than eight times as long."""

    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        return processor_s(lambda: list(secret_spans(text)))

    def grows_evenly() -> bool:
        return seconds(32_000) < 40 * max(seconds(4_000), 0.002)

    _ = seconds(1_000)
    # Whoever shares the caches may spoil one measurement; what grows with the square spoils all.
    assert any(grows_evenly() for _ in range(3))
