"""Error codes of the platform, and the reaction that each of them asks for; pure.

The table of the official SDK contradicts the documentation (it takes a rate limit for a missing right), so it is not
used. Codes and meanings: the pages "General error codes", "Send message" and "CardKit" of the open platform.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from agent_core.channels.messaging.port import (
    DeliveryDelayed,
    DeliveryError,
    DeliveryImpossible,
    DeliveryUncertain,
)

TOKEN_INVALID: Final = frozenset({99991661, 99991663, 99991664, 99991665, 99991668})
STREAM_CLOSED: Final = frozenset({200850, 300309})
"""The ten minutes in which a card may grow are over, or its stream was closed."""
SEQUENCE_USED: Final = 300317
CARD_GONE: Final = frozenset({230031, 200740, 300313})
"""The card or the element is not there any more, or is older than 14 days."""
REPLIED_TO_GONE: Final = frozenset({230011, 230019, 230110, 231003})
"""The message that is answered was recalled or deleted, or its thread is gone."""
_DELAYED: Final = frozenset({99991400, 230020, 11232, 200810})
"""Clean refusals: nothing was applied."""
_UNCERTAIN: Final = frozenset({300120, 1, 2200, 1663, 99991401, 99991500})
_TOKEN_WAIT_S: Final = 60.0
_RESET_HEADERS: Final = ("x-ogw-ratelimit-reset", "retry-after")
_ADVICE: Final[Mapping[int, str]] = {
    10003: "check channels.lark.appId",
    10014: "check the app secret",
    11310: "the card needs other content",
    99991672: "grant the scope in the developer console and release a version of the app",
    99991679: "grant the scope in the developer console and release a version of the app",
    230001: "send other content",
    230002: "add the bot to the group",
    230006: "switch on the bot ability of the app in the developer console",
    230011: "the message that it belongs to was recalled",
    230013: "extend the availability of the app to this user",
    230022: "the text has sensitive content; change it",
    230025: "send a shorter text",
    230028: "a rule of the organisation forbids the content; change it",
    230031: "the card is older than 14 days; send a new message",
    230035: "the bot is muted in this group; ask its owner",
    230072: "the message was edited 20 times; send a new one",
    230075: "the time to edit the message is over; send a new one",
    230099: "the card cannot be created; its text is sent instead",
    230110: "the message was deleted; send a new one",
    232009: "the group was dissolved; remove its binding",
    234038: "files of this chat cannot be downloaded",
}


class LarkRefused(DeliveryImpossible):
    """A refusal for good, with the code of the platform.

    Attributes:
        code: The code; 0 when only the status of HTTP said so.
    """

    def __init__(self, message: str, *, code: int) -> None:
        super().__init__(message)
        self.code = code


def delivery_error(
    action: str, *, code: int, detail: str, status: int, headers: Mapping[str, str]
) -> DeliveryError:
    """Return the error for an answer that is no success.

    Args:
        action: The attempted action as part of a sentence, as `send a message`.
        code: Code of the platform; 0 when the body was not understood.
        detail: Its message.
        status: Status of HTTP.
        headers: Headers of the answer, names in lower case.
    """
    shown = f"code {code}" if code else f"status {status}"
    base = f"Lark did not {action} ({shown}{_detail(detail)})"
    if code in _DELAYED or status == HTTPStatus.TOO_MANY_REQUESTS:
        wait_s = _reset_s(headers)
        return DeliveryDelayed(
            f"{base}: its rate limit is reached; it is repeated", retry_after_s=wait_s
        )
    if code in TOKEN_INVALID:
        message = f"{base}: it does not accept the token; check the app id and secret"
        return DeliveryDelayed(message, retry_after_s=_TOKEN_WAIT_S)
    if code in _UNCERTAIN or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return DeliveryUncertain(
            f"{base}: it may have been applied; it is repeated with the same key"
        )
    if code == 0 and status < HTTPStatus.BAD_REQUEST:
        return DeliveryUncertain(f"{base}: the answer is no JSON; check channels.lark.domain")
    advice = _ADVICE.get(code, "see the list of error codes of the open platform")
    return LarkRefused(f"{base}: {advice}", code=code)


def _detail(text: str) -> str:
    line = " ".join(text.split())[:200]
    return f", {line!r}" if line else ""


def _reset_s(headers: Mapping[str, str]) -> float | None:
    for name in _RESET_HEADERS:
        try:
            return max(0.0, float(headers[name]))
        except (KeyError, ValueError):
            continue
    return None
