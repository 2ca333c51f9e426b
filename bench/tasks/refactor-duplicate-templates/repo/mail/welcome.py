"""The letter of welcome."""

import textwrap

TEAM = "The Garden Club"


def welcome(name):
    body = "We are glad that you joined us. Bring your boots to the first meeting."
    lines = textwrap.wrap(body, 40)
    lines.insert(0, f"Dear {name},")
    lines.insert(1, "")
    lines.append("")
    lines.append(TEAM)
    return "\n".join(lines) + "\n"
