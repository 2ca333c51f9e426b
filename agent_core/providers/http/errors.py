"""Errors of providers: their kinds by status, body and message, and when to try again."""

import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec.structs import replace

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.kernel.errors import ProviderError, ProviderErrorKind
from agent_core.kernel.redaction.redactor import SHORTEST_CHARS, Redactor, mark
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage

_PATTERNS = (
    r"prompt (?:is )?too long",
    r"prompt exceeds max length",
    r"prompt has \d[\d,]* tokens, but the configured context size",
    r"request_too_large",
    r"input is too long for requested model",
    r"input tokens exceeded",
    r"input token count.{0,40}exceeds the maximum",
    r"input \(\d+ tokens\) is longer than the model'?s context length",
    r"exceeds? (?:the |this |the model'?s |model'?s )?context (?:window|length|size)",
    r"exceeds? (?:the |the model'?s |model'?s )?maximum context length",
    r"exceeds? (?:the )?(?:available )?context size",
    r"exceeds the context window",
    r"exceeds the maximum allowed input length",
    r"exceeded (?:model token limit|max(?:imum)? context length|context length)",
    r"context window (?:is )?exceed(?:s|ed)",
    r"context window exceeds limit",
    r"greater than the context length",
    r">= ?n_ctx|n_keep.{0,40}n_ctx",
    r"maximum context length is \d",
    r"maximum prompt length is \d",
    r"maximum number of input tokens",
    r"too large for model with \d+ maximum context length",
    r"reduce the length of (?:the messages|either one|your prompt)",
    r"range of input length should be",
    r"prompt token count of \d+ exceeds the limit of",
    r"total length of all messages is too long",
    r"too many tokens",
    # Not "token limit reached": OpenRouter says that of the output.
    r"token limit exceeded",
    r"too_many_prompt_tokens",
    r"context_length_exceeded",
    r"exceed_context_size_error",
    r"model_context_window_exceeded",
    r"model_max_prompt_tokens_exceeded",
)
_OVERFLOW = re.compile("|".join(_PATTERNS), re.IGNORECASE)
# These words are about a rate, whatever else the text says: compaction would not help.
_RATE = re.compile(
    r"throttling|service unavailable|rate.?limit|too many requests|per.?minute|per.?day|\bTPM\b|please wait",
    re.IGNORECASE,
)
NEARLY_FULL = 0.99


def is_overflow_text(text: str) -> bool:
    """Return whether an error's text says that the conversation no longer fits.

    The caller has ruled out the statuses and classes of rate limits already: some providers word both alike.
    """
    return _OVERFLOW.search(text) is not None and _RATE.search(text) is None


def overflowed_silently(message: AssistantMessage, *, context_window: int) -> bool:
    """Return whether an answer was given on a conversation that did not fit, without an error.

    Some servers cut the input and answer the rest; others stop at once with no output at all.
    """
    if context_window <= 0:
        return False
    used = message.usage.input + message.usage.cache_read
    if message.stop_reason == "stop":
        return used > context_window
    if message.stop_reason == "length" and message.usage.output == 0:
        return used >= context_window * NEARLY_FULL
    return False


STATUSES: Mapping[int, HTTPStatus] = {
    1002: HTTPStatus.TOO_MANY_REQUESTS,
    1004: HTTPStatus.UNAUTHORIZED,
    1008: HTTPStatus.PAYMENT_REQUIRED,
    2013: HTTPStatus.BAD_REQUEST,
}
"""The statuses that its codes stand for; every other is a fault of the server."""


def exposed(event: JsonObject) -> JsonObject:
    """Return what was told with its error where the others have theirs; as it was when there is none."""
    inner = event.get("base_resp")
    if inner is None or event.get("error"):
        return event
    answer = json.as_object(inner)
    code = answer.get("status_code")
    if not isinstance(code, int) or isinstance(code, bool) or code == 0:
        return event
    said = answer.get("status_msg")
    message = f"{said if isinstance(said, str) and said else 'no text'} (status_code {code})"
    status = STATUSES.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
    return {**event, "error": {"message": message, "code": int(status)}}


