"""The kinds of strangers' secrets: how each begins and is made, who judges a value, and escapes around it."""

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from agent_core.kernel.values import Value

BEHIND_ESCAPE: Final = (
    r"(?<=\\[abefnrtv0])|(?<=\\x[0-9A-Fa-f]{2})|(?<=\\u[0-9A-Fa-f]{4})|(?<=\\u\{[0-9A-Fa-f]\})"
    r"|(?<=\\U[0-9A-Fa-f]{8})|(?<=\\[0-3][0-7]{2})|(?<=[%=][0-9A-F]{2})"
)
"""Alternatives that hold directly behind an escape: its last sign is no part of the word that follows."""
_REST: Final = (
    r"[abefnrtv]|0(?![0-7])|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}"
)
_DIGITS: Final = r"u00(?P<u>[0-7][0-9A-Fa-f])|u\{(?P<b>[0-7]?[0-9A-Fa-f])\}|U000000(?P<l>[0-7][0-9A-Fa-f])|x(?P<x>[0-7][0-9A-Fa-f])"
_OCTAL: Final = r"(?P<o>[01][0-7]{2})"
# A line that goes on: a backslash and a break, or both as JSON writes them: 3 backslashes, 6 in JSON in JSON, or 12.
_JOIN: Final = r"(?<!\\)\\++\r?\n[ \t]*|(?<!\\)(?:\\{3}|\\{6}|\\{12})(?:r(?:\\{1,2}|\\{4}))?n(?:[ \t]|\\{1,4}t)*"
_ESCAPE: Final = rf"(?P<join>{_JOIN})|(?<!\\)\\++(?:{_DIGITS}|{_OCTAL}|(?P<sign>[/\"'])|(?P<control>[abefnrtv0]))"
# Begins with a plain backslash: nearly all texts have none of these, and so the search is quick.
_UNREADABLE: Final = (
    r"\\(?:[/\r\n]|u(?:00[0-7]|\{)|U000000[0-7]|x[0-7]|[01][0-7]{2}|\\{2}(?:r\\{1,4})?n)"
)
_UNFINISHED: Final = r"\\+(?:u[0-9A-Fa-f]{0,3}|u\{[0-9A-Fa-f]{0,2}|U[0-9A-Fa-f]{0,7}|x[0-9A-Fa-f]?|[01][0-7]?|r\\*|\r)?$"
_LONGEST_CHARS: Final = 16
"""No unfinished escape is longer."""
_CONTROLS: Final[Mapping[str, str]] = {"t": "\t", "e": "\x1b", "0": "\0"}


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Unescaped(Value, frozen=True, kw_only=True):
    """A text with its escapes read, and where its signs stood."""

    text: str
    ends: tuple[int, ...]
    """Where in `text` each escape ends, in order; the first is 0."""
    ends_before: tuple[int, ...]
    """Where it ended before it was read."""

    def place_before(self, place: int) -> int:
        """Return where in the original text a place of `text` was."""
        nearest = bisect_right(self.ends, place) - 1
        return self.ends_before[nearest] + place - self.ends[nearest]


def unescaped(text: str) -> Unescaped | None:
    """Return the text with its escapes read; None: there is none that patterns cannot look past by themselves."""
    if _compiled(_UNREADABLE).search(text) is None:
        return None
    return _read(text)


def unescaped_beginning(text: str) -> Unescaped | None:
    """Return the same for a text that goes on: an escape that may be unfinished at its end is left out."""
    unfinished = _compiled(_UNFINISHED).search(text, len(text) - _LONGEST_CHARS)
    if unfinished is None:
        return unescaped(text)
    head = text[: unfinished.start()]
    return unescaped(head) or Unescaped(text=head, ends=(0,), ends_before=(0,))


def escape_end(text: str, place: int) -> int:
    """Return where the escape ends whose backslash stands before `place`; `place` if there is none."""
    if place == 0 or text[place - 1] != "\\":
        return place
    rest = _compiled(_REST).match(text, place)
    return place if rest is None else rest.end()


