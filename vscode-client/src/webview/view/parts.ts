// Small things that many views are made of.

import type { ElementPart } from "lit";
import { html, nothing, type TemplateResult } from "lit";
import { Directive, directive } from "lit/directive.js";

export type View = TemplateResult | typeof nothing;

/** An icon of VS Code. It says nothing to screen readers: what it stands beside does. */
export function icon(name: string, more = ""): TemplateResult {
  return html`<span class="codicon codicon-${name} ${more}" aria-hidden="true"></span>`;
}

export interface IconButton {
  icon: string;
  title: string;
  act(event: Event): void;
  disabled?: boolean;
  pressed?: boolean;
  /** Whether the menu that it opens is open; left out: it opens none. */
  expanded?: boolean;
  more?: string;
}

/** A button that is only an icon; its title is its name. */
export function iconButton({
  icon: name,
  title,
  act,
  disabled,
  pressed,
  expanded,
  more,
}: IconButton): TemplateResult {
  return html`<button
    type="button"
    class="icon-button ${more ?? ""}"
    title=${title}
    aria-label=${title}
    aria-pressed=${pressed === undefined ? nothing : String(pressed)}
    aria-haspopup=${expanded === undefined ? nothing : "menu"}
    aria-expanded=${expanded === undefined ? nothing : String(expanded)}
    ?disabled=${disabled ?? false}
    @click=${act}
  >
    ${icon(name)}
  </button>`;
}

export function spinner(): TemplateResult {
  return icon("loading", "codicon-modifier-spin");
}

class Styled extends Directive {
  render(_styles: Readonly<Record<string, string>>): unknown {
    return undefined;
  }

  override update(part: ElementPart, [styles]: [Readonly<Record<string, string>>]): unknown {
    const element = part.element as HTMLElement;
    for (const [name, value] of Object.entries(styles)) element.style.setProperty(name, value);
    return undefined;
  }
}

/** Sets style properties by script: the page's rules forbid the `style` attribute. */
export const styled = directive(Styled);

/** Shows lines added and taken away. */
export function counts(additions: number, deletions: number): TemplateResult {
  return html`<span class="counts"
    ><span class="plus">+${additions}</span> <span class="minus">−${deletions}</span></span
  >`;
}
