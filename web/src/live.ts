import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { api } from "./api.ts";
import { ME } from "./session.tsx";

/** Which queries are old once something of a kind has changed, by how their keys begin. */
const STALE: Readonly<Record<string, readonly (readonly string[])[]>> = {
  approvals: [["approvals"]],
  transactions: [["transactions"], ["spend"]],
  agents: [["agents"], ["budgets"]],
  projects: [["projects"], ["budgets"], ["rules"]],
  teams: [["teams"], ["budgets"], ["rules"]],
  members: [["members"], ME],
  invites: [["invites"]],
  organization: [["organization"], ME],
  organizationKeys: [["organizationKeys"]],
  webhooks: [["webhooks"]],
};

const FIRST_PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;

/** One stream of changes for the whole page: what changes elsewhere is read again here. */
class Live {
  readonly #client: QueryClient;
  #source: EventSource | null = null;
  #lastEventId = "";
  #pauseMs = FIRST_PAUSE_MS;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended = false;

  constructor(client: QueryClient) {
    this.#client = client;
    this.#open();
  }

  #open(): void {
    const search = this.#lastEventId === "" ? "" : `?lastEventId=${encodeURIComponent(this.#lastEventId)}`;
    const source = new EventSource(`/v1/stream${search}`);
    this.#source = source;
    for (const [kind, keys] of Object.entries(STALE)) {
      source.addEventListener(kind, ({ lastEventId }) => {
        if (lastEventId !== "") this.#lastEventId = lastEventId;
        for (const queryKey of keys) void this.#client.invalidateQueries({ queryKey });
      });
    }
    source.addEventListener("ready", () => {
      this.#pauseMs = FIRST_PAUSE_MS;
    });
    source.addEventListener("reset", () => void this.#client.invalidateQueries());
    source.addEventListener("end", () => this.#again(0));
    // A browser comes again by itself where a line breaks, and not where it was refused.
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) this.#again(this.#pauseMs);
    });
  }

  /** Opens another one, in a session that is refreshed where it has to be. */
  #again(pauseMs: number): void {
    this.#source?.close();
    if (this.#ended) return;
    clearTimeout(this.#timer);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MS_MAX);
    this.#timer = setTimeout(() => void this.#renew(), pauseMs);
  }

  async #renew(): Promise<void> {
    const me = await api.getMe();
    if (this.#ended) return;
    if (me.ok) this.#open();
    else if (me.refused.status === 401) await this.#client.invalidateQueries({ queryKey: ME });
    else this.#again(this.#pauseMs);
  }

  close(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#source?.close();
  }
}

/** What happens elsewhere comes to the pages by itself. */
export function useLive(): void {
  const client = useQueryClient();
  useEffect(() => {
    const live = new Live(client);
    return () => live.close();
  }, [client]);
}
