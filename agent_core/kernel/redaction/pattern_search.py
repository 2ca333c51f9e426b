"""Knows where strangers' secrets lie: spans of a text that are probably keys, tokens or passwords. Best effort, linear."""

import re
import string
from collections.abc import Iterator
from functools import cache
from typing import Final

from agent_core.kernel.redaction.patterns import (
    BEHIND_ESCAPE,
    SHAPES,
    STARTS,
    SecretPattern,
    aws_like,
    ends_as_secret,
    escape_end,
    is_cookie,
    is_drawn,
    is_placeholder,
    is_secret_name,
    looks_secret,
    quoted_secret,
    unescaped,
    unescaped_beginning,
)

__all__ = [
    "LONGEST_CHARS",
    "SecretSpan",
    "ends_as_secret",
    "is_placeholder",
    "is_secret_name",
    "looks_secret",
    "secret_begins_at",
    "secret_spans",
]

SecretSpan = tuple[int, int, str]
"""From, to and what it is."""
LONGEST_CHARS: Final = 16_384
"""A secret that is longer than this is found in part."""

_REST: Final = r"""[^\s"'`,;<>|\\]*"""
_JUDGED_CHARS: Final = 1_024
"""So much of a value says whether it is a secret; repeated names would make longer ones slow."""
_LOOKED_AT_CHARS: Final = 192
"""So much of a value is given to its judge: a text of names alone is judged again at every name."""
_BEFORE: Final = 64
_AWS_LIKE: Final = (
    rf"(?:(?<![A-Za-z0-9+/=_.\-])|{BEHIND_ESCAPE})" + r"[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=_.\-])"
)
_BOT_LIKE: Final = (
    rf"(?=[MNO])(?:(?<![A-Za-z0-9_.\-])|{BEHIND_ESCAPE})"
    r"[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,38}(?![A-Za-z0-9_.\-])"
)
_KEY_BEGIN: Final = "-----BEGIN "
_KEY_HEAD: Final = (
    r"-----BEGIN (?:(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----"
)
_KEY_BETWEEN: Final = r"""[ \t\r\n"'+>|,]|\\{1,4}[nrt]|\d{1,6}[\t|:→]"""
_KEY_BODY: Final = rf"(?:{_KEY_BETWEEN}|(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID): [^\n\\]{{0,200}}|[A-Za-z0-9+/=]{{16,}})*"
_SHORT_LINE: Final = 120
_KEY_TAIL: Final = (
    r"(?:[A-Za-z0-9+/=]{0,16}|[A-Z][A-Za-z\-]{0,12}(?::[^\n]{0,99})?|\\{1,4}|\d{1,6})"
    rf"(?:(?:{_KEY_BETWEEN})*-[-A-Za-z0-9 ]{{0,60}})?"
)
_MAY_BE_DRAWN: Final = r"^[^0-9$]{0,400}[0-9$]"
_KEY_END: Final = (
    rf"(?:(?:[A-Za-z0-9+/=]{{1,15}}(?:{_KEY_BETWEEN}){{1,40}}){{0,2}})"
    r"-----END (?:(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----(?:\\{1,4}[nr])*"
)


