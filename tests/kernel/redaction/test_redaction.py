"""Held values leave in no form and no chunking; what fails withholds."""

import base64
import json
import logging
import time
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from hypothesis import given, settings, strategies as st

from agent_core.kernel.redaction import redactor as redactor_module
from agent_core.kernel.redaction.pattern_search import SecretSpan
from agent_core.kernel.redaction.redactor import WITHHELD, HeldOnly, RedactedStream, Redactor
from tests.support.harness.shared import shared_path
from tests.support.harness.sizes import at_size
from tiller_server.process.logs import RedactedLog

SECRETS = st.text(min_size=8, max_size=40).filter(
    lambda text: len(text.strip()) >= redactor_module.SHORTEST_CHARS
)
AROUND = st.text(alphabet="ab =:/\"'\n\t%.", max_size=30)
SIZES = st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=8)
FORMS = {
    "raw": lambda before, secret, after: f"{before}{secret}{after}",
    "json": lambda before, secret, after: json.dumps(f"{before}{secret}{after}"),
    "json, not ascii": lambda before, secret, after: json.dumps(
        f"{before}{secret}{after}", ensure_ascii=False
    ),
    "url": lambda before, secret, after: f"{before}{quote(secret, safe='')}{after}",
    "base64": lambda before, secret, after: _base64(f"{before}{secret}{after}"),
    "base64 in lines": lambda before, secret, after: base64.encodebytes(
        f"{before}{secret}{after}".encode()
    ).decode(),
}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _streamed(stream: RedactedStream, text: str, sizes: list[int]) -> str:
    pieces: list[str] = []
    place = turn = 0
    while place < len(text):
        size = sizes[turn % len(sizes)]
        pieces.append(stream.push(text[place : place + size]))
        place, turn = place + size, turn + 1
    return "".join((*pieces, stream.finish()))


def _survives(secret: str, text: str, form: str) -> bool:
    """Tell whether a text still gives the secret away."""
    if form.startswith("base64"):
        letters = "".join(text.split("[redacted:secret]")).replace("\n", "")
        data = base64.b64decode(letters + "=" * (-len(letters) % 4), validate=False)
        return secret.encode() in data
    return secret in text or json.dumps(secret)[1:-1] in text or quote(secret, safe="") in text


@pytest.mark.parametrize("form", FORMS)
@given(secret=SECRETS, before=AROUND, after=AROUND, sizes=SIZES)
def test_a_held_value_never_leaves(
    form: str, secret: str, before: str, after: str, sizes: list[int]
) -> None:
    secret = secret.strip()
    try:
        _ = secret.encode()
    except UnicodeEncodeError:
        return
    text = FORMS[form](before, secret, after)
    redactor = Redactor([secret])
    whole = redactor.held(text)
    assert "[redacted:secret]" in whole
    if not form.startswith("base64"):
        assert not _survives(secret, whole, form) or secret in "[redacted:secret]"
    assert _streamed(redactor.held_stream(), text, sizes) == whole


@given(
    secrets=st.lists(st.text(alphabet="ab", min_size=8, max_size=14), min_size=1, max_size=4),
    text=st.text(alphabet="ab\n", max_size=120),
    sizes=SIZES,
)
def test_values_that_overlap_are_taken_out_alike_in_any_chunking(
    secrets: list[str], text: str, sizes: list[int]
) -> None:
    redactor = Redactor(secrets)
    assert _streamed(redactor.held_stream(), text, sizes) == redactor.held(text)


