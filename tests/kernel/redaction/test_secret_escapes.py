"""A secret is found behind, in front of and across escapes, as JSON, program texts and shells write them."""

import json
import re

import pytest

from agent_core.kernel.redaction.redactor import Redactor
from tests.kernel.redaction.test_secret_shapes import CASES

GONE = "[redacted:"
PIECE_CHARS = 6
"""So many characters of a secret in a row must not be left."""
ESCAPES = {
    "line break": r"\n",
    "tab": r"\t",
    "carriage return": r"\r",
    "both": r"\r\n",
    "form feed": r"\f",
    "nothing": r"\0",
    "JSON in JSON": r"\\n",
    "JSON in JSON in JSON": r"\\\\n",
    "JSON in JSON, both": r"\\r\\n",
    "a code": r"\u000a",
    "a code in JSON in JSON": r"\\u000a",
    "an equals sign": r"\u003d",
    "no ASCII": r"\u5bc6",
    "a byte": r"\x0a",
    "a byte of several": r"\xe5\xaf\x86",
    "octal": r"\012",
    "a long code": r"\U0000000a",
    "a code in braces": r"\u{a}",
    "a colour": r"\u001b[31m",
    "a colour in octal": r"\033[0;31m",
    "a quotation mark": r"\"",
    "an address": "%20",
    "mail": "=20",
}
HARMLESS = (
    r"C:\new\tools\readme.txt \table \beta \sk-circle-fade-dot",
    r"{\"o\": \"a\nsk-folding-cube sk-cube2\n\"}",
    r"\bpassword\b\s*[:=]\s*(\S+)",
    r"{\"env\": \"GITHUB_TOKEN\u003d${GITHUB_TOKEN}\"}",
    r"\u0022integrity\u0022: \u0022sha512-qzdgNqIhDQhEWDNOd\u002fIy0HnPRlS4MkFh==\u0022",
    r"max_tokens \u003d 128000\npassword: changeme",
    r"ghp_[A-Za-z0-9]{36}\nghp_abc\nAKIAISH is not a key",
    "password: \\\n  changeme",
    "RUN apt-get install \\\n    secret-tool \\\n    tokenizers2 \\\n    libpassword-dev && \\\n    true",
    r"https:\/\/github.com\/o\/r\/blob\/cfd8bef05c13774ecf36e94653dd12b93ab55e37\/a.py",
    r"\nhttps:\/\/open.feishu.cn\/document\/client-docs\/bot-v3\/add-custom-bot",
    "https://open.feishu.cn/open-apis/bot/v2/hook/xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
    "https://open.feishu.cn/open-apis/bot/v2/hook/{token}",
    "https://open.feishu.cn/open-apis/bot/v2/hook/your-hook-token",
)


def _parts(line: str) -> tuple[str, str, str]:
    before, secret, after = re.split("[«»]", line)
    return before, secret, after


def _left(secret: str, text: str) -> list[str]:
    """Return pieces of a secret that stand in a text; words of it do not count."""
    pieces = (secret[at : at + PIECE_CHARS] for at in range(len(secret) - PIECE_CHARS + 1))
    return [piece for piece in pieces if piece in text and not piece.islower()]


def _in_pieces(text: str, size: int) -> str:
    stream = Redactor().stream()
    pieces = [stream.push(text[place : place + size]) for place in range(0, len(text), size)]
    return "".join((*pieces, stream.finish()))


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
def test_every_kind_of_secret_is_found_between_escapes(escape: str) -> None:
    for _, line in CASES:
        before, secret, after = _parts(line)
        text = f'{{"o": "a{escape}{before}{secret}{after}{escape}b"}}'
        clean = Redactor().text(text)
        assert GONE in clean, text
        assert not _left(secret, clean), clean
        assert clean.startswith(f'{{"o": "a{escape[:1]}'), clean


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_every_kind_of_secret_is_found_in_json_in_json(depth: int) -> None:
    for _, line in CASES:
        before, secret, after = _parts(line)
        text = f"a\n\t{before}{secret}{after}\r\nb"
        for _ in range(depth):
            text = json.dumps(text)
            secret = json.dumps(secret)[1:-1]
        assert not _left(secret, Redactor().text(text)), text


def test_every_kind_of_secret_is_found_in_what_python_prints() -> None:
    for _, line in CASES:
        before, secret, after = _parts(line)
        text = f'it\'s "said"\n{before}{secret}{after}\n'
        for printed in (repr(text), repr(text.encode()), repr([repr(text)])):
            assert not _left(secret, Redactor().text(printed)), printed


def test_what_a_secret_follows_may_be_written_as_codes() -> None:
    """Other signs than letters as `\\u003d`: some programs write all of HTML's signs so, some every sign."""
    for kind, line in CASES:
        before, secret, after = _parts(line)
        text = "".join(
            sign if sign.isalnum() or sign in " _-" else f"\\u{ord(sign):04x}" for sign in before
        )
        clean = Redactor().text(f"see {text}{secret}{after} end")
        assert not _left(secret, clean), (kind, clean)


