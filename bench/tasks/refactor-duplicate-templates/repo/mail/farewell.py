"""The letter of farewell."""

import textwrap

TEAM = "The Garden Club"


def farewell(name):
    body = "Thank you for the years that you spent with us. The gate is always open."
    lines = textwrap.wrap(body, 40)
    lines.insert(0, f"Dear {name},")
    lines.insert(1, "")
    lines.append("")
    lines.append(TEAM)
    return "\n".join(lines) + "\n"
