// A place of the page that reads its own data while it is shown.

import { html, nothing, render, type TemplateResult } from "lit";
import { ROLES, type Role } from "../../shared/messages.js";
import { icon } from "../../webview/view/parts.js";

export type View = TemplateResult | typeof nothing;

export abstract class PlaceElement extends HTMLElement {
  #role: Role = "observer";
  #session: string | undefined;
  #problem = "";
  #isBusy = false;

  /** The role of the page; `role` is a property that each element has. */
  set rights(role: Role) {
    this.#role = role;
    this.show();
  }

  /** The session in front. */
  set session(session: string | undefined) {
    if (session === this.#session) return;
    this.#session = session;
    if (this.isConnected) this.begin();
  }

  get session(): string | undefined {
    return this.#session;
  }

  connectedCallback(): void {
    this.begin();
  }

  /** Reads anew what is shown. */
  protected abstract begin(): void;

  protected abstract view(): View;

  protected get isBusy(): boolean {
    return this.#isBusy;
  }

  protected may(least: Role): boolean {
    return ROLES.indexOf(this.#role) >= ROLES.indexOf(least);
  }

  /** Runs one thing at a time, and shows why it failed. */
  protected async attempt(act: () => Promise<void>): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#problem = "";
    this.show();
    try {
      await act();
    } catch (thrown) {
      this.#problem = thrown instanceof Error ? thrown.message : String(thrown);
    } finally {
      this.#isBusy = false;
      this.show();
    }
  }

  protected show(): void {
    if (!this.isConnected) return;
    const problem = this.#problem
      ? html`<div class="banner bad" role="alert">${icon("error")} <span class="grow">${this.#problem}</span></div>`
      : nothing;
    render(html`${problem}${this.view()}`, this);
  }
}
