// Where the user writes: the text, what goes along, completion, and the choices for the next words.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { repeat } from "lit/directives/repeat.js";
import type { Role } from "../../shared/messages.js";
import type { Panel } from "../panel-context.js";
import { type Picture, pictureAddress } from "../pictures.js";
import { oneLine } from "../safe-text.js";
import { attachGathered, send, sendTitle } from "../sending.js";
import type { Attachment, Offers, Rewriting } from "../state.js";
import { isBusy } from "../state.js";
import { actsOf, editorOnly, isWeb, may } from "../surface.js";
import { showCheckpoint, stop } from "../verbs.js";
import { baseName, linesText } from "../words.js";
import { allowDrop, dropped, FIELD, insert, leaveEditing, pasted, pressed, typed } from "./composer-keys.js";
import { meter } from "./meter.js";
import { icon, iconButton, type View } from "./parts.js";
import { modelPicker, modePicker, thinkingPicker } from "./pickers.js";

export function composer(panel: Panel): View {
  if (!may(panel, "operator")) return reader(panel);
  const { composer: state } = panel.state;
  const { offers: shown } = state;
  return html`<div class="composer" @dragover=${allowDrop} @drop=${(event: DragEvent) => dropped(panel, event)}>
    ${shown && shown.items.length > 0 ? offers(panel, shown) : nothing}
    ${state.editing ? editing(panel) : nothing} ${state.rewriting ? rewriting(panel, state.rewriting) : nothing}
    ${attachments(panel, state.attachments)}
    <textarea
      id=${FIELD}
      rows="1"
      .value=${live(state.text)}
      placeholder=${placeholder(panel)}
      aria-label="Prompt"
      role="combobox"
      aria-expanded=${String(shown !== undefined && shown.items.length > 0)}
      aria-controls="offers"
      aria-autocomplete="list"
      aria-activedescendant=${shown ? `offer-${shown.chosen}` : nothing}
      @input=${(event: Event) => typed(panel, event)}
      @keydown=${(event: KeyboardEvent) => pressed(panel, event)}
      @paste=${(event: ClipboardEvent) => pasted(panel, event)}
      @blur=${() => panel.dispatch({ type: "composer", action: { type: "offered", offers: undefined } })}
    ></textarea>
    ${tools(panel)}
  </div>`;
}

const READERS: Readonly<Partial<Record<Role, string>>> = {
  reader: "This page only reads.",
  observer: "This page only reads: tiller web runs as observer.",
  approver: "This page answers questions and stops runs: tiller web runs as approver.",
};

/** Stands in the place of the composer on a page that may not write. */
function reader(panel: Panel): View {
  const { session, role, busy } = panel.state;
  const stopButton = {
    icon: "debug-stop",
    title: "Stop",
    act: () => stop(panel),
    more: "stop",
    disabled: busy["stop"] === true,
  };
  return html`<div class="composer reader">
    <span class="dim grow">${icon("eye")} ${READERS[role]}</span>
    ${session && isBusy(session) ? actsOf(panel, "approver", iconButton(stopButton)) : nothing}
  </div>`;
}

function tools(panel: Panel): View {
  const { session } = panel.state;
  const addFile = () => panel.host.post({ type: "command", command: "tiller.attachFile" });
  const addSelection = () => attachGathered(panel, "selection");
  return html`<div class="tools">
    ${iconButton({ icon: "add", title: isWeb(panel) ? "Add a picture, PDF or text" : "Add a file", act: addFile })}
    ${editorOnly(panel, iconButton({ icon: "list-selection", title: "Add the editor selection", act: addSelection }))}
    ${session ? html`${modePicker(panel, session)} ${modelPicker(panel, session)} ${thinkingPicker(panel, session)}` : nothing}
    <span class="grow"></span>
    ${session ? meter(panel, session) : nothing} ${goButtons(panel)}
  </div>`;
}

function goButtons(panel: Panel): View {
  const { composer: state, session, host, busy } = panel.state;
  const going = session !== undefined && isBusy(session);
  const empty = !state.text.trim() && state.attachments.length === 0;
  const stopButton = {
    icon: "debug-stop",
    title: "Stop (Escape)",
    act: () => stop(panel),
    more: "stop",
    disabled: busy["stop"] === true,
  };
  const sendButton = {
    icon: state.editing ? "check" : "send",
    title: sendTitle(panel),
    act: () => send(panel),
    disabled: !host.ready || session === undefined,
    more: "send",
  };
  return html`${going ? iconButton(stopButton) : nothing} ${going && empty ? nothing : iconButton(sendButton)}`;
}