PAGE_HEAD = b"<"
"""No dialect's answer begins like this."""
SHOWN = 200
REDIRECTS = range(300, 400)


def web_page(provider: str) -> str:
    """Report that an address leads to something that people read."""
    return f"{provider} answered with a web page; check its base URL (baseUrl in models.json)"


def redirected(provider: str, status: int, *, url: str, location: str) -> str:
    """Return where an answer points to, without what may be secret in an address."""
    target = _split(url, location) if location else None
    if target is None or not target.hostname:
        return f"{provider} answered {status} and points nowhere; check its baseUrl in models.json"
    place = _shown(f"{origin_of(target.geturl())}{target.path}")
    return (
        f"{provider} answered {status} and points to another address ({place}), to which nothing was sent; "
        f"if you trust it, set baseUrl of {provider!r} in models.json to it"
    )


def with_advice(
    text: str, reason: ProviderErrorKind, *, status: int | None, key_source: str | None
) -> str:
    """Add to a provider's own words what the user can do, where waiting or compacting does not help."""
    said = text.rstrip(" .;")
    if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
        return f"{said}; that is a proxy: put its name and password into HTTP_PROXY or HTTPS_PROXY"
    match reason:
        case "auth":
            place = f" (key: {key_source})" if key_source else ""
            return f"{said}{place}; check the key, or sign in again (tiller auth status)"
        case "quota":
            return f"{said}; check the account's plan and balance, or choose another model"
        case "not_found" if status == HTTPStatus.NOT_FOUND:
            return f"{said}; check the model's name (tiller models list) and its baseUrl"
        case _:
            return text


def unreachable(error: BaseException, *, provider: str, url: str, proxy: str | None) -> str:
    """Return why a request could not be sent.

    Args:
        error: The exception of the connection; its causes are examined.
        provider: The provider of the request.
        url: The address of the request; only its origin is shown.
        proxy: The address of the proxy in between, with its variable; None: there is none.
    """
    place = origin_of(url) or "its address"
    if proxy is not None:
        place = f"the proxy {proxy} on the way to {place}"
    for cause in _causes(error):
        explanation = _explain(cause, place)
        if explanation is not None:
            advice = "check the proxy, or name the host in NO_PROXY" if proxy else explanation[1]
            # A certificate is checked behind the proxy too: there its own advice is the right one.
            advice = explanation[1] if isinstance(cause, ssl.SSLError) else advice
            return f"cannot reach {provider}: {explanation[0]}; {advice}"
    said = _shown(str(error) or type(error).__name__)
    if proxy is not None:
        return f"cannot reach {provider}: {place} failed ({said}); check the proxy, or name the host in NO_PROXY"
    return f"cannot reach {provider}: {place} gave no answer ({said}); try again, or check baseUrl"


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address; never user, path or query. Empty when it is none."""
    parts = _split(url)
    if parts is None or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = "" if parts.port is None else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def _explain(cause: BaseException, place: str) -> tuple[str, str] | None:
    """Return what is wrong and what to do."""
    match cause:
        case ssl.SSLCertVerificationError():
            why = _shown(cause.verify_message)
            return (
                f"the certificate of {place} is not trusted ({why})",
                "if it is your company's own, set SSL_CERT_FILE to its certificates",
            )
        case ssl.SSLError():
            why = _shown(cause.reason or "")
            return (
                f"{place} speaks no TLS that we understand ({why})",
                "check baseUrl: is it https or http?",
            )
        case socket.gaierror():
            why = _shown(cause.strerror or "")
            return (
                f"the name of {place} is not known ({why})",
                "check baseUrl and the network connection",
            )
        case ConnectionRefusedError():
            return f"{place} refuses connections", "start the server, or check baseUrl"
        case _:
            return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Return an error and all that led to it; a host with many addresses fails with one for each."""
    seen: list[BaseException] = [error]
    for each in seen:
        yield each
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        behind = (each.__cause__ or each.__context__, *inner)
        seen.extend(one for one in behind if one is not None and one not in seen)


