// The transcript as a virtual list: only what is on the screen exists, the end is followed while it is in sight.

import {
  defaultRangeExtractor,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type Range,
  type VirtualItem,
  Virtualizer,
} from "@tanstack/virtual-core";
import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { type Cell, CellList, guessedHeight } from "../cells.js";
import { Chunker } from "../chunks.js";
import { markMatches, matchesOf } from "../finding.js";
import { grouped } from "../grouping.js";
import type { Panel } from "../panel-context.js";
import { loadOlder } from "../verbs.js";
import { findBar } from "./find-bar.js";
import { answered, edit, notice, retrying, runEnd, shell, summary } from "./marks.js";
import { icon, spinner, styled, type View } from "./parts.js";
import { fold } from "./row-context.js";
import { saidChunk, thought, userSaid } from "./said.js";
import { group, tool } from "./tool.js";
import { welcome } from "./welcome.js";

/** Above this distance from the end, in pixels, the user reads something else and is left alone. */
const FOLLOWED_PX = 60;
const OLDER_FROM_PX = 600;
/** As near to the end as scrolling gets with fractions of pixels. */
const RESUMED_PX = 4;

export class Timeline {
  readonly #changed: () => void;
  readonly #chunker = new Chunker();
  #list = new CellList(this.#chunker);
  #cells: readonly Cell[] = [];
  #session = "";
  #query = "";
  /** The match that was scrolled to last, by query and cell. */
  #found = "";
  /** The cell to scroll to when it is in the page. */
  #goTo: number | undefined;
  #focused: string | undefined;
  /** Whether the end is kept in sight: until the user scrolls up, and again when they come back. */
  #follows = true;
  /** How many messages were sent when this was last shown: a new one is looked at, wherever the user was. */
  #sends = 0;
  #virtualizer: Virtualizer<HTMLElement, HTMLElement> | undefined;

  /** Args: changed: Called when it has to be shown again, such as after scrolling. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  view(panel: Panel): View {
    const session = panel.state.session;
    if (session && session.session !== this.#session) this.#begin(session.session);
    if (panel.state.composer.sends !== this.#sends) this.#follows = true;
    this.#sends = panel.state.composer.sends;
    const isOpen = (key: string) => panel.state.folds[key] === true;
    // While something is searched each lookup is a row of its own, which can hold a match.
    const rows = panel.state.find?.query ? session?.rows : session && grouped(session.rows, isOpen);
    this.#cells = this.#list.cells(rows ?? []);
    if (session && this.#cells.length === 0 && session.older === undefined && !session.run)
      return welcome(panel);
    const virtualizer = this.#ready();
    const away = !this.#follows && virtualizer.scrollElement !== null;
    return html`<div class="timeline-box">
      ${this.#findBar(panel)}
      <div
        class="timeline"
        id="timeline"
        role="log"
        aria-live="off"
        aria-label="Conversation"
        aria-busy=${String(session?.run !== undefined)}
        tabindex="0"
        @focusin=${(event: FocusEvent) => this.#focus(event)}
        @focusout=${() => this.#focus(undefined)}
        @scroll=${(event: Event) => this.#scrolled(panel, event)}
        @wheel=${{ handleEvent: (event: WheelEvent) => this.#letGo(event), passive: true }}
        @keydown=${(event: KeyboardEvent) => this.#letGo(event)}
        @pointerdown=${(event: PointerEvent) => this.#letGo(event)}
      >
        <div class="runway" ${styled({ height: `${virtualizer.getTotalSize()}px` })}>
          ${repeat(
            virtualizer.getVirtualItems(),
            (item) => item.key,
            (item) => this.#cell(panel, item),
          )}
        </div>
      </div>
      ${panel.state.busy["older"] ? html`<div class="loading-older">${spinner()} Loading earlier messages…</div>` : nothing}
      ${
        away
          ? html`<button type="button" class="to-end" title="Go to the end" aria-label="Go to the end" @click=${() => this.#toEnd()}>
            ${icon("arrow-down")}
          </button>`
          : nothing
      }
    </div>`;
  }

  /** Measures what was shown. To be called after each time the view is in the page. */
  shown(): void {
    const virtualizer = this.#virtualizer;
    const element = document.getElementById("timeline");
    if (!virtualizer || !element) return;
    virtualizer._willUpdate();
    for (const cell of element.querySelectorAll<HTMLElement>(".cell")) virtualizer.measureElement(cell);
    virtualizer.measureElement(null);
    if (this.#goTo !== undefined) {
      virtualizer.scrollToIndex(this.#goTo, { align: "center" });
      this.#goTo = undefined;
    }
    markMatches(element, this.#query);
    // What grows, here or below the transcript, such as a question, must not push the end out of sight.
    const missing = element.scrollHeight - element.clientHeight - element.scrollTop;
    if (this.#follows && missing > 1) element.scrollTop = element.scrollHeight;
  }

  /** Shows the search and scrolls to its match when that has changed. */
  #findBar(panel: Panel): View {
    const { find, session } = panel.state;
    this.#query = find?.query ?? "";
    if (!find) {
      this.#found = "";
      return nothing;
    }
    const matches = matchesOf(this.#cells, find.query);
    const at = Math.min(find.at, Math.max(0, matches.length - 1));
    const index = matches[at];
    const key = index === undefined ? "" : `${find.query} ${this.#cells[index]?.key}`;
    if (index !== undefined && key !== this.#found) {
      this.#follows = false;
      this.#goTo = index;
      this.#unfold(panel, this.#cells[index]);
    }
    this.#found = key;
    return findBar(panel, {
      query: find.query,
      at,
      count: matches.length,
      partial: session?.older !== undefined,
    });
  }

  /** Opens a row that hides its words, so that the match in it can be seen. */
  #unfold(panel: Panel, cell: Cell | undefined): void {
    const { kind, key } = cell?.row ?? {};
    const keys =
      kind === "tool" ? [key, `output:${key}`] : kind === "thought" || kind === "summary" ? [key] : [];
    const closed = keys.filter((one) => one !== undefined && panel.state.folds[one] !== true);
    // Not in the middle of being shown.
    for (const one of closed) if (one !== undefined) queueMicrotask(() => fold(panel, one, true));
  }

  #begin(session: string): void {
    this.#session = session;
    this.#chunker.clear();
    this.#list = new CellList(this.#chunker);
    this.#virtualizer = undefined;
    this.#follows = true;
  }

  #ready(): Virtualizer<HTMLElement, HTMLElement> {
    const options = {
      count: this.#cells.length,
      getScrollElement: () => document.getElementById("timeline"),
      estimateSize: (index: number) => this.#guess(index),
      getItemKey: (index: number) => this.#cells[index]?.key ?? index,
      rangeExtractor: (range: Range) => this.#withFocused(range),
      overscan: 6,
      anchorTo: "end" as const,
      followOnAppend: true,
      scrollEndThreshold: FOLLOWED_PX,
      initialOffset: Number.MAX_SAFE_INTEGER,
      paddingEnd: 12,
      paddingStart: 8,
      scrollToFn: elementScroll,
      observeElementRect,
      observeElementOffset,
      onChange: this.#changed,
    };
    if (this.#virtualizer) this.#virtualizer.setOptions(options);
    else this.#virtualizer = new Virtualizer<HTMLElement, HTMLElement>(options);
    return this.#virtualizer;
  }

  #guess(index: number): number {
    const cell = this.#cells[index];
    return cell ? guessedHeight(cell) : 40;
  }

