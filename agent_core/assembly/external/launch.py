"""How an external agent of the settings is started."""

from collections.abc import Mapping

from agent_core.acp.port import AgentLaunch
from agent_core.kernel.errors import ToolError
from agent_core.mcp.definitions import expanded
from agent_core.resources.settings.layers import AGENTS, Settings
from agent_core.resources.settings.values import ExternalAgentSettings
from agent_core.workspace.sandbox.environment import is_secret, steers_programs


def launch_of(
    name: str, settings: Settings, *, env: Mapping[str, str], model: str | None
) -> AgentLaunch:
    """Return how an external agent of the settings is started.

    Args:
        name: Name of the agent.
        settings: The settings in force.
        env: The user's environment, for `${NAME}`.
        model: Model that the task is given to; None: as the settings say.

    Raises:
        ToolError: A variable is not there, or the agent may not have it.
    """
    values = settings.values.external_agents[name]
    of_project = settings.sources.get(f"{AGENTS}.{name}.command") == "project"
    options = values.options if model is None else {**values.options, "model": model}
    # What nothing contains has the network, whatever the settings say.
    has_network = values.network or values.sandbox == "off"
    return AgentLaunch(
        name=name,
        argv=(values.command, *values.args),
        env=_variables(name, values, env=env, of_project=of_project),
        needs=frozenset({"network"}) if has_network else frozenset(),
        contained=values.sandbox == "auto",
        options=options,
        start_timeout_s=values.start_timeout_s,
        idle_timeout_s=values.idle_timeout_s,
    )


def _variables(
    name: str, values: ExternalAgentSettings, *, env: Mapping[str, str], of_project: bool
) -> Mapping[str, str]:
    def look_up(variable: str) -> str | None:
        value = env.get(variable)
        if of_project and value is not None and is_secret(variable, value):
            message = f"it asks for {variable}, a secret, which a project does not get; name the agent in your own settings.json"
            raise ValueError(message)
        return value

    found: dict[str, str] = {}
    for variable, text in values.env.items():
        try:
            if steers_programs(variable):
                message = f"{variable} makes programs run other code: begin the command with `env`, and `{variable}=…` as an argument"
                raise ValueError(message)  # noqa: TRY301 - as those of `expanded`
            found[variable] = expanded(text, look_up)
        except ValueError as error:
            message = f"external agent {name!r} cannot be started ({AGENTS}.{name}.env): {error}"
            raise ToolError(message) from error
    return found
