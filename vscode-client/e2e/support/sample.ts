// The small project that the stories are about, and what the scripted model does with it.
import type { Turn } from "./provider.ts";

export const GREETINGS = `"""Greets people by the time of day."""


def morning(name: str) -> str:
    return f"good morning, {name}"


def noon(name: str) -> str:
    return f"good day, {name}"


def evening(name: str) -> str:
    return f"good evening, {name}"
`;

export const SHOUTED = ["GOOD MORNING", "GOOD DAY", "GOOD EVENING"] as const;

/** Changes the three greetings in one call, so that three hunks wait. */
export const shouting: Turn = {
  thinking: "Three functions greet. I put all three into upper case in one edit.",
  text: "I put the three greetings into upper case. The file has a line of yours that is not saved; I edit around it.",
  delta_delay_s: 0.12,
  deltas: 18,
  tool_calls: [
    {
      name: "edit",
      arguments: {
        path: "greet.py",
        edits: SHOUTED.map((words) => ({
          oldText: `f"${words.toLowerCase()}, {name}"`,
          newText: `f"${words}, {name.upper()}!"`,
        })),
      },
    },
  ],
};

/** Three short paragraphs with what a transcript has to show: a list, a table, code. */
export const REPORT = `All three greetings **shout** now.

- \`morning\`, \`noon\` and \`evening\` answer in upper case
- your unsaved lines are as you left them

\`\`\`python
>>> morning("Ada")
'GOOD MORNING, ADA!'
\`\`\`
`;
