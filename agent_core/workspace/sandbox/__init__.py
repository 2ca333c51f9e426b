"""Containment: limits of the resources that a process started by a tool can see, change and reach."""

from agent_core.workspace.sandbox.backends.uncontained import SWITCHED_OFF, Uncontained
from agent_core.workspace.sandbox.environment import ScrubbedEnvironment, scrubbed
from agent_core.workspace.sandbox.selection import Prober, probe, sandbox_for
from agent_core.workspace.sandbox.values import (
    Boundaries,
    Launch,
    Sandbox,
    SandboxCapability,
    SandboxReport,
)

__all__ = [
    "SWITCHED_OFF",
    "Boundaries",
    "Launch",
    "Prober",
    "Sandbox",
    "SandboxCapability",
    "SandboxReport",
    "ScrubbedEnvironment",
    "Uncontained",
    "probe",
    "sandbox_for",
    "scrubbed",
]
