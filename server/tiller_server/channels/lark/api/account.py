"""The app on whose behalf messages are read and sent."""

from collections.abc import Mapping
from typing import ClassVar, Final
from urllib.parse import urlsplit

from agent_core.kernel.values import SecretValue

DOMAINS: Final[Mapping[str, str]] = {
    "feishu": "https://open.feishu.cn",
    "lark": "https://open.larksuite.com",
}
LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})


class LarkAccount(SecretValue, frozen=True, kw_only=True):
    """A self-built app. Each event of an app goes to one connection at random: two processes need two apps."""

    hidden: ClassVar[frozenset[str]] = frozenset({"app_secret"})

    app_id: str
    app_secret: str
    domain: str = "feishu"
    """`feishu`, `lark`, or the URL of another installation."""

    @property
    def base_url(self) -> str:
        """Return the URL of the platform, without a slash at its end."""
        return DOMAINS.get(self.domain, self.domain).rstrip("/")


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine, where no proxy is used."""
    return urlsplit(url).hostname in LOOPBACK
