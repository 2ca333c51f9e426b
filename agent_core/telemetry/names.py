"""Names of spans, attributes and metrics: the OpenTelemetry conventions for generative AI, in one place.

Source: the package opentelemetry-semantic-conventions 0.66b2; a test compares every name with it. Names that the
conventions lack are below `tiller.`. Nothing here imports a library of OpenTelemetry.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from agent_core.events import RunEnded, RunStatus, ToolStatus
from agent_core.kernel import ToolCallId
from agent_core.kernel.errors import ProviderError
from agent_core.messages import AssistantMessage, StopReason, Usage
from agent_core.providers import ModelInfo, ModelRequest
from agent_core.telemetry.values import Attributes, AttributeValue

AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_VERSION: Final = "gen_ai.agent.version"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
MCP_METHOD: Final = "mcp.method.name"
MCP_PROTOCOL: Final = "mcp.protocol.version"
OPERATION: Final = "gen_ai.operation.name"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
COUNT_TYPE: Final = "gen_ai.token.type"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_RESULT: Final = "gen_ai.tool.call.result"
TOOL_TYPE: Final = "gen_ai.tool.type"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_creation.input_tokens"
USAGE_INPUT: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT: Final = "gen_ai.usage.output_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
WORKFLOW_NAME: Final = "gen_ai.workflow.name"

COST_USD: Final = "tiller.cost.usd"
MCP_SERVER: Final = "tiller.mcp.server"
RUN_ID: Final = "tiller.run.id"
RUN_STATUS: Final = "tiller.run.status"
RUN_TOOL_CALLS: Final = "tiller.run.tool_calls"
RUN_TURNS: Final = "tiller.run.turns"
TOOL_STATUS: Final = "tiller.tool.status"

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
INVOKE_AGENT: Final = "invoke_agent"
INVOKE_WORKFLOW: Final = "invoke_workflow"
TOOLS_CALL: Final = "tools/call"

CALL_COUNTS: Final = "gen_ai.client.token.usage"
CALL_DURATION: Final = "gen_ai.client.operation.duration"
FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
PER_CHUNK: Final = "gen_ai.client.operation.time_per_output_chunk"
MCP_DURATION: Final = "mcp.client.operation.duration"
AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
WORKFLOW_DURATION: Final = "gen_ai.invoke_workflow.duration"

_TOKEN_BUCKETS: Final = tuple(4.0**power for power in range(14))
_TIME_BUCKETS: Final = tuple(0.01 * 2**power for power in range(14))
_CHUNK_BUCKETS: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_LONG_BUCKETS: Final = (*_TIME_BUCKETS, 163.84, 327.68, 655.36, 1310.72, 2621.44)
HISTOGRAMS: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    CALL_COUNTS: ("{token}", _TOKEN_BUCKETS),
    CALL_DURATION: ("s", _TIME_BUCKETS),
    FIRST_CHUNK: ("s", _TIME_BUCKETS),
    PER_CHUNK: ("s", _CHUNK_BUCKETS),
    MCP_DURATION: ("s", _TIME_BUCKETS),
    AGENT_DURATION: ("s", _LONG_BUCKETS),
    TOOL_DURATION: ("s", _TIME_BUCKETS),
    WORKFLOW_DURATION: ("s", _LONG_BUCKETS),
}
"""Unit and bucket boundaries of each metric; all of them are histograms."""

PROVIDERS: Final[Mapping[str, str]] = {
    "amazon-bedrock": "aws.bedrock",
    "azure-openai": "azure.ai.openai",
    "google": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""Providers whose name in the conventions differs from their id; the others keep their id."""

_FINISH_REASONS: Final[Mapping[StopReason, str]] = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool_call",
    "error": "error",
    "aborted": "cancelled",
}
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


def finish_reason(message: AssistantMessage) -> str:
    """Return the reason why an answer ended, as the schema of messages names it."""
    return _FINISH_REASONS[message.stop_reason]


