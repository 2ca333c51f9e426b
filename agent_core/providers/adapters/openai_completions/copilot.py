"""Request headers of GitHub Copilot. Pure."""

from agent_core.messages import CustomMessage, Image, ToolResultMessage, UserMessage
from agent_core.providers.model import ModelInfo, ModelRequest

HOST = "githubcopilot.com"


def copilot_headers(request: ModelRequest, model: ModelInfo) -> dict[str, str]:
    """Return the headers that Copilot expects; empty for other hosts.

    They name the initiator, since only requests of a user count against the plan, and whether the request has images.
    """
    if HOST not in model.base_url:
        return {}
    last = request.messages[-1] if request.messages else None
    headers = {"x-initiator": "agent" if isinstance(last, ToolResultMessage) else "user"}
    if model.images and _shows_anything(request):
        headers["copilot-vision-request"] = "true"
    return headers


def _shows_anything(request: ModelRequest) -> bool:
    return any(
        isinstance(part, Image)
        for message in request.messages
        if isinstance(message, UserMessage | CustomMessage | ToolResultMessage)
        for part in message.content
    )
