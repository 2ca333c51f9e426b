"""Each way in which a stranger's secret can begin is known by itself, and what is found is called by its kind."""

import re

import pytest

from agent_core.kernel.redaction.patterns import SHAPES
from agent_core.kernel.redaction.redactor import Redactor

# None of them opens anything.
MIXED = "aB3xY9kQ2zLm7Rt5Wp8Vj4Nc6Hd1Fg0Ks"
LONG = MIXED * 4
WORD = "Tr0ub4dor3x!"
HEX = "932e1b0dc526d76c4493c3ee8cffbfaa"
UUID = "932e1b0d-c526-d76c-4493-c3ee8cffbfaa"
KINDS = frozenset(
    {
        *("age-key", "anthropic-key", "api-key", "authorization", "aws-key", "aws-session", "bot-token", "cloud-token"),
        *("cookie", "github-token", "gitlab-token", "google-key", "google-secret", "google-token", "hugging-face-token"),
        *("jwt", "mail-key", "openai-key", "package-token", "password", "password-hash", "private-key", "secret"),
        *("sendgrid-key", "service-key", "service-token", "slack-token", "stripe-key", "token", "twilio-key", "webhook"),
    }
)  # fmt: skip

STARTS = {
    # What stands in a line, with the secret in «».
    "aws-session": (f"«FwoGZXIv{LONG}»", f"«IQoJb3JpZ2luX2Vj{LONG}»", f"«ABSK{LONG}»"),
    "webhook": (
        f"https://hooks.slack.com/services/«T0AB12/B0CD34/{MIXED}»",
        f"https://discord.com/api/webhooks/«123456789/{MIXED}»",
        f"https://x.webhook.office.com/«webhookb2/{MIXED}»",
        f"https://hooks.zapier.com/hooks/catch/«12345/{MIXED}»",
    ),
    "api-key": (f"«sk-{MIXED}»",),
    "mail-key": (f"«{HEX}-us14»", f"«xkeysib-{HEX}{HEX}-{MIXED[:16]}»"),
    "service-key": (f"«{HEX}abcdNRAL»",),
    "jwt": (f"«eyJ{MIXED}.{MIXED}.{MIXED}»",),
    "service-token": (
        f"«access_token$production$abcdefgh12345678${HEX}»",
        f"«amzn.mws.{UUID}»", f"«sdk-{UUID}»", f"«api-{UUID}»",
        f"«{'A' * 21}{LONG}»"[:80] + "»",
        f"«aB3xY9kQ2zLm7R.atlasv1.{LONG[:64]}»",
        f"«aB38Q~{MIXED}»", f"«aB37Q~{MIXED}»",
        f"«patAB12cd34EF56gh.{HEX}{HEX}»",
    ),
    "bot-token": (f"«1234567890:A{MIXED}»",),
    "password-hash": tuple(f"me:«{start}{MIXED}»" for start in ("$apr1$", "$1$", "$5$", "$6$", "$2a$", "$2b$", "$2y$", "$y$")),
    "private-key": (
        f"«LS0tLS1CRUdJTiBSU0Eg{LONG}»", f"Private-Lines: 1\n«{LONG[:44]}»", f"«RWRTY0Iy{LONG}»",
        f'"d": "«{LONG[:43]}»"',
    ),
    "authorization": (f"bearer «{MIXED}»", f"Authorization: «{MIXED}»", f"Signature=«{HEX}{HEX}»"),
    "cookie": (
        f"cookie: «sid={MIXED}»",
        *(f"{start}«{MIXED}»" for start in ("PHPSESSID=", "sessionid=", "app_session=", "connect.sid=")),
    ),
    "password": (
        f"postgres://app:«{WORD}»@db/x",
        *(f"{start}«{WORD}»" for start in (
            "mysql -u me -p", "mariadb -u me -p", "sshpass -p ", "redis-cli -a ", "docker login -p ", "podman login -p ",
            "az login -p ", "ldapsearch -w ", "unzip -P ", "mosquitto_pub -P ", "htpasswd -b file me ", "openssl enc -k ",
            "curl -u me:", "wget --user me:", "login me password ",
        )),
        f"identified by '«{WORD}»'", f"create role a password '«{WORD}»'",
    ),
    "token": (f"https://«{MIXED}»@host/x", f"?key=«{MIXED}»", f"x&sig=«{MIXED}»"),
    "secret": (
        *(f"{start}«{MIXED}»" for start in ("--api-key ", "psk=", "wpa_passphrase=")),
        *(f"{start}=«{MIXED}»" for start in (
            "password", "passwd", "passphrase", "pass_phrase", "passcode", "secret", "credential", "token", "api_key",
            "pass", "pwd", "pat", "auth", "jwt",
        )),
        *(f"the {start} is «{MIXED}»" for start in ("password", "passwd", "secret", "token", "api key")),
        *(f"<{start}>«{MIXED}»</{start}>" for start in ("password", "passphrase", "secret", "token", "apikey", "pwd")),
        *(f"<key>{start}</key><string>«{MIXED}»</string>" for start in ("password", "secret", "token", "apikey")),
        f'ConvertTo-SecureString "«{MIXED}»"',
    ),
}  # fmt: skip
CASES = [(kind, line) for kind, lines in STARTS.items() for line in lines]


@pytest.mark.parametrize(
    ("kind", "line"), CASES, ids=[f"{k}-{n}" for n, (k, _) in enumerate(CASES)]
)
def test_a_beginning_is_known_by_itself(kind: str, line: str) -> None:
    before, secret, after = re.split("[«»]", line)
    found = Redactor().text(f"see {before}{secret}{after} end")
    assert found == f"see {before}[redacted:{kind}]{after} end", secret


def test_secrets_are_called_by_these_kinds() -> None:
    assert {shape.kind for shape in SHAPES} == KINDS
