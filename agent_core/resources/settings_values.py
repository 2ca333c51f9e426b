"""The keys of settings.json with their types and defaults."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from agent_core.events import PermissionMode, QueueMode, ThinkingLevel
from agent_core.kernel import JsonObject
from agent_core.kernel.json import decode, encode, is_object

Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0)]
Wait = Annotated[float, Field(gt=0)]


class Group(BaseModel):
    """An object of settings: strict about types, tolerant of keys that it does not know."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        frozen=True,
        strict=True,
        validate_by_name=True,
        validate_by_alias=True,
    )


class PermissionSettings(Group):
    """What tools may do without being asked."""

    mode: PermissionMode = Field("ask", description="How much runs without a question.")
    fallback: Literal["ask", "deny", "rules"] = Field(
        "ask", description="What answers when nobody can be asked."
    )
    timeout_s: Seconds = Field(300, description="How long a question waits, in seconds.")


class RetrySettings(Group):
    """Trying a failed model call again."""

    enabled: bool = Field(default=True, description="Try again after a failure that may pass.")
    max_retries: Count = Field(3, description="Tries after the first, per prompt.")
    base_delay_ms: Count = Field(2000, description="First wait; doubles with each try.")
    max_delay_ms: Count = Field(60000, description="Longest wait; beyond it the run ends.")


class CompactionSettings(Group):
    """Summing up a conversation that outgrows the context window."""

    enabled: bool = Field(default=True, description="Compact when the context fills up.")
    reserve_tokens: Count = Field(16384, description="Room kept free for the answer.")
    keep_recent_tokens: Count = Field(20000, description="How much is kept word for word.")


class BashSettings(Group):
    """The bash tool."""

    timeout_s: Wait = Field(600, description="Limit of a command that names none, in seconds.")
    prefix: str | None = Field(None, description="Shell text put before every command.")
    shell_path: str | None = Field(None, description="The bash to use.")


class ImageSettings(Group):
    """Pictures in prompts and tool results."""

    auto_resize: bool = Field(default=True, description="Shrink what the provider would refuse.")
    block_images: bool = Field(default=False, description="Never send a picture to a provider.")


class StreamSettings(Group):
    """How long a silent provider is waited for."""

    first_byte_timeout_s: Wait = Field(300, description="Until the first byte, in seconds.")
    idle_timeout_s: Wait = Field(30, description="Between two chunks, in seconds.")


class SteerSettings(Group):
    """What happens to running processes when the user speaks."""

    grace_s: Seconds | None = Field(
        2, description="Seconds a process may go on; 0: none, null: to its end."
    )


class BudgetSettings(Group):
    """Limits of one run; null: none."""

    usd: Seconds | None = Field(None, description="US dollars.")
    tokens: Count | None = Field(None, description="Tokens of all kinds.")
    turns: Count | None = Field(None, description="Answers of the model.")
    minutes: Seconds | None = Field(None, description="Minutes of wall time.")


class SettingsValues(Group):
    """Everything in settings.json that this version understands."""

    default_provider: str | None = Field(None, description="Provider of the default model.")
    default_model: str | None = Field(None, description="Id of the default model.")
    default_thinking_level: ThinkingLevel = Field(
        "medium", description="How much a model thinks unless told otherwise."
    )
    scoped_models: tuple[str, ...] = Field((), description="Models to cycle through.")
    permission: PermissionSettings = Field(default_factory=PermissionSettings)
    default_project_trust: Literal["ask", "always", "never"] = Field(
        "ask", description="Whether the .tiller folder of a new workspace is used."
    )
    sandbox: Literal["auto", "off"] = Field("auto", description="Whether commands are contained.")
    retry: RetrySettings = Field(default_factory=RetrySettings)
    compaction: CompactionSettings = Field(default_factory=CompactionSettings)
    steering_mode: QueueMode = Field("one-at-a-time", description="How steering is delivered.")
    follow_up_mode: QueueMode = Field("one-at-a-time", description="How follow-ups are delivered.")
    tool_execution: Literal["parallel", "sequential"] = Field(
        "parallel", description="How safe tool calls of one answer run."
    )
    skip_on_steer: bool = Field(
        default=True, description="Skip calls that have not started when the user speaks."
    )
    default_tools: str | tuple[str, ...] = Field(
        "default", description="A preset, or tool names; +name and -name change what is below."
    )
    bash: BashSettings = Field(default_factory=BashSettings)
    images: ImageSettings = Field(default_factory=ImageSettings)
    stream: StreamSettings = Field(default_factory=StreamSettings)
    steer: SteerSettings = Field(default_factory=SteerSettings)
    durability: Literal["entry", "run"] = Field(
        "run", description="When entries are forced to the disk."
    )
    budgets: BudgetSettings = Field(default_factory=BudgetSettings)

    def as_json(self) -> JsonObject:
        """Give every key with its value, unknown keys included."""
        dumped = decode(self.model_dump_json(by_alias=True))
        return dumped if is_object(dumped) else {}


def settings_schema() -> JsonObject:
    """Give the JSON Schema by which editors complete and check settings.json."""
    made = decode(encode(SettingsValues.model_json_schema(by_alias=True)))
    body = made if is_object(made) else {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **body,
        "title": "Tiller settings",
    }
