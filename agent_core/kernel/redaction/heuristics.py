"""Judges names and values: does this name hold a secret, is this value one, or a word, a reference, a placeholder? Pure."""

import re
from functools import cache
from typing import Final

_NAMES: Final = (
    r"(?i)pass(?:word|wd|phrase|code)|(?:^|(?<=[_\-.]))(?:pass|pat)(?![a-z])|(?<=[_\-.])pwd(?![a-z])|secret|token(?!s|iz|_?(?:count|limit|usage|type))"
    r"|api[_\-]?key|access[_\-]?key|private[_\-]?key|auth[_\-]?key|signing[_\-]?key|encryption[_\-]?key|master[_\-]?key"
    r"|pass[_\-]phrase|preshared[_\-]?key|instrumentation[_\-]?key|credential|connection[_\-]?string|bearer|cookie|(?:^|(?<=[_\-.]))(?:auth|jwt)(?![a-z])|[_\-](?:key|cert)$"
)
_PLACEHOLDERS: Final = (
    r"(?i)^(?:changeme|change[_-]me|example|examplekey|placeholder|password|passwd|secret|token|hunter2|dummy|test|testing|"
    r"none|null|nil|true|false|undefined|string|str|your\b.*|my[-_]?(?:secret|password|token|key)|todo|redacted|xxx+|"
    r"required|optional|not[-_]?(?:set|needed|required|used)|no[-_]?key|unset|env|foo|bar|foobar|admin|root|user|qwerty|letmein|12345678(?:9(?:0)?)?|"
    r"pass|pwd|guest|postgres|mysql|rabbitmq|minio(?:admin)?|username)$"
    r"|[*•]{3,}|x{4,}|\.{3}|<[^>]*>|\$\{|\{\{|\$\(|%\(|(?:^|[-_ /:])\$[A-Za-z_]\w*$|^\$[A-Za-z_]|^\{\w*\}$|^%[sdv]$|^\[redacted|example|placeholder|your[-_]|insert[-_]"
)
_CODE: Final = r"[(\[{]|^(?:os|process|self|this|config|settings|env|secrets)\.|^[/~.]{1,2}/|^/[a-z][\w.\-]*/|^/[a-z.\-]+$|^https?://"
_DOTTED: Final = r"^[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)+$"
_PLAIN_TEXT: Final = r"^[A-Za-z]*(?:[-_.:/ ]+(?:[A-Za-z]{2,}\d{0,4}|[A-Za-z]\d{0,2}|\d{1,4}))*[-_.:/]*$|^[A-Za-z]+\d{0,4}(?:[-_.:/ ]+(?:[A-Za-z]{2,}\d{0,4}|\d{1,4}))*[?.]?$|^[\d.,:_-]*$"
_FRAME: Final = r"[\s(]|\w\(|\{\w*\}|\w\[|\]\s|\{$|^\["
_FEWEST: Final = 8
_LONG: Final = 20
_LEAST: Final = 0.2
"""Of all neighbours in a drawn value more than so many are of different kinds; in words far fewer are."""
_OFTEN: Final = 0.25
_SIGNS: Final = 4
_SOME: Final = 10


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def looks_secret(value: str) -> bool:
    """Return whether what was given to a secret's name is the secret itself, and no word, reference or code."""
    if len(value) < _FEWEST or is_placeholder(value) or _compiled(_CODE).search(value):
        return False
    return _is_no_name(value)


def quoted_secret(value: str) -> bool:
    """Judge what stood between quotation marks, where brackets are signs like others."""
    if len(value) < _FEWEST or is_placeholder(value):
        return False
    if not _compiled(_CODE).search(value):
        return _is_no_name(value)
    signs = {one for one in value if not one.isalnum()}
    if len(value) < _LONG or len(signs) < _SIGNS or " " in value:
        return _compiled(_FRAME).search(value) is None and is_drawn(value)
    return True


def _is_no_name(value: str) -> bool:
    if _compiled(_DOTTED).search(value) and not is_drawn(value):
        return False
    if value.isalpha():
        return _mixed(value) and (len(value) >= _LONG or _often(value))
    if _compiled(_PLAIN_TEXT).search(value):
        return _often(value.rstrip("?."))
    digits = sum(one.isdigit() for one in value)
    if not digits:
        return _mixed(value)
    return digits < len(value)


def is_drawn(value: str) -> bool:
    """Return whether a value was drawn at random: letters and digits change places as in no word or name."""
    if is_placeholder(value):
        return False
    changes = len(
        _compiled(r"(?<=[a-z])[A-Z0-9]|(?<=[A-Z])[0-9]|(?<=[0-9])[A-Za-z]").findall(value)
    )
    return changes >= _LEAST * len(value)


def _often(value: str) -> bool:
    """Return whether capitals follow small letters oftener than in a name that is several words."""
    changes = len(_compiled(r"(?<=[a-z])[A-Z]").findall(value))
    return len(value) >= _SOME and changes >= _OFTEN * len(value) and _mixed(value)


def _mixed(value: str) -> bool:
    """Return whether capitals stand between small letters, as in no word."""
    return (
        len(re.findall(r"[a-z][A-Z]", value)) > 1
        and re.search(r"[A-Z]{2}|[A-Z][a-z][A-Z]", value) is not None
    )


def has_digit(value: str) -> bool:
    """Return whether a value is more than a word: it has a digit, and stands for no other."""
    return any(one.isdigit() for one in value) and not is_placeholder(value)


def is_real(value: str) -> bool:
    """Return whether a value is no placeholder, where nothing but a secret can stand."""
    return not is_placeholder(value)


def aws_like(value: str) -> bool:
    """Judge forty signs of base64 that stand alone."""
    return _mixed(value) and has_digit(value)


def lettered(value: str) -> bool:
    """Judge what stands where only a secret stands, so that it needs no digit."""
    return looks_secret(value) or (len(value) >= _LONG and _mixed(value) and is_real(value))


def is_cookie(value: str) -> bool:
    """Return whether one of the pairs of a cookie is a key to something."""
    parts = (pair.partition("=")[2] for pair in value.split(";"))
    return any(len(part) >= 2 * _FEWEST and is_drawn(part) for part in parts)


def is_secret_name(name: str) -> bool:
    """Return whether a variable or setting of this name holds a secret: `GITHUB_TOKEN`, `db_password`, `apiKey`."""
    return _compiled(_NAMES).search(name) is not None


def ends_as_secret(name: str) -> bool:
    """Return whether the last word of a name says that it is the secret itself, and not something about one."""
    return (
        re.search(
            r"(?i:password|passwd|passphrase|pwd|pass|secret|token|key|jwt|pat)(?:_?\d+)?$", name
        )
        is not None
    )


def is_placeholder(value: str) -> bool:
    """Return whether a value only stands where a secret should: `changeme`, `${TOKEN}`, `not-needed`."""
    return _compiled(_PLACEHOLDERS).search(value) is not None
