// Starts the panel: takes messages into the state, shows the state, and acts on what follows from an event.

import { render } from "lit";
import "./style/panel.css";
import type { Place, ToPanel } from "../shared/messages.js";
import type { AgentEvent, JsonValue } from "../shared/wire.js";
import { Frames } from "./frames.js";
import { Host } from "./host.js";
import { followLinks } from "./links.js";
import type { Panel } from "./panel-context.js";
import { type Action, reduce } from "./reduce.js";
import { type PanelState, START } from "./state.js";
import { may } from "./surface.js";
import { loadReports } from "./task-verbs.js";
import { followedTask, isUnended } from "./tasks.js";
import {
  loadCheckpoints,
  loadCosts,
  loadModels,
  loadRules,
  loadSessions,
  loadTree,
  refreshChanges,
  renderCustom,
  reread,
} from "./verbs.js";
import { app } from "./view/app.js";
import { fitComposer, focusComposer } from "./view/composer-keys.js";
import { FIND_FIELD } from "./view/find-bar.js";
import { titleOf } from "./view/header.js";
import { Timeline } from "./view/timeline.js";

const TICK_MS = 1000;
const DRAFT_KEPT = 20_000;

class LivePanel implements Panel {
  state: PanelState = START;
  readonly isTask = false;
  readonly host = new Host();
  readonly #root: HTMLElement;
  readonly #frames = new Frames(() => this.#show());
  readonly #timeline = new Timeline(() => this.#frames.ask());
  readonly #taskTimeline = new Timeline(() => this.#frames.ask());
  /** What the extension was asked to follow last. */
  #followed: string | undefined;
  #draft = "";
  #focusAsked = 0;
  #title = "";
  #withoutContext = false;
  #fitted = "";
  #shownPlace: Place = "transcript";
  #shownMenu: string | undefined;
  readonly #rendered = new Set<string>();

  constructor(root: HTMLElement) {
    this.#root = root;
  }

  get readOnly(): boolean {
    return !may(this, "operator");
  }

  start(): void {
    const { draft, withoutContext } = this.host.kept();
    if (withoutContext) this.dispatch({ type: "withoutContext", on: true });
    if (draft) this.dispatch({ type: "composer", action: { type: "typed", text: draft } });
    this.host.listen((message) => this.#take(message));
    followLinks(this);
    setInterval(() => this.#tick(), TICK_MS);
    document.addEventListener("click", (event) => this.#leaveMenu(event));
    document.addEventListener("keydown", (event) => this.#pressed(event));
    this.#frames.ask();
    this.host.post({ type: "ready" });
  }

  dispatch(action: Action): void {
    const before = this.state;
    this.state = reduce(before, action);
    if (this.state === before) return;
    this.#keepDraft();
    if (action.type === "went" || action.type === "show") this.#arrive();
    if (action.type === "show" && action.find) requestAnimationFrame(() => requestAnimationFrame(focusFind));
    this.#follow();
    this.#frames.ask();
  }

  /** Asks for the session of the open task, and anew when the task begins or ends. */
  #follow(): void {
    const wanted = followedTask(this.state);
    const name = wanted && `${wanted.session} ${wanted.isRunning}`;
    if (name === this.#followed) return;
    this.#followed = name;
    this.host.post({ type: "followTask", ...wanted });
  }

  #take(message: Exclude<ToPanel, { type: "answer" }>): void {
    const before = this.state.session?.session;
    this.dispatch(message);
    if (message.type === "events") this.#after(message.events);
    if (message.type === "events" || message.type === "snapshot") this.#renderCustom();
    if (message.type !== "snapshot") return;
    refreshChanges(this);
    loadReports(this);
    if (before !== message.session || !this.state.lists.models) loadModels(this);
    if (message.snapshot.checkpoints.count > 0) loadCheckpoints(this);
  }

  /** Asks again for what these events made old. */
  #after(events: readonly AgentEvent[]): void {
    const types = new Set(events.map((event) => event.type));
    if (CHANGING.some((type) => types.has(type))) refreshChanges(this);
    for (const event of events) if (event.type === "ui.editorText") this.#suggest(event.view);
    if (types.has("leaf.moved") && !this.state.session?.run) reread(this);
    if (types.has("checkpoint.created")) loadCheckpoints(this);
  }

  /** What extensions said may have a view of its own; each is asked for once. */
  #renderCustom(): void {
    for (const row of this.state.session?.rows ?? []) {
      if (row.kind !== "said" || row.role !== "custom" || !row.entry || this.#rendered.has(row.entry))
        continue;
      this.#rendered.add(row.entry);
      renderCustom(this, row.key, row.entry);
    }
  }

  /** Words that an extension puts into the composer; what the user wrote there stays. */
  #suggest(view: { [key: string]: JsonValue }): void {
    const text = view["text"];
    if (typeof text !== "string") return;
    const replace = view["mode"] === "replace" && !this.state.composer.text.trim();
    this.dispatch({ type: "compose", text, replace, focus: false });
  }

  /** A place that was gone to gets its list. */
  #arrive(): void {
    const load = LOADS[this.state.place];
    load?.(this);
  }