_RARE: Final = "_-=:@/.<\"'$~?&"
"""Signs of starts that prose has few of, the rarer ones first."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def secret_spans(text: str) -> list[SecretSpan]:
    """Find what looks like a secret; spans may overlap and come in no order."""
    spans = _spans(text)
    plain = unescaped(text)
    if plain is not None:
        for begin, end, kind in _spans(plain.text):
            spans.append((plain.place_before(begin), plain.place_before(end), kind))
    return spans


def _spans(text: str) -> list[SecretSpan]:
    small = _folded(text)
    spans = list(_private_keys(text)) if _KEY_BEGIN in text else []
    for shape, start in _starts_in(text, small):
        spans.extend(_shaped(shape, start, text, small if shape.folded else text))
    if "aws" in small or "AKIA" in text or "ASIA" in text:
        for found in _compiled(_AWS_LIKE).finditer(text):
            if aws_like(found[0]):
                spans.append((*found.span(), "aws-secret"))
    for found in _compiled(_BOT_LIKE).finditer(text):
        if is_drawn(found[0]):
            spans.append((*found.span(), "bot-token"))
    return spans


def _starts_in(text: str, small: str) -> list[tuple[SecretPattern, str]]:
    """Return the starts that stand in a text: a stream asks at every few signs, and most texts have next to none.

    In the order of the table: where two kinds fit the same, the first one gives the name. Loops, because a generator
    for each group of starts is most of what a short text costs.
    """
    found: list[tuple[int, str]] = []
    for sign, exact, folded in _starts_by_sign():
        if not sign or sign in text:
            for start in exact:
                if start[1] in text:
                    found.append(start)  # noqa: PERF401 - see above
        if not sign or sign in small:
            for start in folded:
                if start[1] in small:
                    found.append(start)  # noqa: PERF401 - see above
    if not found:
        return []
    return [(SHAPES[number], start) for number, start in sorted(found)]


_Starts = tuple[tuple[int, str], ...]
"""Starts, each with its shape's place in the table."""


@cache
def _starts_by_sign() -> tuple[tuple[str, _Starts, _Starts], ...]:
    """Group all starts by a sign that stands in them and is rare in prose; those with none are always looked for."""
    groups: dict[str, tuple[list[tuple[int, str]], list[tuple[int, str]]]] = {}
    for number, shape in enumerate(SHAPES):
        for start in shape.starts:
            sign = next((one for one in _RARE if one in start), "")
            exact, folded = groups.setdefault(sign, ([], []))
            (folded if shape.folded else exact).append((number, start))
    return tuple((sign, tuple(exact), tuple(folded)) for sign, (exact, folded) in groups.items())


def _shaped(shape: SecretPattern, start: str, text: str, hay: str) -> Iterator[SecretSpan]:
    """Find secrets of one shape behind one of its starts; `hay` is the text as that is written."""
    match = _compiled(shape.pattern).match
    place = hay.find(start)
    while place >= 0:
        span = _judged(shape, match(text, place))
        if span is not None:
            yield (*_to_its_end(text, span), shape.kind)
        place = hay.find(start, max(place + len(start), 0 if span is None else span[1]))


def _judged(shape: SecretPattern, found: re.Match[str] | None) -> tuple[int, int] | None:
    """Return where the secret lies in what was found, if it is one."""
    if found is None:
        return None
    groups = found.re.groupindex
    if "q" in groups and found["q"] is not None:
        return found.span("q") if quoted_secret(found["q"]) else None
    group = "v" if "v" in groups else 0
    value: str | None = found[group]
    if value is None or (shape.judge is not None and not shape.judge(_beginning(shape, value))):
        return None
    begin, end = found.span(group)
    return _with_before(shape, found.string, begin), end


def _beginning(shape: SecretPattern, value: str) -> str:
    """Return what is judged of a value; of a cookie all of it, for each pair may be the key."""
    return value if shape.judge is is_cookie else value[:_LOOKED_AT_CHARS]


def _with_before(shape: SecretPattern, text: str, begin: int) -> int:
    """Return the beginning of a secret, moved back over the preceding characters that belong to it."""
    if not shape.before:
        return begin
    signs = shape.before.replace("alnum", string.ascii_letters + string.digits)
    head = text[max(0, begin - _BEFORE) : begin]
    first = begin - len(head) + len(head.rstrip(signs))
    # The digits of an escape are none of its own: `\u000a`, `\x0a`, `\f`.
    return min(begin, escape_end(text, first - (text[first - 1 : first] in {"u", "U", "x"})))


def _to_its_end(text: str, span: tuple[int, int]) -> tuple[int, int]:
    """Return the span of a secret, extended over the rest of a value that is longer than the judged part."""
    begin, end = span
    if end - begin < _JUDGED_CHARS:
        return span
    rest = _compiled(_REST).match(text, end, begin + 4 * LONGEST_CHARS)
    return begin, end if rest is None else rest.end()