def target(model: ModelInfo) -> Attributes:
    """Return the attributes that name a model and its server."""
    found: dict[str, AttributeValue] = {
        OPERATION: CHAT,
        PROVIDER: PROVIDERS.get(model.provider, model.provider),
        REQUEST_MODEL: model.id,
    }
    try:
        url = urlsplit(model.base_url)
        port = url.port or _PORTS.get(url.scheme)
    except ValueError:
        return found
    if url.hostname:
        found[SERVER_ADDRESS] = url.hostname
        if port is not None:
            found[SERVER_PORT] = port
    return found


def request(model: ModelInfo, asked: ModelRequest) -> Attributes:
    """Return what is known of a model call when it begins."""
    limit = asked.max_tokens or model.max_tokens
    maximum: Attributes = {REQUEST_MAX_TOKENS: limit} if limit else {}
    session: Attributes = {CONVERSATION_ID: asked.session} if asked.session else {}
    return {**target(model), **maximum, **session, REQUEST_STREAM: True}


def answer(message: AssistantMessage) -> Attributes:
    """Return what the answer of a model call adds."""
    id_: Attributes = {RESPONSE_ID: message.response_id} if message.response_id else {}
    return {
        **id_,
        RESPONSE_MODEL: message.model,
        RESPONSE_FINISH_REASONS: (finish_reason(message),),
    }


def usage(tokens: Usage) -> Attributes:
    """Return the counts of tokens; the input includes what was read from and written to the provider's cache."""
    cost: Attributes = {} if tokens.cost is None else {COST_USD: tokens.cost.total}
    return {
        USAGE_INPUT: input_tokens(tokens),
        USAGE_OUTPUT: tokens.output,
        USAGE_CACHE_READ: tokens.cache_read,
        USAGE_CACHE_WRITE: tokens.cache_write,
        USAGE_REASONING: tokens.reasoning,
        **cost,
    }


def input_tokens(tokens: Usage) -> int:
    """Return the tokens of the input, cached ones included."""
    return tokens.input + tokens.cache_read + tokens.cache_write


def agent(name: str, *, session: str, version: str) -> Attributes:
    """Return what is known of a run when it begins."""
    return {
        OPERATION: INVOKE_AGENT,
        AGENT_NAME: name,
        AGENT_VERSION: version,
        CONVERSATION_ID: session,
    }


def run_end(event: RunEnded) -> Attributes:
    """Return what the end of a run adds."""
    return {
        **usage(event.usage.tokens),
        RUN_STATUS: event.status,
        RUN_TURNS: event.turns or 0,
        RUN_TOOL_CALLS: event.tool_calls or 0,
    }


def tool(name: str, call: ToolCallId) -> Attributes:
    """Return what is known of a tool call when it begins."""
    return {OPERATION: EXECUTE_TOOL, TOOL_NAME: name, TOOL_CALL_ID: call, TOOL_TYPE: "function"}


def mcp(name: str, *, server: str, protocol: str) -> Attributes:
    """Return what is known of a request to an MCP server when it begins."""
    return {
        MCP_METHOD: TOOLS_CALL,
        MCP_PROTOCOL: protocol,
        MCP_SERVER: server,
        OPERATION: EXECUTE_TOOL,
        TOOL_NAME: name,
    }


def workflow(name: str, *, session: str) -> Attributes:
    """Return what is known of a workflow, for example a review, when it begins."""
    return {OPERATION: INVOKE_WORKFLOW, WORKFLOW_NAME: name, CONVERSATION_ID: session}


def error_type(error: BaseException) -> str:
    """Return the class of a failure: the HTTP status, the reason that a provider's error has, or the class."""
    if isinstance(error, ProviderError):
        return error.reason if error.status is None else str(error.status)
    return type(error).__name__


def run_error(status: RunStatus) -> str | None:
    """Return the class of a run's failure; None: it did not fail."""
    return None if status == "completed" else status


def tool_error(status: ToolStatus) -> str | None:
    """Return the class of a tool call's failure; None: it did not fail."""
    return None if status == "ok" else status
