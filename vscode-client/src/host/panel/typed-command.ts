// A command as it is typed into a terminal, so that no part of it runs before the user presses Enter.

/** Returns the command without what a terminal takes as a key: control characters, and Enter at its end. */
export function typedText(command: string): string {
  return command
    .replaceAll(/\r\n?/g, "\n")
    .replaceAll(/[^\P{Cc}\n\t]/gu, "")
    .trim();
}

/** Returns whether a text can be typed as it is: line breaks run commands, and tabs complete words. */
export function isOneLine(text: string): boolean {
  return !/[\n\t]/.test(text);
}