def _read(text: str) -> Unescaped:
    pieces: list[str] = []
    ends, ends_before = [0], [0]
    size = 0
    for escape in _compiled(_ESCAPE).finditer(text):
        piece = text[ends_before[-1] : escape.start()] + _meaning(escape)
        pieces.append(piece)
        size += len(piece)
        ends.append(size)
        ends_before.append(escape.end())
    pieces.append(text[ends_before[-1] :])
    return Unescaped(text="".join(pieces), ends=tuple(ends), ends_before=tuple(ends_before))


def _meaning(escape: re.Match[str]) -> str:
    kind, written = escape.lastgroup, escape[escape.lastgroup or 0]
    match kind:
        case "join":
            return ""
        case "sign":
            return written
        case "control":
            return _CONTROLS.get(written, "\n")
        case "o":
            return chr(int(written, 8))
        case _:
            return chr(int(written, 16))


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


class SecretPattern(Value, frozen=True, kw_only=True):
    """One kind of secret. It is looked for only where one of its starts stands, so that a long text costs little."""

    kind: str
    starts: tuple[str, ...]
    pattern: str
    """Begins at the start. The secret is the group `v`, or `q` between quotation marks, or all of it."""
    folded: bool = False
    """The starts are in small letters and stand for capitals too."""
    judge: Callable[[str], bool] | None = None
    """Whether what was found is a secret."""
    before: str = ""
    """Signs that belong to it when they stand before the start."""


_BROKEN: Final = rf"(?<=[0-9;\[]m)|{BEHIND_ESCAPE}"
_BEHIND: Final = rf"(?:(?<![A-Za-z0-9])|{_BROKEN})"
_WORD: Final = rf"(?:(?<![A-Za-z0-9_\-])|{_BROKEN})"


def _fixed(
    kind: str, starts: str, rest: str, *, judge: Callable[[str], bool] = is_real
) -> SecretPattern:
    """Make a shape that is known by its beginning; it may stand behind a colour code of a terminal."""
    prefixes = tuple(starts.split())
    either = "|".join(map(re.escape, prefixes))
    return SecretPattern(
        kind=kind, starts=prefixes, pattern=rf"{_BEHIND}(?:{either}){rest}", judge=judge
    )


