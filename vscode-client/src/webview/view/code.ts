// A block of code: its language or file, copy and apply, folded when it is long.

import { html } from "lit";
import { unsafeHTML } from "lit/directives/unsafe-html.js";
import type { Chunk } from "../chunks.js";
import { codeHtml } from "../markdown.js";
import type { Panel } from "../panel-context.js";
import { editorOnly } from "../surface.js";
import { plural } from "../words.js";
import { moreButton } from "./folding.js";
import { icon, iconButton, type View } from "./parts.js";
import { isOpen } from "./row-context.js";

type Code = Extract<Chunk, { kind: "code" }>;

const LINES_SHOWN = 40;
const CHARACTERS_SHOWN = 60_000;
const coloured = new WeakMap<Code, { shown: string; html: string }>();

export function codeBlock(panel: Panel, key: string, chunk: Code): View {
  const lines = chunk.text.replace(/\n$/, "").split("\n");
  const long = lines.length > LINES_SHOWN * 1.5;
  const whole = !long || isOpen(panel, key, { usually: false });
  // While it grows its end is what is new.
  const some = chunk.open ? lines.slice(-LINES_SHOWN) : lines.slice(0, LINES_SHOWN);
  const shown = (whole ? lines : some).join("\n").slice(0, CHARACTERS_SHOWN);
  const name = chunk.path || chunk.language || "text";
  return html`<div class="code">
    <div class="code-head">
      <span class="code-name">${icon(chunk.path ? "file-code" : "code")} ${name}</span>
      <span class="code-acts">
        ${iconButton({ icon: "copy", title: "Copy", act: () => panel.host.post({ type: "copy", text: chunk.text }) })}
        ${editorOnly(
          panel,
          iconButton({
            icon: "insert",
            title: "Insert at the cursor of the editor",
            act: () => panel.host.post({ type: "insert", text: chunk.text }),
          }),
        )}
        ${iconButton({
          icon: "git-pull-request-go-to-changes",
          title: "Ask Tiller to apply this",
          act: () => apply(panel, chunk),
        })}
      </span>
    </div>
    ${long && !whole && chunk.open ? moreButton(panel, key, { open: whole, all: plural(lines.length, "line") }) : ""}
    <pre tabindex="0" role="region" aria-label="Code, ${name}"><code>${unsafeHTML(colours(chunk, shown))}</code></pre>
    ${long && !(chunk.open && !whole) ? moreButton(panel, key, { open: whole, all: plural(lines.length, "line") }) : ""}
  </div>`;
}

function colours(chunk: Code, shown: string): string {
  const known = coloured.get(chunk);
  if (known?.shown === shown) return known.html;
  const made = codeHtml(shown, chunk.language);
  coloured.set(chunk, { shown, html: made });
  return made;
}

/** Code of an answer becomes an edit the way all edits are made: verified, undoable, reviewed. */
function apply(panel: Panel, chunk: Code): void {
  const place = chunk.path ? ` to ${chunk.path}` : " where it belongs";
  const text = `Apply this${place}:\n\n\`\`\`${chunk.language}\n${chunk.text.replace(/\n$/, "")}\n\`\`\`\n`;
  panel.dispatch({ type: "compose", text, focus: true });
}