def _folded(text: str) -> str:
    """Return the text in small letters, of the same length."""
    small = text.lower()
    return (
        small
        if len(small) == len(text)
        else "".join(one.lower() if one.isascii() else one for one in text)
    )


def _private_keys(text: str) -> Iterator[SecretSpan]:
    """Find private keys, also those that are cut off."""
    place = text.find(_KEY_BEGIN)
    while place >= 0:
        head = _compiled(_KEY_HEAD).match(text, place)
        if head is not None:
            stop = _key_stop(text, head.end())
            end = _compiled(_KEY_END).match(text, stop)
            if end is not None or stop - head.end() > _FEWEST_OF_KEY:
                yield place, stop if end is None else end.end(), "private-key"
        place = text.find(_KEY_BEGIN, place + len(_KEY_BEGIN))


def _key_stop(text: str, begin: int) -> int:
    """Return how far what stands behind a key's first line is part of it."""
    body = _compiled(_KEY_BODY).match(text, begin, begin + LONGEST_CHARS)
    return begin if body is None else body.end()


_FEWEST_OF_KEY: Final = 16
"""A key body without an end line has more characters than this; a shorter one is prose about a key."""
_ENDS: Final = " \t\r\n\"'`,;<>|\\()"
"""No secret that has no frame of its own goes beyond these."""
_NAMED: Final = (
    r"(?i:(?:pass|passw(?:or)?d|passphrase|passcode|secret|credential|token|key|pwd|pat|auth|jwt|sig|code|psk|appid|sess(?:ion)?(?:id)?|sid)[\w\-]{0,32}"
    r"(?:[\"'\]]{0,2}|\\{1,15}[\"']|%22|&quot;|\x1b\[[0-9;]{0,9}m|</key>\s{0,8}<string)[ \t]{0,8}"
    r"(?::=|=>|==?(?:3D)?|:|>|%3A|[\"'],[ \t]{0,4}(?:[\"']?value[\"']?[ \t]{0,4}:)?|[\"'][ \t]value=)[ \t]{0,8}"
    r"(?:[rbuf]{0,2}[\"'`]|\\{1,15}[\"']|%22|&quot;|\x1b\[[0-9;]{0,9}m)?)"
)
_OTHERWISE: Final = (
    r"(?i:(?:password|passwd|passphrase|secret|token|key)[ \t](?:(?:is|was|provided|used|to|of|set|by):?[ \t])?[ \t]{0,3}[\"'`]?|\bidentified[ \t]{1,4}(?:by|as)[ \t]{1,4}\\{0,4}'|"
    r"\b(?:bearer|basic|token|digest|ssws)[ \t]{1,4}|://[^\s:/@]{0,128}:|://|[ \t](?:-[pawPk]|-u|--user)[ =\"']{0,2}(?:[^\s:\"']{1,100}:)?|\"d\\{0,15}\"\s?:\s?\\{0,15}\"|"
    r"hooks\.slack\.com/[a-z]{1,12}/|/api/(?:v\d{1,2}/)?webhooks/|webhook\.office\.com/|office\.com/webhook/|hooks\.zapier\.com/|/open-apis/bot/(?:v\d/)?hook/|/api/trigger-webhook/)"
)
_HINTS: Final = (
    *("pass", "secret", "credential", "token", "key", "pwd", "pat", "auth", "jwt", "sig", "code", "psk", "appid", "sess"),
    *("sid", "identified", "bearer", "basic", "digest", "ssws", "://", " -p", " -a", " -w", " -k", " -u", " --user"),
    *("\t-p", "\t-a", "\t-w", "\t-k", "\t-u", "\t--user", '"d', "hook"),
)  # fmt: skip
"""One of these stands in whatever the two above find."""
_COOKIE: Final = r"(?i:cookie[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)(?=[\w.\-]{1,64}(?:$|=))"
"""Pattern of a cookie header or assignment, which a secret follows."""
_BEFORE_CHARS: Final = 96
_QUOTED_CHARS: Final = 1_024