_PLAIN: Final = r"(?![A-Za-z0-9])"
_VALUE: Final = r"""(?:\x1b\[[0-9;]{0,9}m)?(?:[rbuf@]{0,2}(?:(?P<o>["'`])(?P<q>(?:(?!(?P=o))[^\n\\]){8,1024})(?P=o)|["'`])|(?:\\{1,15}|%22|&quot;)["']?)?(?P<v>(?:(?!&\w+=|%22|&quot;)[^\s"'`,;<>|\\\x1b\x00]){8,1024})?"""
_GIVEN: Final = rf"""(?:["'\]]{{0,2}}|\\{{1,15}}["']|%22|&quot;|\x1b\[[0-9;]{{0,9}}m)[ \t]{{0,8}}(?::=|=>|==?(?:3D)?|:(?!:)|%3[Aa]|["'],[ \t]{{0,4}}(?:["']?value["']?[ \t]{{0,4}}:[ \t]{{0,4}})?(?=["'])|["'][ \t]value=(?="))[ \t]{{0,8}}{_VALUE}"""
_ANY: Final = r"[A-Za-z0-9_\-]"
_OTHER_KEYS: Final = (
    "public pub cache sort partition primary foreign idempotency dedupe dedup storage object s3 routing row range hash data "
    "lookup map dict json item translation label query config unique group index context tree"
)
_NOT_OTHER: Final = "".join(rf"(?<!{word}[_\-])" for word in _OTHER_KEYS.split())
_KEY_NAME: Final = rf"(?:(?<=[_\-]){_NOT_OTHER}|(?<=api)|(?<=api )|(?<=access)|(?<=private)|(?<=auth)|(?<=account)|(?<=master)|(?<=signing)|(?<=secret)|(?<=shared)|(?<=encryption)|(?<=instrumentation))key(?:[_\-](?:id|data|value|base))?"
_LOOSE: Final = r"""[ \t]{1,4}(?:(?:is|was|provided|used|to|of|set|by)[ \t:]{1,4})?["'`]?(?P<v>[A-Za-z0-9+/=_\-.!]{12,1024})"""
_TAGGED: Final = r"(?:>|</key>\s{0,8}<string>)\s{0,8}(?P<v>[^<\s]{8,1024})(?=\s{0,8}<)"
SHAPES: Final = (
    _fixed("aws-key", "AKIA ASIA ABIA ACCA", r"[A-Z0-9]{16}" + _PLAIN),
    _fixed("aws-session", "FwoGZXIv IQoJb3JpZ2luX2Vj ABSK", r"[A-Za-z0-9+/]{60,4000}={0,2}"),
    _fixed("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{20,255}"),
    _fixed("github-token", "github_pat_", r"[A-Za-z0-9_]{20,255}"),
    _fixed("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glsoat- glagent- gloas- glffct- GR1348941", r"[A-Za-z0-9_.\-]{18,300}"),
    _fixed("anthropic-key", "sk-ant-", r"[A-Za-z0-9]{2,16}-[A-Za-z0-9_\-]{16,200}"),
    _fixed("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-or- sk-lf- sk-None-", _ANY + "{20,260}"),
    SecretPattern(kind="api-key", starts=("sk-",), pattern=_WORD + r"sk-[A-Za-z0-9]{20,200}", judge=has_digit),
    SecretPattern(kind="api-key", starts=("sk-",), pattern=_WORD + r"sk-[a-z]{40,64}" + _PLAIN, judge=is_real),
    _fixed("google-key", "AIza", _ANY + "{30,45}"),
    _fixed("google-token", "ya29.", _ANY + "{20,1000}"),
    _fixed("google-token", "1//0 AQ.Ab8R 4/0A", _ANY + "{30,1000}", judge=is_drawn),
    _fixed("google-secret", "GOCSPX-", _ANY + "{20,40}"),
    _fixed("hugging-face-token", "hf_ api_org_", r"[A-Za-z0-9]{28,60}"),
    _fixed("api-key", "gsk_ r8_ xai- pplx- tvly- nvapi- csk- fw_ pcsk_ jina_", _ANY + "{20,200}", judge=is_drawn),
    _fixed("slack-token", "xoxb- xoxp- xoxa- xoxo- xoxs- xoxr- xoxc- xoxd- xoxe- xoxe. xapp-", r"[0-9A-Za-z.\-_%]{10,255}", judge=has_digit),
    SecretPattern(kind="webhook", starts=("hooks.slack.com/", "/api/webhooks/", "/api/v", "webhook.office.com/", "office.com/webhook/", "hooks.zapier.com/"),
          pattern=r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/(?:v\d{1,2}/)?webhooks/|webhook\.office\.com/|office\.com/webhook/|hooks\.zapier\.com/hooks/catch/)(?P<v>[A-Za-z0-9/_@\-]{12,300})"),
    SecretPattern(kind="webhook", starts=("/open-apis/bot/", "/api/trigger-webhook/"), judge=has_digit,
          pattern=r"(?:/open-apis/bot/(?:v\d/)?hook/|/api/trigger-webhook/)(?P<v>[A-Za-z0-9_\-]{12,100})"),
    _fixed("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ whsec_ rzp_live_ shippo_live_ duffel_live_", r"[0-9A-Za-z_+/=\-]{14,255}"),
    _fixed("twilio-key", "SK AC", r"[0-9a-f]{32}" + _PLAIN),
    _fixed("sendgrid-key", "SG.", _ANY + r"{16,32}\." + _ANY + "{16,64}"),
    _fixed("mail-key", "key- fc- mlsn.", r"[0-9a-f]{32,64}" + _PLAIN),
    _fixed("mail-key", "xkeysib-", r"[0-9a-f]{60,70}-[A-Za-z0-9]{12,20}"),
    SecretPattern(kind="mail-key", starts=("-us",), before="0123456789abcdef", pattern=r"(?<=[0-9a-f]{32})-us\d{1,2}" + _PLAIN),
    SecretPattern(kind="service-key", starts=("NRAL",), before="0123456789abcdef", pattern=r"(?<=[0-9a-f]{36})NRAL" + _PLAIN),
    _fixed("package-token", "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_", _ANY + "{26,400}", judge=is_drawn),
    _fixed("package-token", "cio oy2 AKCp cmVmdGtu CLOJARS_ packagist_ort_ jsrp_", r"[A-Za-z0-9]{32,80}" + _PLAIN, judge=is_drawn),
    _fixed("jwt", "eyJ", _ANY + r"{8,4000}\." + _ANY + r"{8,8000}\." + _ANY + "{0,1400}"),
    _fixed("service-token", "eyJrIjoi glc_", r"[A-Za-z0-9+/]{50,400}={0,2}", judge=is_drawn),
    _fixed("age-key", "AGE-SECRET-KEY-1 age-secret-key-1", r"[0-9A-Za-z]{40,80}"),
    _fixed("cloud-token", "dapi", r"[0-9a-f]{32}(?:-\d)?"),
    _fixed("cloud-token", "dop_v1_ doo_v1_ dor_v1_ shpat_ shpca_ shppa_ shpss_ sbp_ pul- lin_oauth_ sqp_ squ_ sqa_ bkua_ gta_ key_ sk_ live_ FLWSECK- lsv2_pt_ lsv2_sk_",
           r"[0-9a-fA-F]{32,70}(?:[_\-][0-9a-fA-F]{8,146})?(?:-X)?"),
    _fixed("service-token", "lin_api_ ntn_ figd_ hvs. hvb. PMAK- ATATT3 ATCTT3 ATBB glsa_ sntrys_ sntryu_ fm2_ fo1_ ops_eyJ tskey- NRAK- phx_ sk.eyJ sl.u. sl. vk1.a. t1.9eu AQVN LTAI AKID EAAA EAA IGQV",
           r"[A-Za-z0-9_\-=+/.]{20,1000}", judge=is_drawn),
    _fixed("service-token", "tgp_v1_ pa- BSA mfa. sq0atp- sq0csp- re_ sb_secret_ nfp_ rnd_ cfut_ HRKU- pscale_tkn_ pscale_pw_ napi_ AVNS_ mdb_sa_sk_ dp.pt. dp.st. dp.ct. CCIPAT_ hcaik_ sgp_ CFPAT- tfp_ EZAK fio-u- pnu_ rdme_ dt0c01. secret_ sess- AQE APA91b",
           r"[A-Za-z0-9_.\-]{19,400}(?![/(])", judge=is_drawn),
    SecretPattern(kind="service-token", starts=("access_token$",), pattern=r"access_token\$(?:production|sandbox)\$[0-9a-z]{12,20}\$[0-9a-f]{32}"),
    SecretPattern(kind="service-token", starts=("amzn.mws.", "sdk-", "api-"), pattern=_WORD + r"(?:amzn\.mws\.|sdk-|api-)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    SecretPattern(kind="service-token", starts=("AAAAAAAAAAAAAAAAAAAAA",), pattern=rf"(?:(?<![A-Za-z0-9+/])|{_BROKEN})A{{21,24}}[A-Za-z0-9%]{{30,100}}", judge=is_drawn),
    SecretPattern(kind="service-token", starts=(".atlasv1.",), before="alnum", pattern=r"\.atlasv1\.[A-Za-z0-9_\-=]{50,80}"),
    SecretPattern(kind="service-token", starts=("8Q~", "7Q~"), before="alnum", pattern=r"(?<=[A-Za-z0-9]{3})[78]Q~[A-Za-z0-9_.~\-]{31,34}"),
    SecretPattern(kind="service-token", starts=("pat",), pattern=rf"(?:(?<![A-Za-z0-9])|{_BROKEN})" + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    SecretPattern(kind="bot-token", starts=(":A",), before="0123456789", pattern=r"(?<=[0-9]{8}):A[A-Za-z0-9_\-]{33,35}(?![A-Za-z0-9_\-])"),
    SecretPattern(kind="password-hash", starts=("$apr1$", "$1$", "$5$", "$6$", "$2a$", "$2b$", "$2y$", "$y$"),
          pattern=r"\$(?:apr1|1|5|6|2[aby]|y)\$[A-Za-z0-9./$=,]{20,200}"),
    SecretPattern(kind="private-key", starts=("LS0tLS1CRUdJTi",), pattern=r"LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0Eg|BFQyBQ|BPUEVOU1NI|BFTkNSWVBURUQ|BEU0Eg)[A-Za-z0-9+/]{16,8000}={0,2}"),
    SecretPattern(kind="private-key", starts=("Private-Lines:",), pattern=r"Private-Lines: \d{1,3}(?:\s|\\{1,4}[nr]){1,2}(?P<v>[A-Za-z0-9+/=]{16,}(?:(?:\s|\\{1,4}[nr]){1,2}[A-Za-z0-9+/=]{16,}){0,60})"),
    SecretPattern(kind="private-key", starts=("RWRTY0Iy",), pattern=r"RWRTY0Iy[A-Za-z0-9+/=]{100,400}"),
    SecretPattern(kind="private-key", starts=('"d"', '"d\\'), pattern=r'"d\\{0,15}"\s{0,4}:\s{0,4}\\{0,15}"(?P<v>[A-Za-z0-9_\-]{42,1024})\\{0,15}"', judge=is_drawn),
    SecretPattern(kind="authorization", starts=("bearer", "authorization"), folded=True,
          pattern=rf"(?i:(?:\b|{_BROKEN})" + r"bearer[ \t]{1,4}|authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?:(?:basic|token|digest|apikey|negotiate|key|ssws|bot|genie[\w\-]{0,8})[ \t]{1,4})?)(?P<v>[A-Za-z0-9._~+/=\-]{12,4096})",
          judge=lettered),
    SecretPattern(kind="authorization", starts=("signature=",), folded=True, pattern=r"(?i:signature)=(?P<v>[0-9a-f]{64})" + _PLAIN),
    SecretPattern(kind="cookie", starts=("cookie",), folded=True, judge=is_cookie,
          pattern=rf"(?:(?<![A-Za-z0-9=])|{_BROKEN})" + r"(?i:cookie)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<v>[\w.\-]{1,64}=[^\s;\"'\\]{1,1024}(?:;[ \t]?[^\s;\"'\\]{1,1024}){0,20})"),
    SecretPattern(kind="cookie", starts=("sessid=", "sessionid=", "_session=", "connect.sid="), folded=True, judge=is_drawn,
          pattern=r"(?i:sessid|sessionid|_session|connect\.sid)=(?P<v>[A-Za-z0-9%._+/=\-]{16,1024})"),
    SecretPattern(kind="password", starts=("://",),
          pattern=r"://[^\s:/@\"'<>]{0,128}:(?P<v>(?!\d{1,5}[/?#])(?:[^\s\"'<>/?#]{3,256}|[^\s@\"'<>]{3,256}))@(?=[\w\[$])",
          judge=is_real),
    SecretPattern(kind="token", starts=("://",), pattern=r"://(?P<v>[A-Za-z0-9_\-]{20,255})(?=@|:[^@/\s]{1,256}@)", judge=is_drawn),
    SecretPattern(kind="token", starts=("?", "&"),
          pattern=r"[?&](?i:key|sig|auth|code|pwd|appid|[\w\-]{0,24}signature)=(?P<v>[^&\s\"'#<>\x1b]{8,2048})", judge=looks_secret),
    SecretPattern(kind="password", starts=("mysql", "mariadb", "sshpass"), judge=looks_secret,
          pattern=r"(?:mysql\w{0,12}|mariadb[\w\-]{0,12}|sshpass)\b[^\n|;&]{0,200}?[ \t]-p ?[\"']?(?P<v>[^\s\"'\-][^\s\"'\x1b]{5,200})"),
    SecretPattern(kind="password", starts=("redis-cli", "docker login", "podman login", "az login", "ldap", "unzip", "mosquitto_", "htpasswd", "openssl enc"), judge=looks_secret,
          pattern=r"(?:redis-cli|(?:docker|podman|az) login|ldap[a-z]{3,12}|unzip|mosquitto_[ps]ub|htpasswd|openssl enc)\b[^\n|;&]{0,200}?[ \t](?:-[apwPk]|-b \S{1,99} \S{1,99})[ =]?[\"']?(?P<v>[^\s\"'\-][^\s\"'\x1b]{5,200})"),
    SecretPattern(kind="password", starts=("curl", "wget"), judge=is_real,
          pattern=r"(?:curl|wget)\b[^\n|;&]{0,200}?[ \t](?:-u|--user)[ =]?[\"']?[^\s:\"']{1,100}:(?P<v>[^\s\"'\x1b]{6,200})"),
    SecretPattern(kind="password", starts=("login ",), folded=True, judge=is_real,
          pattern=r"(?i:login[ \t]+\S{1,100}\s+passw(?:or)?d[ \t]+)(?P<v>[^\s\x1b]{6,200})"),
    SecretPattern(kind="password", starts=("identified ", " password '", " password \\"), folded=True, judge=is_real,
          pattern=r"(?i:identified[ \t]+(?:with[ \t]+\S{1,40}[ \t]+)?(?:by|as)|[ \t]password)[ \t]+\\{0,4}'(?P<v>[^'\s\\]{8,200})\\{0,4}'"),
    SecretPattern(kind="secret", starts=("--",), judge=looks_secret,
          pattern=r"(?i:--[\w\-]{0,24}(?:password|passwd|passphrase|secret|token|api-?key|access-?key)[ =][\"']?)(?P<v>[^\s\"'\x1b]{8,1000})"),
    SecretPattern(kind="secret", starts=("psk=", "wpa_passphrase="), pattern=r"(?:psk|wpa_passphrase)=[\"']?(?P<v>[^\s\"'\x1b]{8,64})", judge=looks_secret),
    SecretPattern(kind="secret", starts=("password", "passwd", "passphrase", "pass_phrase", "passcode", "secret", "credential"), folded=True,
          judge=looks_secret, pattern=r"(?i:[a-z_]{6,11}[\w\-]{0,32})" + _GIVEN),
    SecretPattern(kind="secret", starts=("token",), folded=True, judge=looks_secret,
          pattern=r"(?i:token(?!s\b|iz|_?(?:count|limit|usage|type))[\w\-]{0,24})" + _GIVEN),
    SecretPattern(kind="secret", starts=("key",), folded=True, judge=looks_secret, pattern=rf"(?i:{_KEY_NAME})" + _GIVEN),
    SecretPattern(kind="secret", starts=("pass", "pwd", "pat", "auth", "jwt"), folded=True, judge=looks_secret,
          pattern=rf"(?i:(?:(?<![A-Za-z0-9])|{_BROKEN})(?:pass|pwd|pat|auth|jwt))" + _GIVEN),
    SecretPattern(kind="secret", starts=("password", "passwd", "secret", "token", "key"), folded=True, judge=is_drawn,
          pattern=rf"(?i:password|passwd|secret|token|{_KEY_NAME})" + _LOOSE),
    SecretPattern(kind="secret", starts=("password>", "passphrase>", "secret>", "token>", "key>", "pwd>", "password</key>", "secret</key>", "token</key>", "key</key>"), folded=True, judge=looks_secret,
          pattern=r"(?i:password|passphrase|secret|token|key|pwd)" + _TAGGED),
    SecretPattern(kind="secret", starts=("securestring ",), folded=True, judge=looks_secret,
          pattern=r"(?i:securestring)[ \t]{1,4}(?:-String[ \t]{1,4})?\\{0,15}[\"'](?P<v>[^\"'\s\\]{8,200})\\{0,15}[\"']"),
)  # fmt: skip

STARTS: Final = tuple(
    dict.fromkeys(
        (
            *(start for shape in SHAPES if shape.pattern.startswith(_BEHIND) for start in shape.starts),
            "sk-", "-----BEGIN", "LS0tLS1CRUdJTi", "access_token$", "sdk-", "amzn.mws.", "RWRTY0Iy",
        )
    )
)  # fmt: skip
"""Prefixes of the secrets that are recognised by a prefix; a stream keeps back text that begins with one."""
