"""The page behind a link: an export without secrets, which runs nothing and loads nothing. Pure."""

import re
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from html import unescape
from typing import Final

from agent_core.kernel.values import Value
from tiller_server.web.shares.models import ApiRedaction, ApiSharePreview

MARK: Final = re.compile(r"\[redacted:([a-z][a-z0-9-]*)\]")
"""Mark that the redactor leaves in the place of a secret."""
TITLE: Final = re.compile(r"<title>(.*?)</title>", re.DOTALL)
STYLE: Final = re.compile(r"<style>(.*?)</style>", re.DOTALL)


class SharedPage(Value, frozen=True, kw_only=True):
    """Export of a session as HTML, and the parts of it that a preview and a policy name."""

    content: str
    title: str
    style: str
    """Source of its style in a policy."""

    @classmethod
    def of(cls, content: str) -> "SharedPage":
        """Return the page of an export. The document escapes its content, so that the first tags are its own."""
        title, style = TITLE.search(content), STYLE.search(content)
        digest = sha256((style[1] if style else "").encode()).digest()
        return cls(
            content=content,
            title=unescape(title[1]) if title else "",
            style=f"sha256-{b64encode(digest).decode()}",
        )

    @property
    def digest(self) -> str:
        """Digest of the content, which names what a person has agreed to."""
        return sha256(self.content.encode()).hexdigest()

    def preview(self, session: str) -> ApiSharePreview:
        """Return the account of the page that a person sees before there is a link."""
        # Without the head, which repeats the title.
        kinds = Counter(MARK.findall(self.content.partition("</header>")[2]))
        return ApiSharePreview(
            session=session,
            title=self.title,
            size=len(self.content.encode()),
            redacted=tuple(
                ApiRedaction(kind=kind, count=count) for kind, count in sorted(kinds.items())
            ),
            confirm=self.digest,
        )


def policy(style: str) -> str:
    """Return the content security policy of a page: no script, no network, no frame, nothing of our origin."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{style}'",
            "img-src data:",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'none'",
            "sandbox",
        )
    )