  #tick(): void {
    const { session, place } = this.state;
    const counting =
      session?.run !== undefined ||
      session?.rows.at(-1)?.kind === "retry" ||
      (session?.pending.length ?? 0) > 0 ||
      session?.tasks.some(isUnended) ||
      place !== "transcript";
    if (counting) this.dispatch({ type: "ticked", nowMs: Date.now() });
  }

  #pressed(event: KeyboardEvent): void {
    const inComposer = event.target instanceof HTMLTextAreaElement;
    if (event.key === "Escape" && this.state.place !== "transcript" && !this.state.menu && !inComposer) {
      this.dispatch({ type: "went", place: "transcript" });
      return;
    }
    if (event.key.toLowerCase() !== "f" || event.shiftKey || event.altKey) return;
    if (!(event.ctrlKey || event.metaKey) || !this.state.session) return;
    event.preventDefault();
    this.dispatch({ type: "find", find: this.state.find ?? { query: "", at: 0 } });
    requestAnimationFrame(() => requestAnimationFrame(focusFind));
  }

  #leaveMenu(event: MouseEvent): void {
    const menu = this.state.menu;
    if (!menu || menu.includes(":")) return;
    if (event.target instanceof Element && event.target.closest(".picker")) return;
    this.dispatch({ type: "menu", name: undefined });
  }

  /** Stores what the user has typed at once: the page may be closed before it is shown again. */
  #keepDraft(): void {
    const { composer, withoutContext } = this.state;
    if (composer.text === this.#draft && withoutContext === this.#withoutContext) return;
    this.#draft = composer.text;
    this.#withoutContext = withoutContext;
    this.host.keep({ draft: composer.text.slice(0, DRAFT_KEPT), withoutContext });
  }

  #show(): void {
    render(app(this, { timeline: this.#timeline, taskTimeline: this.#taskTimeline }), this.#root);
    (this.state.place === "task" ? this.#taskTimeline : this.#timeline).shown();
    const title = this.state.session ? titleOf(this.state.session) : "";
    if (title !== this.#title) {
      this.#title = title;
      this.host.post({ type: "titled", title });
    }
    const { text, focusAsked } = this.state.composer;
    if (text !== this.#fitted) {
      this.#fitted = text;
      fitComposer();
    }
    if (focusAsked !== this.#focusAsked) {
      this.#focusAsked = focusAsked;
      focusComposer();
    }
    this.#moveFocus();
    document.querySelector(".offer.chosen")?.scrollIntoView({ block: "nearest" });
  }

  /** The focus goes along to what was opened, so that no pointer is needed. */
  #moveFocus(): void {
    const { place, menu } = this.state;
    if (place !== this.#shownPlace) {
      this.#shownPlace = place;
      if (place === "transcript") focusComposer();
      else
        document
          .querySelector<HTMLElement>(".place input, .place .place-list button, .place button")
          ?.focus();
    }
    if (menu !== this.#shownMenu) {
      this.#shownMenu = menu;
      const begins = MENU_BEGINS.map((one) => document.querySelector<HTMLElement>(one));
      begins.find((one) => one !== null)?.focus();
    }
  }
}

/** The first of these that is there gets the focus: a menu opens at the chosen row. */
const MENU_BEGINS = [".menu [aria-checked=true]", ".menu .menu-item", ".confirm input", ".confirm button"];

function focusFind(): void {
  const field = document.getElementById(FIND_FIELD);
  if (field instanceof HTMLInputElement) field.select();
}

const CHANGING = [
  "changes.updated",
  "edit.undone",
  "edit.applied",
  "edit.rejected",
  "edit.saved",
  "run.ended",
] as const;

const LOADS: Readonly<Record<string, (panel: Panel) => void>> = {
  sessions: (panel) => loadSessions(panel, panel.state.lists.sessionQuery),
  tree: loadTree,
  checkpoints: loadCheckpoints,
  models: loadModels,
  auth: loadModels,
  changes: refreshChanges,
  costs: loadCosts,
  rules: loadRules,
};

const root = document.getElementById("app");
if (root) new LivePanel(root).start();
