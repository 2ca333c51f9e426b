"""Where the line lies between a secret and a word, a name, a reference or a placeholder."""

import pytest

from agent_core.kernel.redaction.patterns import (
    aws_like,
    ends_as_secret,
    has_digit,
    is_cookie,
    is_drawn,
    is_placeholder,
    is_real,
    is_secret_name,
    lettered,
    looks_secret,
    quoted_secret,
)


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("aB3xY9kQ", True), ("aB3xY9k", False),  # eight signs are the fewest
        ("Summer2026!", True), ("Summer2026", False), ("Summer2026?", False),
        ("aBcDefGhIj", True), ("aBcDefGhI", False),  # capitals as in no name, from ten letters on
        ("abCdeFghIJkl", True), ("abCdeFghIJklm", False),  # a quarter of the places
        ("abcdeFghijkLMnopqRst", True), ("abcdeFghijkLMnopqRs", False),  # fewer in a long one
        ("abcdefghijklmnopqrstuvwx", False), ("ABCDEFGHIJKLMNOPQRSTUVWX", False),
        ("12345678901234", False), ("2026-11-21", False), ("1.2.3.4:8080", False),
        ("my-tls-secret-v2", False), ("oauth2_password_bearer", False), ("correct-horse-battery", False),
        ("aB-xYzWq+kLmN", True), ("ab-xyzwq+klmn", False),  # signs but no digit
        ("settings.api_key2", False), ("px1e3l.jztz7c61faq3o2", True), ("Token::Identifier2", False),
        ("get_password(x1)", False), ("values[0]x1y2", False), ("{user}12345", False),
        ("os.x1y2z3w4", False), ("/etc/ssl/x1y2", False), ("~/x1y2z3w4", False), ("/only-words", False),
        ("/xM7bF8EKIO1d9", True), ("https://x1y2z3.com", False), ("xxxx1a2b3c4d", False), ("", False),
    ],
)  # fmt: skip
def test_secrets_are_told_from_words_and_code(value: str, secret: bool) -> None:
    assert looks_secret(value) is secret


@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("aB3xY9kQ", True), ("aB3xY9k", False), ("<your key 1>", False), ("Passwort2", False),
        ("9!{k2mXq7Zt", True), ("9! {k2mXq7Zt", False), ("hello{there-friend1", False), ("{user}k2mXq7Zt", False),
        ("get(k2mXq7Zt", False), ("x9(k2)[m4]=abcdefgh!", True), ("x9 (k2)[m4]=abcdefgh!", False),
        ("x9(k2)[m4]=abcdefg!", False), ("abcdefghijklmnop(q1)r", False),
    ],
)  # fmt: skip
def test_between_quotes_brackets_are_signs(value: str, secret: bool) -> None:
    assert quoted_secret(value) is secret


@pytest.mark.parametrize(
    ("value", "drawn"),
    [
        ("abcd1", True), ("abcde1", False), ("aBcdeFghiJ", True), ("abcdefGhij", False), ("AB1CDE2FG", True),
        ("key_press_event_handler2", False), ("3f2a9c1b7d", True), ("xxxx1a2b3c", False),
    ],
)  # fmt: skip
def test_what_is_drawn_changes_its_kind_often(value: str, drawn: bool) -> None:
    assert is_drawn(value) is drawn


@pytest.mark.parametrize(
    ("value", "found"),
    [("aBcDEfG7", True), ("aBcDEfGh", False), ("abcdefg7", False), ("ab", False)],
)
def test_forty_signs_need_capitals_and_digits(value: str, found: bool) -> None:
    assert aws_like(value) is found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("aB3xY9kQ", True), ("process.aBcDEfGhIjKlMn", True), ("process.aBcDEfGhIjK", False),
        ("process.environment.home", False), ("process.aBcDEfGexampleKlMn", False),
    ],
)  # fmt: skip
def test_behind_a_scheme_no_digit_is_needed(value: str, found: bool) -> None:
    assert lettered(value) is found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("theme=dark; sid=a1b2c3d4e5f6g7h8; Path=/", True), ("sid=a1b2c3d4e5f6g7h", False),
        ("theme=darkdarkdarkdarkdark", False), ("a1b2c3d4e5f6g7h8i9", False),
    ],
)  # fmt: skip
def test_a_cookie_is_secret_if_one_of_its_values_is(value: str, found: bool) -> None:
    assert is_cookie(value) is found


@pytest.mark.parametrize(
    ("value", "stands_for_another"),
    [
        ("changeme", True), ("postgres", True), ("guest", True), ("your-key-1", True), ("insert-key", True),
        ("${TOKEN}", True), ("$TOKEN", True), ("Bearer $TOKEN", True), ("%s", True), ("{password}", True),
        ("{{ key }}", True), ("<key>", True), ("****", True), ("xxxx", True), ("sk-...", True), ("AKIA1EXAMPLE", True),
        ("xxx1", False), ("a$b3c4", False), ("$2b$12$abc", False), ("postgres1", False), ("a%s", False),
    ],
)  # fmt: skip
def test_placeholders(value: str, stands_for_another: bool) -> None:
    assert is_placeholder(value) is stands_for_another
    assert is_real(value) is not stands_for_another


def test_a_digit_counts_only_in_what_is_real() -> None:
    assert [has_digit(one) for one in ("a1", "ab", "example1")] == [True, False, False]


@pytest.mark.parametrize(
    ("name", "secret", "itself"),
    [
        ("GITHUB_TOKEN", True, True), ("DB_PASS", True, True), ("KEY_2", False, True), ("TOKEN_URL", True, False),
        ("TOKEN_COUNT", False, False), ("MAX_TOKENS", False, False), ("DESKTOP_SESSION", False, False),
        ("PresharedKey", True, True), ("pass_phrase", True, False), ("SSH_AUTH_SOCK", True, False),
        ("PATH", False, False), ("MONKEY", False, True),
    ],
)  # fmt: skip
def test_names(name: str, secret: bool, itself: bool) -> None:
    assert (is_secret_name(name), ends_as_secret(name)) == (secret, itself)
