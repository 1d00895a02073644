import { api } from "./api.ts";

export const CHANGE_KINDS = [
  "approvals",
  "transactions",
  "agents",
  "budgets",
  "projects",
  "teams",
  "members",
  "invites",
  "organization",
  "organizationKeys",
  "webhooks",
  "raiseRequests",
] as const;

export type ChangeKind = (typeof CHANGE_KINDS)[number];

export type ChangeMessage =
  | { readonly type: "change"; readonly kind: ChangeKind; readonly data: string }
  /** Changes were missed. */
  | { readonly type: "reset" }
  /** The user whom the page shows is no longer signed in. */
  | { readonly type: "signedOut" };

const MISSED: ChangeMessage = { type: "reset" };

export type FollowerMessage =
  { readonly type: "follow"; readonly userId: string } | { readonly type: "leave" };

const FIRST_PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;

/** One stream of changes for all pages that follow it, open while there are any. */
export class Changes {
  readonly #followers = new Map<MessagePort, string>();
  #userId = "";
  #source: EventSource | null = null;
  #lastEventId = "";
  #pauseMs = FIRST_PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;

  connect(port: MessagePort): void {
    port.addEventListener("message", ({ data }: MessageEvent<FollowerMessage>) => {
      if (data.type === "follow") this.#follow(port, data.userId);
      else this.#leave(port);
    });
    port.start();
  }

  #follow(port: MessagePort, userId: string): void {
    this.#followers.set(port, userId);
    if (this.#userId !== userId) {
      this.#close();
      this.#userId = userId;
      this.#lastEventId = "";
      // The browser has one session, so pages of another user show ended sessions.
      for (const [other, of] of this.#followers) if (of !== userId) this.#signedOut(other);
    }
    if (this.#source === null && this.#timer === undefined) this.#open();
    // The page may have read its data before it followed.
    else if (this.#source?.readyState === EventSource.OPEN) port.postMessage(MISSED, []);
  }

  #leave(port: MessagePort): void {
    this.#followers.delete(port);
    port.close();
    if (this.#followers.size === 0) this.#close();
  }

  #open(): void {
    const search = this.#lastEventId === "" ? "" : `?lastEventId=${encodeURIComponent(this.#lastEventId)}`;
    const source = new EventSource(`/v1/stream${search}`);
    this.#source = source;
    for (const kind of CHANGE_KINDS) {
      source.addEventListener(kind, ({ data, lastEventId }: MessageEvent) => {
        if (lastEventId !== "") this.#lastEventId = lastEventId;
        this.#tell({ type: "change", kind, data: String(data) });
      });
    }
    source.addEventListener("ready", ({ data, lastEventId }: MessageEvent) => {
      this.#pauseMs = FIRST_PAUSE_MS;
      // A new stream resumes here, even if nothing changes until then.
      this.#lastEventId = lastEventId;
      const { resumed } = JSON.parse(String(data)) as { readonly resumed: boolean };
      // Pages have read before the stream began, and the stream omits what changed in between.
      if (!resumed) this.#tell(MISSED);
    });
    source.addEventListener("reset", () => this.#tell(MISSED));
    source.addEventListener("end", () => this.#again(0));
    // A browser reconnects by itself after a broken connection, but not after a refusal.
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.#again(this.#pauseMs);
    });
  }

  /** Opens a new stream after a pause, refreshing the session if necessary. */
  #again(pauseMs: number): void {
    this.#close();
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
    const timer = setTimeout(() => void this.#renew(timer), pauseMs);
    this.#timer = timer;
  }

  async #renew(timer: ReturnType<typeof setTimeout>): Promise<void> {
    const me = await api.getMe();
    // Meanwhile the last page left, or another user came.
    if (this.#timer !== timer) return;
    this.#timer = undefined;
    if (me.ok && me.value.user.id === this.#userId) this.#open();
    else if (me.ok || me.refused.status === 401) this.#end();
    else this.#again(this.#pauseMs);
  }

  #end(): void {
    this.#userId = "";
    for (const port of this.#followers.keys()) this.#signedOut(port);
  }

  #signedOut(port: MessagePort): void {
    this.#followers.delete(port);
    port.postMessage({ type: "signedOut" } satisfies ChangeMessage, []);
  }

  #tell(message: ChangeMessage): void {
    for (const port of this.#followers.keys()) port.postMessage(message, []);
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#source?.close();
    this.#source = null;
  }
}