@pytest.mark.parametrize("broken", ["\\\n", "\\\r\n", "\\\n    ", "\\\\\\n", "\\\\\\r\\n"])
def test_every_kind_of_secret_is_found_across_a_continued_line(broken: str) -> None:
    for _, line in CASES:
        before, secret, after = _parts(line)
        for place in (3, 5, len(secret) // 2):
            head, tail = secret[:place], secret[place:]
            clean = Redactor().text(f"see {before}{head}{broken}{tail}{after} end")
            # Of a line's beginning fewer signs than a piece has may be left.
            assert not _left(head, clean) + _left(tail, clean), clean


@pytest.mark.parametrize("head", ["sk-", "sk-aB3xY9kQ", "s"])
@pytest.mark.parametrize("broken", ["\\\n", "\\\n  ", "\\\\\\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 11])
def test_a_key_across_a_continued_line_leaves_no_piece_of_a_stream(
    head: str, broken: str, size: int
) -> None:
    key = "sk-" + "aB3xY9kQ2zLm7Rt5Wp8Vj4Nc6Hd1Fg0Ks"
    text = f"export KEY_OF_MINE {head}{broken}{key.removeprefix(head)} end"
    clean = _in_pieces(text, size)
    assert clean == Redactor().text(text) == f"export KEY_OF_MINE {GONE}api-key] end"


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_key_behind_an_escape_leaves_no_piece_of_a_stream(escape: str, size: int) -> None:
    for key in (
        "ghp_" + "aB3xY9kQ2z" * 3,
        "glpat-" + "aB3xY9kQ2zLm7Rt5Wp8V",
        "AIza" + "aB3xY9kQ2z" * 3,
    ):
        text = f"say a{escape}{key} end"
        clean = _in_pieces(text, size)
        assert clean == Redactor().text(text)
        assert re.fullmatch(rf"say a{re.escape(escape)}\[redacted:[a-z-]+\] end", clean), clean


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_with_escapes_stays(text: str) -> None:
    assert Redactor().text(text) == text
    assert Redactor().text(json.dumps(text)) == json.dumps(text)
    assert _in_pieces(text, 5) == text


UUID = "932e1b0d-c526-d76c-4493-c3ee8cffbfaa"


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        (f"https://open.feishu.cn/open-apis/bot/v2/hook/{UUID}", "https://open.feishu.cn/open-apis/bot/v2/hook/"),
        (f"https://open.larksuite.com/open-apis/bot/v2/hook/{UUID}", "https://open.larksuite.com/open-apis/bot/v2/hook/"),
        ("https://open.feishu.cn/open-apis/bot/hook/932e1b0dc526d76c4493c3ee8cffbfaa", "https://open.feishu.cn/open-apis/bot/hook/"),
        ("https://www.feishu.cn/flow/api/trigger-webhook/932e1b0dc526d76c4493c3ee8cffbfaa", "https://www.feishu.cn/flow/api/trigger-webhook/"),
        ("https://hooks.slack.com/services/T0AB12/B0CD34/aB3xY9kQ2zLm7Rt5Wp8Vj4Nc", "https://hooks.slack.com/services/"),
        ("https://discord.com/api/v10/webhooks/123456789/aB3xY9kQ2zLm7Rt5Wp8Vj4Nc", "https://discord.com/api/v10/webhooks/"),
        (f"https://x.webhook.office.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/932e/{UUID}", "https://x.webhook.office.com/"),
        (f"https://outlook.office.com/webhook/{UUID}@{UUID}/IncomingWebhook/932e/{UUID}", "https://outlook.office.com/webhook/"),
        ("https://prod-1.logic.azure.com:443/workflows/932e/triggers/manual/paths/invoke?api-version=1&sig=aB3xY9kQ2zLm7Rt5Wp8V",
         "https://prod-1.logic.azure.com:443/workflows/932e/triggers/manual/paths/invoke?api-version=1&sig="),
        (f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={UUID}", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key="),
    ],
)  # fmt: skip
def test_an_address_of_a_chat_that_anybody_may_write_to_is_a_secret(url: str, kept: str) -> None:
    secret = url.removeprefix(kept)
    for written in (f"see {url} end", json.dumps(f"a\n{url}").replace("/", "\\/")):
        clean = Redactor().text(written)
        assert GONE in clean
        assert not _left(secret.replace("/", "\\/"), clean), clean
    assert re.fullmatch(
        rf"see {re.escape(kept)}\[redacted:\w+\] end", Redactor().text(f"see {url} end")
    )
    for size in (1, 5):
        assert not _left(secret, _in_pieces(f"see {url} end", size))
