// The choices below the text: permission mode, model, thinking.

import { html, nothing } from "lit";
import type { Mode, ModelEntry, Thinking } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { oneLine } from "../safe-text.js";
import type { SessionView } from "../state.js";
import { isWeb } from "../surface.js";
import { chooseMode, configure, go, loadModels } from "../verbs.js";
import { icon, type View } from "./parts.js";

const MODES: readonly [Mode, string, string, string][] = [
  ["ask", "Ask", "Asks before commands outside the sandbox", "shield"],
  ["auto", "Auto", "As Ask, but your allow rules apply", "rocket"],
  ["plan", "Plan", "Reads and plans, changes nothing", "checklist"],
  ["yolo", "Full access", "Never asks, except for protected files", "warning"],
];
const LEVELS: readonly Thinking[] = ["off", "minimal", "low", "medium", "high", "xhigh", "max"];

interface Choice {
  id: string;
  label: string;
  detail?: string;
  icon?: string;
}

export function modePicker(panel: Panel, session: SessionView): View {
  const [, name, , sign] = MODES.find(([mode]) => mode === session.config.mode) ?? [
    "",
    session.config.mode,
    "",
    "shield",
  ];
  const choices: Choice[] = [
    // A browser cannot give full access: that is for the terminal or the editor of the user.
    ...MODES.filter(([id]) => id !== "yolo" || !isWeb(panel)).map(([id, label, detail, picture]) => ({
      id,
      label,
      detail,
      icon: picture,
    })),
    ...(isWeb(panel) ? [] : [{ id: "", label: "Permission rules…", icon: "list-unordered" }]),
  ];
  return picker(panel, {
    name: "mode",
    title: "Permission mode",
    now: name,
    shown: html`${icon(sign)} <span class="picker-word">${name}</span>`,
    choices,
    chosen: session.config.mode,
    choose: (mode) => (mode ? chooseMode(panel, mode as Mode) : go(panel, "rules")),
  });
}

export function thinkingPicker(panel: Panel, session: SessionView): View {
  const known = panel.state.lists.models?.find((one) => one.model === session.config.model)?.thinking;
  const levels = known && known.length > 0 ? known : LEVELS;
  if (known && known.length <= 1) return nothing;
  return picker(panel, {
    name: "thinking",
    title: "Thinking effort",
    now: session.config.thinking,
    shown: html`${icon("lightbulb")} <span class="picker-word">${session.config.thinking}</span>`,
    choices: levels.map((level) => ({ id: level, label: level })),
    chosen: session.config.thinking,
    choose: (thinking) => configure(panel, { thinking: thinking as Thinking }),
  });
}

/** A short list of the models that can be used; all of them have a page of their own. */
export function modelPicker(panel: Panel, session: SessionView): View {
  const { model } = session.config;
  const models = panel.state.lists.models ?? [];
  const name =
    models.find((one) => one.model === model)?.name ??
    model?.slice(model.indexOf("/") + 1) ??
    "Choose a model";
  const usable = shortList(models, model);
  return picker(panel, {
    name: "model",
    title: "Model",
    now: model ? oneLine(name) : "none",
    shown: html`<span class="picker-model ${model ? "" : "wanting"}">${oneLine(name)}</span>`,
    choices: [
      ...usable.map((one) => ({ id: one.model, label: oneLine(one.name), detail: oneLine(one.provider) })),
      { id: "", label: "All models and providers…", icon: "settings" },
    ],
    chosen: model ?? "",
    choose: (id) => (id ? configure(panel, { model: id }) : go(panel, "models")),
    opened: () => loadModels(panel),
  });
}

const SHORT = 12;

/** Gives the models of the menu: the chosen one is among them, and rules that are no language model come last. */
function shortList(models: readonly ModelEntry[], chosen: string | null): readonly ModelEntry[] {
  const usable = models
    .filter((one) => one.auth === "ok")
    .sort((one, other) => Number(one.provider === "embedded") - Number(other.provider === "embedded"));
  const first = usable.slice(0, SHORT);
  const now = usable.find((one) => one.model === chosen);
  return now === undefined || first.includes(now) ? first : [now, ...first.slice(0, SHORT - 1)];
}

interface Picker {
  name: string;
  title: string;
  /** The current choice in words: a narrow panel cuts it off or shows an icon only. */
  now: string;
  shown: View;
  choices: readonly Choice[];
  chosen: string;
  choose(id: string): void;
  opened?(): void;
}

function picker(panel: Panel, { name, title, now, shown, choices, chosen, choose, opened }: Picker): View {
  const open = panel.state.menu === name;
  const toggle = () => {
    if (!open) opened?.();
    panel.dispatch({ type: "menu", name: open ? undefined : name });
  };
  return html`<span class="picker">
    <button type="button" class="picker-button" title="${title}: ${now}" aria-haspopup="menu" aria-expanded=${String(open)} @click=${toggle}>
      ${shown} ${icon("chevron-down", "small")}
    </button>
    ${
      open
        ? html`<div class="menu" role="menu" aria-label=${title} @keydown=${(event: KeyboardEvent) => menuKey(panel, event)}>
          ${choices.map((choice) => menuItem(choice, { chosen: choice.id === chosen && chosen !== "", choose: () => choose(choice.id) }))}
        </div>`
        : nothing
    }
  </span>`;
}

export function menuItem(choice: Choice, { chosen, choose }: { chosen: boolean; choose(): void }): View {
  return html`<button type="button" class="menu-item" role="menuitemradio" aria-checked=${String(chosen)} @click=${choose}>
    ${icon(chosen ? "check" : (choice.icon ?? "blank"))}
    <span class="menu-label">${choice.label}</span>
    ${choice.detail ? html`<span class="menu-detail">${choice.detail}</span>` : nothing}
  </button>`;
}

/** Arrow keys walk through a menu, Escape leaves it. */
export function menuKey(panel: Panel, event: KeyboardEvent): void {
  const menu = event.currentTarget as HTMLElement;
  const items = [...menu.querySelectorAll<HTMLElement>(".menu-item")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  if (event.key === "ArrowDown") items[(at + 1) % items.length]?.focus();
  else if (event.key === "ArrowUp") items[(at - 1 + items.length) % items.length]?.focus();
  else if (event.key === "Escape") {
    panel.dispatch({ type: "menu", name: undefined });
    menu.parentElement?.querySelector<HTMLElement>(".picker-button, .icon-button")?.focus();
  } else return;
  event.preventDefault();
  event.stopPropagation();
}
