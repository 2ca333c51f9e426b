"""Errors: one tree, drawn at its top, and every kind is one that the wire knows."""

import inspect
import re
from typing import get_args

import pytest

from agent_core.kernel import errors
from agent_core.kernel.errors import ProviderError, ProviderErrorKind, TillerError
from tiller_server.lsp.wire.errors import ERROR_KINDS

CLASSES = [
    one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, Exception)
]
REASONS: tuple[ProviderErrorKind, ...] = get_args(ProviderErrorKind)
DRAWN = re.compile(r"^    [│ ]*(?:[├└]── )?(\w+)", re.MULTILINE)


@pytest.mark.parametrize("error", CLASSES)
def test_every_kind_is_one_of_the_wire(error: type[TillerError]) -> None:
    assert issubclass(error, TillerError)
    assert error.kind in ERROR_KINDS
    assert error.__doc__


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_of_a_provider_has_a_kind_of_the_wire(reason: ProviderErrorKind) -> None:
    assert ProviderError("no", reason=reason, provider="p").wire_kind in ERROR_KINDS


def test_the_tree_is_drawn_whole_at_the_top() -> None:
    assert sorted(DRAWN.findall(errors.__doc__ or "")) == sorted(one.__name__ for one in CLASSES)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("auth", "AuthRequired"),
        ("rate_limit", "RateLimited"),
        ("quota", "RateLimited"),
        ("context_overflow", "ContextOverflow"),
        ("server", "ModelError"),
        ("protocol", "ModelError"),
    ],
)
def test_what_a_user_can_act_on_has_a_kind_of_its_own(reason: ProviderErrorKind, kind: str) -> None:
    error = ProviderError(
        "slow down",
        reason=reason,
        provider="p",
        status=429,
        retry_after_s=1.5,
        before_first_byte=True,
    )
    assert (str(error), error.wire_kind) == ("slow down", kind)
    assert (error.reason, error.provider, error.status) == (reason, "p", 429)
    assert (error.retry_after_s, error.before_first_byte) == (1.5, True)
