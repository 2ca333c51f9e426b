"""Where a model of Bedrock is asked: pure."""

import re
from urllib.parse import quote, urlsplit

from agent_core.kernel import JsonValue
from agent_core.providers.model import ModelInfo

DEFAULT_REGION = "us-east-1"
_ARN = re.compile(r"arn:aws[a-z-]*:bedrock:([a-z0-9-]+):")
_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")
_USUAL = re.compile(r"bedrock-runtime\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?")


def region_of(model: ModelInfo) -> str | None:
    """Return the region of a model: from its ARN, else `compat`, else its address; None: none of them has it."""
    arn = _ARN.match(model.id)
    if arn:
        return arn[1]
    chosen = _word(model.compat.get("region"))
    if chosen:
        return chosen
    host = _HOST.search(_host(model.base_url))
    return host[1] if host else None


def profile_of(model: ModelInfo) -> str | None:
    """Name the profile whose credentials are used; None: the usual ones."""
    return _word(model.compat.get("profile"))


def url_of(model: ModelInfo, *, region: str) -> str:
    """Return the address of a model's stream; an ARN is one segment of it."""
    base = model.base_url.rstrip("/")
    if not base or _USUAL.fullmatch(_host(base)):
        # A catalogue knows one region; the model's own ARN or the user's choice is nearer.
        suffix = ".cn" if region.startswith("cn-") else ""
        base = f"https://bedrock-runtime.{region}.amazonaws.com{suffix}"
    return f"{base}/model/{quote(model.id, safe='')}/converse-stream"


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _word(value: JsonValue) -> str | None:
    return value if isinstance(value, str) and value else None
