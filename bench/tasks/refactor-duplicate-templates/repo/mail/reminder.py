"""The letter of reminder."""

import textwrap

TEAM = "The Garden Club"


def reminder(name, days):
    body = f"Your fee is due in {days} days. Please bring it to the next meeting."
    lines = textwrap.wrap(body, 40)
    lines.insert(0, f"Dear {name},")
    lines.insert(1, "")
    lines.append("")
    lines.append(TEAM)
    return "\n".join(lines) + "\n"