def secret_begins_at(text: str) -> int:
    """Return where the end of a text may be the beginning of a secret; the text's length: nowhere."""
    tail = text[-LONGEST_CHARS:]
    nearest = min(_open_key(tail), _open_word(tail))
    plain = unescaped_beginning(tail)
    if plain is not None:
        nearest_plain = min(_open_key(plain.text), _open_word(plain.text))
        if nearest_plain < len(plain.text):
            nearest = min(nearest, plain.place_before(nearest_plain))
    return len(text) - len(tail) + nearest


def _open_key(text: str) -> int:
    """Look for a private key that goes on: words that only tell of one keep nobody waiting."""
    place = text.rfind(_KEY_BEGIN)
    if place < 0:
        return len(text) - next(
            (n for n in range(len(_KEY_BEGIN), 0, -1) if text.endswith(_KEY_BEGIN[:n])), 0
        )
    head = _compiled(_KEY_HEAD).match(text, place)
    if head is None:
        return (
            place if len(text) - place < _BEFORE_CHARS and "\n" not in text[place:] else len(text)
        )
    stop = _key_stop(text, head.end())
    rest = text[stop:]
    return place if len(rest) <= _SHORT_LINE and _compiled(_KEY_TAIL).fullmatch(rest) else len(text)


def _open_word(text: str) -> int:
    """Look at the last word: does a secret's beginning stand in it, or what a secret follows before it?"""
    quoted = _open_quote(text)
    begin = len(text.rstrip(_ENDS))
    if begin < len(text):
        return quoted
    begin = 1 + max(map(text.rfind, _ENDS))
    if "\x1b[" in text[begin:]:
        begin = max(begin, text.rfind("m", text.rfind("\x1b[")) + 1)  # behind a colour code
    word = text[begin:]
    nearest = min(quoted, begin if _compiled(_MAY_BE_DRAWN).search(word) else len(text))
    last = 1 + max(map(word.rfind, "=:/@"))
    beginnings = _beginnings()
    behind = escape_end(text, begin)
    if word in beginnings:
        nearest = min(nearest, begin)
    elif text[behind:] in beginnings:
        nearest = min(nearest, behind)
    elif last and word[last:] in beginnings:
        nearest = min(nearest, begin + last)
    places = [begin + word.find(start) for start in STARTS if start in word]
    nearest = min(nearest, *places) if places else nearest
    return min(_asked_behind(text, begin, nearest), default=nearest)


def _asked_behind(text: str, begin: int, nearest: int) -> Iterator[int]:
    """Return where the last word follows what a secret follows."""
    before = max(0, begin - _BEFORE_CHARS)
    tail = text[before:].lower()
    if not any(map(tail.__contains__, _HINTS)):
        return
    for pattern in (_NAMED, _OTHERWISE):
        for found in _compiled(pattern).finditer(text, before):
            if begin <= found.end() < nearest:
                yield found.end()


@cache
def _beginnings() -> frozenset[str]:
    """Return everything that a start begins with."""
    return frozenset(start[:size] for start in STARTS for size in range(1, len(start) + 1))


def _open_quote(text: str) -> int:
    """Look for a quotation or a cookie that a secret may stand in, and that has not ended."""
    line = text[1 + max(text.rfind("\n"), len(text) - _QUOTED_CHARS) :]
    gone = len(text) - len(line)
    if '"' in line or "'" in line or "`" in line:
        for asked in _compiled(_NAMED).finditer(line):
            quote, rest = line[asked.end() - 1], line[asked.end() :]
            if quote in "\"'`" and quote not in rest and " " not in rest:
                return gone + asked.end()
    cookie = _compiled(_COOKIE).search(line) if "ookie" in line else None
    return len(text) if cookie is None else gone + cookie.end()