def _split(url: str, reference: str = "") -> SplitResult | None:
    try:
        parts = urlsplit(urljoin(url, reference))
        _ = parts.port
    except ValueError:
        return None
    return parts


def _shown(text: str) -> str:
    return "".join(sign for sign in text if sign.isprintable())[:SHOWN]


MESSAGE_SHOWN = 2_000
FAILING = range(400, 600)
PLACEHOLDER = 4
"""A key shorter than this is no secret, and may be any word of the text."""

QUOTA_CODES = frozenset(("1308", "1113"))
"""z.ai: the plan's cap, no balance."""
_RATE_MARKERS = (
    "rate_limit",
    "rate limit",
    "ratelimit",
    "too_many_requests",
    "resource_exhausted",
    "throttl",
)
_QUOTA = re.compile(
    "|".join(
        (
            "insufficient_quota",
            "insufficient balance",
            "available balance",
            "quota exceeded",
            "exceeded your current quota",
            "billing",
            "credits",
            "spending limit",
            "out of budget",
            "usage.?limit",
            "使用上限",
            "余额",
        )
    ),
    re.IGNORECASE,
)
_OVERLOADED = re.compile(r"overloaded|service_tier_capacity|capacity exceeded", re.IGNORECASE)
_BAD_KEY = re.compile(
    "|".join(
        (
            r"api.?key.{0,20}(?:not valid|invalid|incorrect)",
            r"(?:incorrect|invalid).{0,5}api.?key",
            "API_KEY_INVALID",
            "invalid_api_key",
            "authentication_error",
            "security token",
        )
    ),
    re.IGNORECASE,
)
_UNKNOWN_MODEL = re.compile(
    r"model_not_found|not_found_error|DeploymentNotFound|ResourceNotFound|model identifier is invalid",
    re.IGNORECASE,
)
_UNIT = r"(ms|milliseconds?|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)(?![a-z])"
_TRY_AGAIN = re.compile(
    rf"(?:try again|retry|wait)(?: in| after| for)? ((?:\d+(?:\.\d+)? ?{_UNIT} ?)+)", re.IGNORECASE
)
_SPAN = re.compile(rf"(\d+(?:\.\d+)?) ?{_UNIT}", re.IGNORECASE)
_SECONDS: Mapping[str, float] = {"s": 1.0, "m": 60.0, "h": 3600.0}
_INNER_CLASS = "x-amzn-errortype"
"""The header in which Bedrock names the class; its body holds the message alone."""
_RESET = "x-ratelimit-reset"
"""A moment in milliseconds; OpenRouter writes the headers of the provider behind it into the body."""


class Refusal(Value, frozen=True, kw_only=True):
    """An error body, independent of its format."""

    message: str
    codes: str
    """Everything that names the class: type, code, status word."""
    status: int | None = None
    """A status inside the body: gateways answer 200 and put the real one there."""
    retry_after_s: float | None = None


def failure_from_response(
    *,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    provider: str,
    now_ms: int,
    secrets: tuple[str, ...] = (),
    url: str = "",
    key_source: str | None = None,
) -> ProviderError:
    """Make an error from an HTTP response. Secrets of the request are masked.

    Args:
        status: Status of the response.
        headers: Headers of the response, with names in lower case.
        body: Body of the response, or its beginning.
        provider: The provider that responded.
        now_ms: The current time, for waits that are given as a date.
        secrets: Values that must not be shown.
        url: The URL of the request, to resolve the target of a redirect.
        key_source: The source of the key, named in the error when the key is refused.
    """
    if status in REDIRECTS:
        where = redirected(provider, status, url=url, location=headers.get("location", ""))
        return ProviderError(
            masked(where, secrets),
            # No redirect is followed: the key would go to whoever it names. Waiting changes nothing.
            reason="not_found",
            provider=provider,
            status=status,
            before_first_byte=True,
        )
    refusal = read_refusal(body, named=headers.get(_INNER_CLASS, ""), now_ms=now_ms)
    status_in_force = (
        refusal.status if status < HTTPStatus.BAD_REQUEST and refusal.status else status
    )
    wait = retry_after(headers, now_ms=now_ms)
    # A 200 says nothing about what went wrong.
    reason = classify(status_in_force if status_in_force in FAILING else None, refusal)
    if provider == "cerebras" and status == HTTPStatus.BAD_REQUEST and not body.strip():
        # It says no more than this to a conversation that is too long.
        reason = "context_overflow"
    text = masked(f"{provider} answered {status_in_force}: {refusal.message or 'no text'}", secrets)
    message = with_advice(text, reason, status=status_in_force, key_source=key_source)
    return ProviderError(
        message,
        reason=reason,
        provider=provider,
        status=status_in_force,
        retry_after_s=wait or refusal.retry_after_s or wait,
        before_first_byte=True,
    )