  #cell(panel: Panel, item: VirtualItem): View {
    const cell = this.#cells[item.index];
    if (!cell) return nothing;
    return html`<div
      class="cell kind-${cell.row.kind}"
      data-index=${item.index}
      data-key=${cell.key}
      ${styled({ transform: `translateY(${item.start}px)` })}
    >
      ${cellView(panel, cell)}
    </div>`;
  }

  /** What has the focus stays in the page, wherever is looked at. */
  #withFocused(range: Range): number[] {
    const indexes = defaultRangeExtractor(range);
    const focused =
      this.#focused === undefined ? -1 : this.#cells.findIndex((cell) => cell.key === this.#focused);
    if (focused < 0 || indexes.includes(focused)) return indexes;
    return [...indexes, focused].sort((one, other) => one - other);
  }

  #focus(event: FocusEvent | undefined): void {
    const cell = event?.target instanceof Element ? event.target.closest(".cell") : undefined;
    this.#focused = cell?.getAttribute("data-key") ?? undefined;
  }

  #scrolled(panel: Panel, event: Event): void {
    const { scrollHeight, clientHeight, scrollTop } = event.currentTarget as HTMLElement;
    if (scrollHeight - clientHeight - scrollTop <= RESUMED_PX) this.#follows = true;
    if (scrollTop < OLDER_FROM_PX) loadOlder(panel);
  }

  /** Only the user's own scrolling up lets go of the end: what is measured anew scrolls as well. */
  #letGo(event: WheelEvent | KeyboardEvent | PointerEvent): void {
    if (event instanceof WheelEvent && event.deltaY >= 0) return;
    if (event instanceof KeyboardEvent && !goesUp(event)) return;
    if (event.type === "pointerdown" && event.target !== event.currentTarget) return;
    this.#follows = false;
  }

  #toEnd(): void {
    this.#follows = true;
    this.#virtualizer?.scrollToEnd();
    this.#changed();
  }
}

/** With Shift+Tab the browser scrolls to what gets the focus. */
function goesUp({ key, shiftKey }: KeyboardEvent): boolean {
  return ["PageUp", "ArrowUp", "Home"].includes(key) || (key === "Tab" && shiftKey);
}

function cellView(panel: Panel, { row, key, chunk }: Cell): View {
  if (chunk) return saidChunk(panel, key, chunk);
  switch (row.kind) {
    case "said":
      return userSaid(panel, row);
    case "thought":
      return thought(panel, row);
    case "tool":
      return tool(panel, row);
    case "edit":
      return edit(panel, row);
    case "summary":
      return summary(panel, row);
    case "retry":
      return retrying(panel, row);
    case "notice":
      return notice(panel, row);
    case "runEnd":
      return runEnd(panel, row);
    case "shell":
      return shell(panel, row);
    case "answered":
      return answered(panel, row);
    case "group":
      return group(panel, row);
  }
}
