// Links to read-only pages of sessions: looked at before they are made, made, listed and revoked.

import { html, nothing } from "lit";
import { oneLine } from "../../webview/safe-text.js";
import { icon, spinner } from "../../webview/view/parts.js";
import { plural, sizeText } from "../../webview/words.js";
import { copy } from "../device.js";
import { ApiRefused, ask } from "./api.js";
import { PlaceElement, type View } from "./place.js";

interface Preview {
  title: string;
  size: number;
  redacted: { kind: string; count: number }[];
  confirm: string;
}

interface Share {
  share: string;
  session: string;
  title: string;
  state: "active" | "expired" | "revoked";
  expiresAt: string;
}

interface Created {
  share: string;
  url: string;
  expiresAt: string;
}

const DAY_S = 86_400;
const TIMES: readonly [number, string][] = [
  [3600, "1 hour"],
  [DAY_S, "1 day"],
  [7 * DAY_S, "7 days"],
  [30 * DAY_S, "30 days"],
];
const CONFLICT = 409;

export class Shares extends PlaceElement {
  #preview: Preview | undefined;
  #created: Created | undefined;
  #isCopied = false;
  #shares: Share[] | undefined;
  #expiresInS = DAY_S;

  protected begin(): void {
    this.#preview = undefined;
    this.#created = undefined;
    void this.attempt(async () => {
      await this.#list();
      if (this.may("operator")) await this.#look();
    });
  }

  protected view(): View {
    return html`${this.may("operator") ? this.#making() : nothing}
      <h3 class="pad">Links</h3>
      ${this.#shares ? nothing : html`<div class="pad">${spinner()}</div>`}
      ${this.#shares?.length === 0 ? html`<div class="empty dim">No links yet.</div>` : nothing}
      ${this.#shares?.length ? html`<div role="list" aria-label="Links">${this.#shares.map((one) => this.#entry(one))}</div>` : nothing}`;
  }

  async #list(): Promise<void> {
    this.#shares = (await ask<{ shares: Share[] }>("/api/shares")).shares;
  }

  async #look(): Promise<void> {
    const { session } = this;
    if (session === undefined) return;
    const preview = await ask<Preview>("/api/shares/preview", { session });
    if (session === this.session) this.#preview = preview;
  }

  #create(): void {
    const { session } = this;
    const confirm = this.#preview?.confirm;
    if (session === undefined || confirm === undefined) return;
    void this.attempt(async () => {
      try {
        this.#created = await ask<Created>("/api/shares", {
          ...{ session, confirm, expiresInS: this.#expiresInS },
        });
      } catch (thrown) {
        if (!(thrown instanceof ApiRefused) || thrown.status !== CONFLICT) throw thrown;
        await this.#look();
        throw new Error(
          "The session has changed since. Look at the page as it is now, then create the link.",
        );
      }
      this.#isCopied = false;
      await this.#list();
    });
  }

  #revoke(share: string): void {
    void this.attempt(async () => {
      await ask(`/api/shares/${share}/revoke`, {});
      if (this.#created?.share === share) this.#created = undefined;
      await this.#list();
    });
  }

  #making(): View {
    const preview = this.#preview;
    if (preview === undefined) return this.isBusy ? html`<div class="pad">${spinner()}</div>` : nothing;
    return html`<section class="share" aria-label="Share this session">
      <h3 class="clip">${oneLine(preview.title)}</h3>
      <p>Whoever has the link and reaches this server reads the conversation as it is now, as one page of ${sizeText(preview.size)}, without scripts.</p>
      <p>${icon("shield")} ${redactedText(preview.redacted)} The page names the folder of the session: only secrets are removed, not what is private.</p>
      ${this.#created ? this.#link(this.#created) : this.#form()}
    </section>`;
  }

  #form(): View {
    const chosen = (event: Event) => {
      this.#expiresInS = Number((event.currentTarget as HTMLSelectElement).value);
    };
    return html`<div class="answers">
      <label>Expires after
        <select @change=${chosen}>
          ${TIMES.map(([seconds, text]) => html`<option value=${seconds} ?selected=${seconds === this.#expiresInS}>${text}</option>`)}
        </select>
      </label>
      <button type="button" class="primary" ?disabled=${this.isBusy} @click=${() => this.#create()}>Create link</button>
    </div>`;
  }

  #link({ url, expiresAt }: Created): View {
    const copied = async () => {
      await copy(url);
      this.#isCopied = true;
      this.show();
    };
    return html`<div class="answers">
        <input type="text" readonly aria-label="Link" .value=${url} @focus=${(event: Event) => (event.currentTarget as HTMLInputElement).select()} />
        <button type="button" class="primary" @click=${() => this.attempt(copied)}>${this.#isCopied ? "Copied" : "Copy"}</button>
        <a class="secondary" href=${url}>Open</a>
      </div>
      <p class="dim" role="status">Copy it now: it is not shown again. It ${whenText("expires", expiresAt)}.</p>`;
  }

  #entry({ share, title, state, expiresAt }: Share): View {
    const isActive = state === "active";
    const text = isActive ? whenText("expires", expiresAt) : state;
    return html`<div class="entry" role="listitem">
      <div class="entry-main">
        <span class="entry-title clip">${oneLine(title)}</span>
        <span class="entry-detail dim">${text}</span>
      </div>
      ${isActive && this.may("operator") ? html`<button type="button" class="secondary" aria-label=${`Revoke the link to ${title}`} ?disabled=${this.isBusy} @click=${() => this.#revoke(share)}>Revoke</button>` : nothing}
    </div>`;
  }
}

function redactedText(redacted: Preview["redacted"]): string {
  const total = redacted.reduce((sum, one) => sum + one.count, 0);
  if (total === 0) return "No secrets were found in it.";
  const kinds = redacted.map(({ kind, count }) => `${count} × ${kind}`).join(", ");
  return `${plural(total, "secret")} ${total === 1 ? "is" : "are"} replaced by marks: ${kinds}.`;
}

function whenText(verb: string, at: string): string {
  return `${verb} ${new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })}`;
}
