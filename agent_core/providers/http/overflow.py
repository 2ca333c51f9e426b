"""Telling a full context window from every other refusal."""

import re

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