function editing(panel: Panel): View {
  return html`<div class="editing dim">
    ${icon("edit")} Editing a queued message
    <button type="button" class="link" @click=${() => leaveEditing(panel)}>Cancel</button>
  </div>`;
}

function rewriting(panel: Panel, { checkpoint, files }: Rewriting): View {
  const toggle = (event: Event) => {
    const { checked } = event.currentTarget as HTMLInputElement;
    panel.dispatch({ type: "composer", action: { type: "withFiles", files: checked } });
  };
  return html`<div class="editing dim">
    <div>
      ${icon("edit")} Editing an earlier message. What follows it moves to a branch when you send.
      <button type="button" class="link" @click=${() => leaveEditing(panel)}>Cancel</button>
    </div>
    ${
      checkpoint === undefined
        ? nothing
        : html`<label class="option"><input type="checkbox" .checked=${files} @change=${toggle} /> Restore the files to before it, too
            <button type="button" class="link" @click=${() => showCheckpoint(panel, checkpoint)}>Preview</button></label>`
    }
  </div>`;
}

/** Shows what goes along: first what the editor adds by itself, which one click leaves out. */
function attachments(panel: Panel, all: readonly Attachment[]): View {
  if (all.length === 0 && !panel.state.context) return nothing;
  return html`<div class="chips">
    ${blind(panel, all)} ${implicit(panel)}
    ${repeat(
      all,
      (one) => one.id,
      (one) => attached(panel, one),
    )}
  </div>`;
}

/** Warns that the model does not take the pictures of a prompt, which is then refused. */
function blind(panel: Panel, all: readonly Attachment[]): View {
  const { session, lists } = panel.state;
  const model = lists.models?.find((one) => one.model === session?.config.model);
  if (!model || model.images || !all.some((one) => one.block.type === "image")) return nothing;
  return html`<div class="editing dim" role="status">${icon("warning")} ${oneLine(model.name)} does not accept images. Remove them, or choose another model.</div>`;
}

function implicit(panel: Panel): View {
  const { context, withoutContext: off } = panel.state;
  if (!context) return nothing;
  const title = off
    ? "The editor's context is left out. Click to send it with your prompts."
    : "Sent with your prompt: this file's name, your selection and the open tabs. Click to leave it out.";
  return html`<button
    type="button"
    class="chip implicit ${off ? "off" : ""}"
    title=${title}
    aria-pressed=${String(!off)}
    @click=${() => panel.dispatch({ type: "withoutContext", on: !off })}
  >
    ${icon(off ? "eye-closed" : "eye")}<span class="chip-label">${oneLine(baseName(context.uri))}</span>
    ${context.selection ? html`<span class="chip-detail">${linesText(context.selection)}</span>` : nothing}
  </button>`;
}

function placeholder(panel: Panel): string {
  const { host, session } = panel.state;
  if (!host.ready) return "Tiller is not ready yet";
  // A phone has no Alt key.
  const isTouched = matchMedia("(hover: none)").matches;
  if (session && isBusy(session)) return isTouched ? "Interrupt" : "Enter: interrupt · Alt+Enter: queue";
  return "Describe a task or ask a question";
}

function attached(panel: Panel, one: Attachment): View {
  const remove = () => panel.dispatch({ type: "composer", action: { type: "detached", id: one.id } });
  const block = one.block;
  const address = block.type === "image" ? pictureAddress(panel, block as Picture, "small") : undefined;
  const shown = address === undefined ? icon(one.icon) : html`<img class="thumb" alt="" src=${address} />`;
  return html`<span class="chip"
    >${shown}<span class="chip-label">${oneLine(one.label)}</span>
    ${one.detail ? html`<span class="chip-detail">${one.detail}</span>` : nothing}
    ${iconButton({ icon: "close", title: `Remove ${oneLine(one.label)}`, act: remove })}</span
  >`;
}

function offers(panel: Panel, { items, chosen }: Offers): View {
  return html`<div class="offers" id="offers" role="listbox" aria-label="Completions">
    ${items.map(
      (item, index) =>
        html`<div
          id="offer-${index}"
          class="offer ${index === chosen ? "chosen" : ""}"
          role="option"
          aria-selected=${String(index === chosen)}
          @mousedown=${(event: Event) => {
            event.preventDefault();
            insert(panel, item);
          }}
        >
          ${icon(item.icon)}<span class="offer-label">${oneLine(item.label)}</span>
          <span class="offer-detail">${oneLine(item.detail ?? "")}</span>
        </div>`,
    )}
  </div>`;
}