def failure_from_event(event: JsonObject, *, provider: str, parts_came: bool) -> ProviderError:
    """Make an error of an event in the stream that tells of one."""
    refusal = _refusal_of(event, now_ms=None)
    reason = classify(refusal.status, refusal)
    text = f"{provider} broke off: {refusal.message or 'no text'}"
    return ProviderError(
        with_advice(text, reason, status=refusal.status, key_source=None),
        reason=reason,
        provider=provider,
        status=refusal.status,
        retry_after_s=refusal.retry_after_s,
        before_first_byte=not parts_came,
    )


def read_refusal(body: bytes, *, now_ms: int, named: str = "") -> Refusal:
    """Read a body: JSON of any known shape, or plain text; `named` is the class that a header gave."""
    try:
        value = json.decode(body)
    except (ValueError, RecursionError):
        text = body.decode("utf-8", "replace").strip()
        if text.startswith("<"):
            text = "a web page instead of an answer"
        return Refusal(message=text[:MESSAGE_SHOWN], codes=named)
    # Gemini's gateways wrap the object in a list.
    if isinstance(value, list) and value:
        value = value[0]
    refusal = _refusal_of(exposed(json.as_object(value)), now_ms=now_ms)
    return replace(refusal, codes=f"{refusal.codes} {named}".strip())


def classify(status: int | None, refusal: Refusal) -> ProviderErrorKind:
    """Return what kind of failure it is.

    The status and the provider's own class go before the words: a throttled request and a full context are worded
    alike by more than one provider, and compacting does not cure a rate limit.
    """
    text = f"{refusal.codes} {refusal.message}"
    if _OVERLOADED.search(text):
        return "server"
    if status == HTTPStatus.PAYMENT_REQUIRED or not QUOTA_CODES.isdisjoint(refusal.codes.split()):
        return "quota"
    codes = refusal.codes.lower()
    if "resource_exhausted" in codes:
        # Google calls the allowance of a minute a quota too; only that of a day is worth no waiting.
        return "quota" if "perday" in codes else "rate_limit"
    if _QUOTA.search(text) and status not in (HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND):
        return "quota"
    if status == HTTPStatus.TOO_MANY_REQUESTS or any(word in codes for word in _RATE_MARKERS):
        return "rate_limit"
    return _classify_by_text(status, refusal, text)


def retry_after(headers: Mapping[str, str], *, now_ms: int) -> float | None:
    """Read how long to wait, in seconds; a zero beside a real wait does not win."""
    found = (
        _number(headers.get("retry-after-ms"), scale=0.001),
        _number(headers.get("retry-after"), scale=1.0),
        _until(headers.get("retry-after"), now_ms=now_ms),
    )
    waits = [wait for wait in found if wait is not None]
    return next((wait for wait in waits if wait > 0), waits[0] if waits else None)


def masked(text: str, secrets: tuple[str, ...]) -> str:
    """Blot out secrets that a provider may have echoed."""
    for secret in secrets:
        if PLACEHOLDER <= len(secret) < SHORTEST_CHARS:
            text = text.replace(secret, mark("secret"))
    return Redactor(secrets).held(text)


