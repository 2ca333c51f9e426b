// The commands that the panel may start. What is not here the panel cannot start.

export const PANEL_COMMANDS = [
  // Takes the id of a provider, or asks for it. A key is asked for by the editor, never in the panel.
  "tiller.signIn",
  "tiller.signOut",
  "tiller.chooseModel",
  "tiller.addModel",
  // Takes a permission mode. What the user's own settings do not allow, the editor asks about; the panel cannot allow it.
  "tiller.chooseMode",
  "tiller.setCostLimit",
  "tiller.exportMarkdown",
  "tiller.newSession",
  "tiller.stop",
  "tiller.showLog",
  "tiller.restartServer",
  "tiller.reinstallServer",
  "tiller.openSettings",
  "tiller.openFolder",
  "tiller.manageTrust",
  "tiller.installPython",
  "tiller.showChanges",
  "tiller.showAllDiffs",
  "tiller.nextChange",
  "tiller.previousChange",
  "tiller.acceptAll",
  "tiller.rejectAll",
  "tiller.attachSelection",
  "tiller.attachFile",
  "tiller.openWalkthrough",
  "tiller.review",
  "tiller.stopReview",
  // Takes the URI, the range and the message of a finding.
  "tiller.applySuggestion",
] as const;

export type PanelCommand = (typeof PANEL_COMMANDS)[number];

const known: ReadonlySet<string> = new Set(PANEL_COMMANDS);

export function isPanelCommand(name: unknown): name is PanelCommand {
  return typeof name === "string" && known.has(name);
}
