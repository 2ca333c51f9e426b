"""Keys of many kinds, drawn anew for each run, are found whole, also in pieces; what only resembles them stays."""

import base64
import random
import string

import pytest

from agent_core.kernel.redaction.redactor import Redactor

DRAWN = random.Random(7)  # noqa: S311 - keys that open nothing
LETTERED = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
LOW = string.ascii_lowercase + string.digits


def _of(signs: str, count: int) -> str:
    """Draw a value that has a digit, as nearly all that are drawn have."""
    return "".join(DRAWN.choice(signs) for _ in range(count - 1)) + "7"


def _mixed(count: int) -> str:
    return "aB3xY9kQ"[:count] + _of(LETTERED, count - 8)


def _hex(count: int) -> str:
    return _of(HEX, count)


def _lines(count: int) -> str:
    return "\n".join(_of(LETTERED + "+/", 64) for _ in range(count))


def _pem(what: str, body: str) -> str:
    return f"-----BEGIN {what}-----\n{body}\n-----END {what}-----"


def _basic(count: int) -> str:
    return base64.b64encode(b"me:" + _of(LETTERED, count).encode()).decode()


KINDS = {
    "amazon session": ("", "FwoGZXIv" + _mixed(120), ""),
    "amazon bearer": ("", "ABSK" + _mixed(100) + "=", ""),
    "github in a url": ("https://", "ghp_" + _mixed(36), "@github.com/o/r"),
    "gitlab oauth": ("", "gloas-" + _hex(64), ""),
    "google refresh": ("", "1//0" + _mixed(60), ""),
    "small letters": ("", "sk-" + "qwrtzpsdfghjklyxcvbnm" * 2 + "qwrtzp", ""),
    "hugging face organisation": ("", "api_org_" + _mixed(34), ""),
    "langsmith": ("", "lsv2_pt_" + _hex(32) + "_" + _hex(10), ""),
    "slack cookie": ("d=", "xoxd-" + _mixed(40) + "%2B" + _mixed(40), ""),
    "zapier": ("https://hooks.zapier.com/hooks/catch/", "123456/" + _of(LOW, 7), ""),
    "telegram": ("", "1234567890:A" + _mixed(34), ""),
    "discord": ("", "M" + _mixed(23) + "." + _of(LETTERED, 6) + "." + _mixed(27), ""),
    "mailchimp": ("", _hex(32) + "-us14", ""),
    "brevo": ("", "xkeysib-" + _hex(64) + "-" + _mixed(16), ""),
    "new relic": ("", _hex(36) + "NRAL", ""),
    "paypal": ("", "access_token$production$" + _of(LOW, 16) + "$" + _hex(32), ""),
    "square": ("", "sq0atp-" + _mixed(22), ""),
    "supabase": ("", "sb_secret_" + _mixed(22) + "_" + _mixed(9), ""),
    "sonar": ("", "squ_" + _hex(40), ""),
    "launchdarkly": ("", "sdk-" + "-".join((_hex(8), _hex(4), _hex(4), _hex(4), _hex(12))), ""),
    "twitter": ("", "A" * 21 + _mixed(40) + "%3D" + _mixed(40), ""),
    "terraform": ("", _mixed(14) + ".atlasv1." + _mixed(67), ""),
    "azure": ("", "aB3" + "8Q~" + _mixed(34), ""),
    "airtable": ("", "pat" + _mixed(14) + "." + _hex(64), ""),
    "password hash": ("me:", "$6$" + _mixed(8) + "$" + _mixed(60), ":1"),
    "packed key": ("", "LS0tLS1CRUdJTi" + "BSU0Eg" + _mixed(200), ""),
    "putty": ("Private-Lines: 1\n", _mixed(44), "\nend"),
    "json web key": ('{"kty":"EC","d":"', _mixed(43), '"}'),
    "okta": ("Authorization: SSWS ", "00" + _mixed(40), ""),
    "signed request": ("Credential=x, Signature=", _hex(64), ""),
    "cookie": ("Cookie: ", "sid=" + _mixed(32) + "; theme=dark", ""),
    "php": ("PHPSESSID=", _of(LOW, 26), ""),
    "at in a password": ("https://me:", "aB3@xY9", "@host/x"),
    "token as user": ("https://", _hex(40), "@github.com/o"),
    "docker login": ("docker login -u me -p ", _mixed(20), " host"),
    "quoted flag": ("sshpass -p '", _mixed(12), "' ssh x"),
    "sql": ("CREATE USER a IDENTIFIED BY '", _mixed(14), "';"),
    "word and number": ("password: ", "Summer2026!", ""),
    "wifi": ('psk="', _mixed(12), '"'),
    "brackets in quotes": ("SECRET_KEY = '", "x9(k2)[m4]=" + _mixed(30) + "!", "'"),
    "comma in quotes": ('password: "', "aB3xY,9kQ2z", '"'),
    "escaped": (r'{\"password\":\"', _mixed(16), r"\"}"),
    "in a url": ("%22password%22%3A%22", _mixed(16), "%22"),
    "constant": ("define('DB_PASSWORD', '", _mixed(14), "');"),
    "c": ('#define API_KEY "', _mixed(32), '"'),
    "docker file": ("ENV API_KEY ", _mixed(32), ""),
    "sentence": ("the password is ", _mixed(14), ""),
    "log": ("Using API key: ", _mixed(32), ""),
    "colours": ("\x1b[1mtoken=\x1b[0m", _mixed(32), "\x1b[0m"),
    "element": ("<password>", _mixed(14), "</password>"),
    "attribute": ('<add key="ApiKey" value="', _mixed(32), '" />'),
    "property list": ("<key>apiKey</key><string>", _mixed(39), "</string>"),
    "pair": ('{"name":"x-api-key","value":"', _mixed(32), '"}'),
    "key": ("x ", _pem("OPENSSH " + "PRIVATE KEY", _lines(3)), " y"),
    "key in a diff": ("+", _pem("PRIVATE KEY", _lines(2)).replace("\n", "\n+"), "\nx"),
    "numbered key": ("1\t", _pem("PRIVATE KEY", _lines(2)).replace("\n", "\n 2\t"), "\nx"),
    "key in code": ('k="', _pem("PRIVATE KEY", _lines(2)).replace("\n", '\\n"+\n"'), '";'),
    "key with a head": (
        "", _pem("RSA " + "PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: A,00\n\n" + _lines(1)), ""),
    "shared line key": ("", _pem("OpenVPN Static key V1", _hex(32) + "\n" + _hex(32)), ""),
    "basic": ("Proxy-Authorization: Basic ", _basic(14), ""),
}  # fmt: skip
IN_PARTS = {"azure", "discord", "terraform", "airtable", "twitter", "putty", "small letters"}
"""Kinds that nothing shows by their first letters: in pieces a few of those get away."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_this_kind_is_taken_out_whole(kind: str) -> None:
    before, secret, after = KINDS[kind]
    clean = Redactor().text(f"see {before}{secret}{after}\nend")
    assert clean.startswith(f"see {before}[redacted:")
    assert clean.endswith(f"]{after}\nend")
    assert secret[-4:] not in clean.replace(after, "")


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - IN_PARTS))
@pytest.mark.parametrize("size", [1, 3, 11])
def test_a_key_in_pieces_shows_no_piece(kind: str, size: int) -> None:
    before, secret, after = KINDS[kind]
    text = f"see {before}{secret}{after}\nend"
    stream = Redactor().stream()
    pieces = [stream.push(text[place : place + size]) for place in range(0, len(text), size)]
    shown = "".join((*pieces, stream.finish()))
    assert shown.startswith(f"see {before}[redacted:")
    assert shown.endswith(f"]{after}\nend")
    assert not any(secret[at : at + 6] in shown for at in range(len(secret) - 6))


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7" + "EXAMPLE",
        "ghp_" + "x" * 36,
        "xoxb-your-token",
        "postgres://postgres:postgres@localhost/postgres",
        "https://user:pass@example.com/",
        "http://localhost:8080/x?y=1@2",
        "secretName: my-tls-secret-v2",
        "TokenKind::Identifier2",
        "auth: oauth2_password_bearer",
        "Bearer authentication-scheme2",
        "npm_config_registry_default_value_for_all",
        "key_press_event_handler_for_main_window2",
        "idempotency_key: 39e7fb34-93eb-463e-8b95-bb48d31759b3",
        "cache-key: Linux-node-9db5272ea4044a6338902c2d00ea2665",
        "public_key: mNXOqLEt1J8jOGmO+IjkOMLOtc7R6oeUu/tfuDq8s16=",
        "s3_key = 'uploads/2024/932e1b0dc526d76c.png'",
        "traceparent: 00-4493c3ee8cffbfaac3f9e21854a8e7fc-d2fe438633a59397-01",
        "Cookie: theme=dark",
        "<password>${db.password}</password>",
        "grep -r 'BEGIN RSA PRIVATE KEY' .",
        "it begins with -----BEGIN " + "PRIVATE KEY----- and goes on",
        'password: "{user}"',
        "api_key: get_key('x1y2z3')",
        "token is refreshed_every_2_minutes",
        "mysql -h db -P 3306 -u root",
    ],
)
def test_what_only_resembles_a_key_stays(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "It is ",
        "a plain word",
        " and-one",
        "it begins with -----BEGIN " + "PRIVATE KEY----- and then",
        "(see docs)",
    ],
)
def test_words_leave_at_once(text: str) -> None:
    """Also those that tell of keys: nobody waits for an end that never comes."""
    assert Redactor().stream().push(text) == text


def test_a_number_waits_for_its_next_sign_only() -> None:
    stream = Redactor().stream()
    assert stream.push("in 2026") == "in "
    assert stream.push(" and") == "2026 and"


FORTY = "aB1" + _mixed(37)


@pytest.mark.parametrize("near", ["use of aws: ", "AKIA is ", "ASIA is "])
def test_forty_signs_alone_are_a_key_near_its_provider(near: str) -> None:
    assert Redactor().text(f"{near}{FORTY} x") == f"{near}[redacted:aws-secret] x"


@pytest.mark.parametrize(
    "text", [f"see {FORTY} x", "aws: " + "abcdefghij" * 4, "aws: " + "1234567890" * 4]
)
def test_forty_signs_elsewhere_or_without_capitals_stay(text: str) -> None:
    assert Redactor().text(text) == text


@pytest.mark.parametrize(
    "kind",
    ["key", "key in a diff", "numbered key", "key in code", "key with a head", "shared line key"],
)
def test_a_private_key_is_called_one(kind: str) -> None:
    before, secret, after = KINDS[kind]
    assert Redactor().text(before + secret + after) == f"{before}[redacted:private-key]{after}"


def test_a_key_that_is_cut_off_goes_as_far_as_it_is_there() -> None:
    text = "-----BEGIN " + "PRIVATE KEY-----\n" + _lines(2)
    assert Redactor().text(text) == "[redacted:private-key]"
    assert Redactor().text(text + "\n(more)") == "[redacted:private-key](more)"


@pytest.mark.parametrize(
    ("first", "left"),
    [
        ("a -----BEGIN ", "a "),
        ("a -----BEG", "a "),
        ("a -----BEGIN RSA PRIV", "a "),
        ("a -----BEGIN CERTIFICATE-----\n", "a -----BEGIN CERTIFICATE-----\n"),
        ("a -----BEGIN " + "x " * 60, "a -----BEGIN " + "x " * 60),
        ("a -----BEGIN " + "PRIVATE KEY-----\nMIIE", "a "),
        ("a -----BEGIN " + "PRIVATE KEY----- (see", "a -----BEGIN " + "PRIVATE KEY----- (see"),
    ],
)
def test_only_what_may_become_a_private_key_waits(first: str, left: str) -> None:
    assert Redactor().stream().push(first) == left


def test_capitals_that_grow_when_made_small_shift_nothing() -> None:
    assert (
        Redactor().text(f"\u0130\u0130 PASSWORD={_mixed(16)} x")
        == "\u0130\u0130 PASSWORD=[redacted:secret] x"
    )


def test_a_value_of_any_length_goes_whole() -> None:
    assert Redactor().text(f"token={_mixed(5_000)} x") == "token=[redacted:secret] x"