@settings(max_examples=at_size(ci=4, campaign=100))  # each goes through all of them
@given(sizes=SIZES)
def test_known_shapes_are_taken_out_alike_in_any_chunking(sizes: list[int]) -> None:
    text = shared_path("data", "hostile", "secrets.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines():
        row = json.loads(line)
        whole = f"> {''.join(row['parts'])} <"
        streamed = _streamed(Redactor().stream(), whole, sizes)
        for number in row["secret_parts"]:
            part = row["parts"][number]
            assert len(part) < redactor_module.SHORTEST_CHARS or part not in streamed


def test_what_is_held_later_is_taken_out_from_then_on() -> None:
    redactor = Redactor()
    long = "x" * 5_000 + "plain-words-only"
    assert redactor.text(long) == long
    redactor.hold("plain-words-only", None, "short")
    assert redactor.text(long) == "x" * 5_000 + "[redacted:secret]"
    assert redactor.text("short") == "short"


def test_variables_with_a_secrets_name_are_held_but_no_paths_and_words_about_secrets() -> None:
    redactor = Redactor()
    redactor.hold_environment(
        {
            "LAB_TOKEN": "correct horse battery",
            "SSH_AUTH_SOCK": "/run/user/agent.sock",
            "SECRET_BACKEND": "kubernetes",
            "HOME": "/home/somebody",
            "API_KEY": "changeme",
            "AUTH_COOKIE_VALUE": "a1b2C3d4e5",
        }
    )
    text = (
        "correct horse battery /run/user/agent.sock kubernetes /home/somebody changeme a1b2C3d4e5"
    )
    assert redactor.text(text) == (
        "[redacted:secret] /run/user/agent.sock kubernetes /home/somebody changeme [redacted:secret]"
    )


def test_json_is_judged_by_its_names_and_pictures_stay() -> None:
    redactor = Redactor(["held-value-1"])
    picture = {"type": "image", "data": "ghp_" + "a1B2c3D4e5" * 3, "mimeType": "image/png"}
    value = {
        "password": "Tr0ub4dor3x",
        "n": 1,
        "deep": [{"held-value-1": "say held-value-1"}, picture],
    }
    assert redactor.json(value) == {
        "password": "[redacted:secret]",
        "n": 1,
        "deep": [{"[redacted:secret]": "say [redacted:secret]"}, picture],
    }


def test_who_must_see_everything_else_loses_only_what_is_held() -> None:
    only = HeldOnly(Redactor(["held-value-1"]))
    assert (
        only.text("PASSWORD=e9aQMvrarFccjP held-value-1")
        == "PASSWORD=e9aQMvrarFccjP [redacted:secret]"
    )
    assert only.json({"held-value-1": ["held-value-1", 1]}) == {
        "[redacted:secret]": ["[redacted:secret]", 1]
    }


def test_a_secret_without_end_needs_no_memory_without_end() -> None:
    stream = Redactor().stream()
    out = stream.push("token=") + "".join(stream.push("aB3" * 1_000) for _ in range(50))
    out += stream.push(" after") + stream.finish()
    assert out.startswith("token=[redacted:secret]")
    assert "aB3aB3" not in out
    assert out.endswith(" after")


class _Broken:
    """Fails whatever it is asked."""

    def spans(self, text: str) -> Iterator[SecretSpan]:
        raise RuntimeError("broken " + text)

    def begins_at(self, text: str) -> int:
        raise RuntimeError("broken " + text)


def _break(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = _Broken()
    monkeypatch.setattr(redactor_module, "secret_spans", broken.spans)
    monkeypatch.setattr(redactor_module.HeldValues, "spans", lambda _self, text: broken.spans(text))


@pytest.mark.parametrize("size", [20, 5_000, 100_000])
def test_a_redactor_that_fails_withholds(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    _break(monkeypatch)
    redactor = Redactor(["held-value-1"])
    text = "held-value-1 " * (size // 13 + 1)
    assert redactor.text(text) == WITHHELD
    assert redactor.held(text) == WITHHELD
    assert redactor.json({"some text": [text]}) == {WITHHELD: [WITHHELD]}
    stream = redactor.stream()
    assert stream.push(text) + stream.push(text) + stream.finish() == WITHHELD
    assert redactor.stream().finish() == WITHHELD


def test_the_log_holds_no_secret_not_even_in_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(["held-value-1"])
    formatter = RedactedLog(logging.Formatter("%(message)s"), redactor)

    def written(message: str, *arguments: object) -> str:
        with pytest.raises(ValueError, match="held-value-1") as why:
            _ = int("held-value-1 in an error")
        record = logging.LogRecord(
            "x", logging.ERROR, "f", 1, message, arguments, (why.type, why.value, why.tb)
        )
        return formatter.format(record)

    assert "held-value-1" not in written("told %s", "held-value-1")
    assert "cannot be put together" in written("%d", "no number held-value-1")
    _break(monkeypatch)
    assert written("told %s", "held-value-1") == WITHHELD


def test_it_is_fast_enough_for_what_commands_print() -> None:
    redactor = Redactor([f"value-{number}-Aa1" for number in range(10)])
    text = "2026-11-21 10:00:00 INFO GET /api/v1/items?id=3 200 key=abc token=12 -- ok\n" * 6_000
    begun = time.process_time()
    stream = redactor.held_stream()
    for place in range(0, len(text), 32_768):
        _ = stream.push(text[place : place + 32_768])
    held = len(text) / 1e6 / (time.process_time() - begun)
    begun = time.process_time()
    _ = redactor.text(text)
    whole = len(text) / 1e6 / (time.process_time() - begun)
    print(f"held values {held:.0f} MB/s, with patterns {whole:.1f} MB/s")
    assert held > 5
    assert whole > 1


class _Counting:
    """Finds nothing and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def spans(self, text: str) -> Iterator[SecretSpan]:
        self.asked += 1
        yield from ((0, 0, text) for _ in ())


async def test_a_long_text_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = _Counting()
    monkeypatch.setattr(redactor_module, "secret_spans", counting.spans)
    redactor = Redactor()
    long, short = "word " * 4_000, "word " * 10
    await redactor.prepare([long, short])
    assert counting.asked == 1
    assert redactor.text(long) == long
    await redactor.prepare([long])
    assert counting.asked == 1
    for number in range(redactor_module.REMEMBERED + 1):
        _ = redactor.text(f"{number} " + "x" * 3_000)
    counting.asked = 0
    assert redactor.text(long) == long
    assert counting.asked == 1


def test_what_was_withheld_is_looked_through_again(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor, text = Redactor(["held-value-1"]), "held-value-1 " + "x" * 3_000
    with monkeypatch.context() as broken:
        _break(broken)
        assert redactor.text(text) == WITHHELD
    assert redactor.text(text) == "[redacted:secret] " + "x" * 3_000


def test_json_under_another_name_is_judged_by_its_words_alone() -> None:
    value = {"name": "Tr0ub4dor3x", "token_file": "~/x1Y2z3w4", "text": "data"}
    assert Redactor().json(value) == value
    redactor = Redactor()
    redactor.hold_environment({"MY_TOKEN": "~/x1Y2z3w4q5"})
    assert not redactor.holds_any
    redactor.hold("held-value-1")
    assert redactor.holds_any
    assert Redactor().text("x:y@") == "x:y@"


def test_a_stream_that_failed_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(["held-value-1"])
    stream = redactor.held_stream()
    assert stream.push("say held-va") == "say "
    with monkeypatch.context() as broken:
        _break(broken)
        assert stream.finish() == WITHHELD
    assert stream.push("more") + stream.finish() == ""


@pytest.mark.parametrize("before", ["", "x", "xy"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_of_base64_only_the_edges_stay(before: str, after: str) -> None:
    """All signs that come of the value alone are gone, wherever it begins."""
    secret = "s3cret~value?>"
    whole = _base64(before + secret + after)
    for coded in (whole, whole.replace("+", "-").replace("/", "_")):
        clean = Redactor([secret]).held(coded)
        left, _, right = clean.partition("[redacted:secret]")
        assert len(left) <= len(before) * 8 // 6 + 1
        assert len(right) <= -(-len(after) * 8 // 6) + 3
        assert clean != coded


def test_lines_of_base64_are_one_text_for_the_search_and_other_lines_stay() -> None:
    secret = "a-value-of-the-program"
    coded = _base64(f"xx{secret}yy")
    for size in (1, 5, 9):
        lines = "\n".join(coded[place : place + size] for place in range(0, len(coded), size))
        clean = Redactor([secret]).held(f"first\n{lines}\nlast")
        assert clean.startswith("first\n")
        assert clean.endswith("\nlast")
        assert "[redacted:secret]" in clean
        stream = Redactor([secret]).held_stream()
        assert "".join(map(stream.push, f"first\n{lines}\nlast")) + stream.finish() == clean
        assert sum(len(line) for line in clean.split("\n")[1:-1]) < len("[redacted:secret]") + 12


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_may_end_in_two_signs(end: str) -> None:
    secret = "a-value-of-the-program"
    coded = _base64(secret)
    text = f"fir~st{end}{coded[:11]}{end}{coded[11:]}{end}last"
    redactor = Redactor([secret])
    clean = redactor.held(text)
    assert clean.startswith(f"fir~st{end}[redacted:secret]")
    assert clean.endswith(f"{end}last")
    stream = redactor.held_stream()
    assert "".join(map(stream.push, text)) + stream.finish() == clean


def test_who_holds_nothing_finds_nothing_and_keeps_nothing_back() -> None:
    stream = Redactor().held_stream()
    assert [stream.push("a\nb"), stream.push("c"), stream.finish()] == ["a\nb", "c", ""]


def test_a_value_is_found_as_often_as_it_stands_there_and_from_eight_signs_on() -> None:
    redactor = Redactor(["12345678", "1234567", " padded-value "])
    assert redactor.held("12345678123456781234567") == "[redacted:secret]" * 2 + "1234567"
    assert redactor.held("padded-value") == "[redacted:secret]"
    assert redactor.held("aaaa") == "aaaa"
    assert Redactor(["abababab"]).held("-ababababab-") == "-[redacted:secret]-"
    assert Redactor(["aaaaaaaa"]).held("-aaaaaaaaaaa-") == "-[redacted:secret]-"


def test_hex_and_json_inside_of_json_are_forms_too() -> None:
    secret = 'quo"ted\\value'
    redactor = Redactor([secret])
    for form in (
        secret.encode().hex(),
        secret.encode().hex().upper(),
        json.dumps(json.dumps(secret)),
        quote(secret).lower(),
    ):
        assert "[redacted:secret]" in redactor.held(f"<{form}>"), form


@pytest.mark.parametrize(
    "secret", ['"quoted value', "value \\quoted\\", 'schl\u00fcssel-\u00e4"', "plain-value"]
)
def test_nothing_of_a_value_stays_around_its_mark(secret: str) -> None:
    redactor, mark = Redactor([secret]), "[redacted:secret]"
    data = secret.encode()
    for form in (secret, quote(secret), quote(secret, safe=""), data.hex(), data.hex().upper()):
        assert redactor.held(f"<{form}>") == f"<{mark}>"
    for ascii_only in (True, False):
        assert redactor.held(json.dumps(secret, ensure_ascii=ascii_only)) == f'"{mark}"'
    assert redactor.held(json.dumps(json.dumps(secret))) == f'"\\"{mark}\\""'


def test_no_more_is_kept_back_than_may_be_a_beginning() -> None:
    stream = Redactor(["held-value-1"]).held_stream()
    pieces = [stream.push(one) for one in ("say hel", "l", "held-value-", "12 held", "")]
    assert [*pieces, stream.finish()] == ["say ", "hell", "", "[redacted:secret]2 ", "", "held"]