def _classify_by_text(status: int | None, refusal: Refusal, text: str) -> ProviderErrorKind:
    if (
        status is not None
        and status >= HTTPStatus.INTERNAL_SERVER_ERROR
        and "exceed_context_size" not in text
    ):
        return "server"
    if is_overflow_text(text) or (
        status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and not refusal.message
    ):
        return "context_overflow"
    if status == HTTPStatus.UNAUTHORIZED or _BAD_KEY.search(text):
        return "auth"
    if status == HTTPStatus.FORBIDDEN:
        return "auth"
    if status == HTTPStatus.NOT_FOUND or _UNKNOWN_MODEL.search(text):
        return "not_found"
    return _by_class(status, text)


def _by_class(status: int | None, text: str) -> ProviderErrorKind:
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return "timeout"
    if status == HTTPStatus.FAILED_DEPENDENCY:
        # The model behind the gateway failed, not the request.
        return "server"
    if status is not None:
        return "invalid_request"
    lowered = text.lower()
    if any(word in lowered for word in ("invalid_request", "bad_request", "validationexception")):
        return "invalid_request"
    return "server"


def _refusal_of(body: JsonObject, *, now_ms: int | None) -> Refusal:
    inner = body.get("error")
    if isinstance(inner, str):
        # xAI and Ollama: the error is the text, beside a code.
        return Refusal(
            message=inner[:MESSAGE_SHOWN],
            codes=_codes(body),
            status=_status(body),
            retry_after_s=_wait_in(body, inner),
        )
    error = json.as_object(inner) if json.is_object(inner) else body
    message = _text(error.get("message")) or _text(error.get("detail")) or _text(error)
    metadata = json.as_object(error.get("metadata"))
    raw = _text(metadata.get("raw"))
    if raw and raw not in message:
        message = f"{message} ({raw})"
    return Refusal(
        message=message[:MESSAGE_SHOWN].strip(),
        codes=_codes(error),
        status=_status(error),
        retry_after_s=_wait_in(error, message) or _reset_in(metadata, now_ms=now_ms),
    )


def _codes(error: JsonObject) -> str:
    codes = [str(error[key]) for key in ("type", "code", "status") if error.get(key)]
    for detail in _details(error):
        violations = detail.get("violations")
        if isinstance(violations, list):
            codes.extend(_text(json.as_object(each).get("quotaId")) for each in violations)
    return " ".join(word for word in codes if word)


def _status(error: JsonObject) -> int | None:
    for key in ("status_code", "code", "http_code", "raw_status_code", "status"):
        value = error.get(key)
        if isinstance(value, str) and value.isdecimal():
            value = int(value)
        if isinstance(value, int) and value in FAILING:
            return value
    return None


def _wait_in(error: JsonObject, message: str) -> float | None:
    for detail in _details(error):
        delay = detail.get("retryDelay")
        if isinstance(delay, str):
            return _span(delay)
    found = _TRY_AGAIN.search(message)
    return _span(found[1]) if found else None


def _reset_in(metadata: JsonObject, *, now_ms: int | None) -> float | None:
    headers = json.as_object(metadata.get("headers"))
    for key, value in headers.items():
        if now_ms is None or key.lower() != _RESET:
            continue
        moment_s = _number(str(value), scale=0.001)
        # A moment that is over tells of another clock, not that now is the time.
        if moment_s is not None and moment_s > now_ms / 1000:
            return round(moment_s - now_ms / 1000, 3)
    return None


def _details(error: JsonObject) -> list[JsonObject]:
    details = error.get("details")
    return [json.as_object(detail) for detail in details] if isinstance(details, list) else []


def _span(text: str) -> float | None:
    spans = [(float(span[1]), span[2].lower()) for span in _SPAN.finditer(text)]
    if not spans:
        return None
    return round(
        sum(
            number * (0.001 if unit == "ms" or unit.startswith("milli") else _SECONDS[unit[0]])
            for number, unit in spans
        ),
        3,
    )


def _number(text: str | None, *, scale: float) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return round(value * scale, 3) if 0 <= value < float("inf") else None


def _until(text: str | None, *, now_ms: int) -> float | None:
    if not text or not any(letter.isalpha() for letter in text):
        return None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, round(moment.timestamp() - now_ms / 1000, 3))


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return json.encode(value).decode() if value else ""
