// What a browser does in the place of an editor: the clipboard, links, files that are saved.

/** Copies text; a page that was not loaded from this machine or over TLS has no clipboard of its own. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard !== undefined) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export function openLink(address: string): void {
  const { protocol } = new URL(address, location.href);
  if (protocol === "http:" || protocol === "https:") window.open(address, "_blank", "noopener,noreferrer");
}

/** Saves text as a file of the browser's downloads. */
export function save(name: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  // Not in the page: its handler of links would take the click.
  link.click();
  URL.revokeObjectURL(address);
}
