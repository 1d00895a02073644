import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Output } from "../../src/client/types.ts";
import { api } from "./api.ts";
import { isFarRead } from "./far-read.ts";
import { PENDING } from "./pending.ts";
import { ME } from "./session.tsx";
import type { Approval } from "./words.ts";

/** Which queries are old once something of a kind has changed, by how their keys begin. */
const STALE: Readonly<Record<string, readonly (readonly string[])[]>> = {
  approvals: [
    ["approvals", "completed"],
    ["approvals", "one"],
  ],
  transactions: [["transactions"], ["spend"], ["context"]],
  agents: [["agents"], ["budgets"]],
  projects: [["projects"], ["budgets"], ["rules"]],
  teams: [["teams"], ["budgets"], ["rules"]],
  members: [["members"], ME],
  invites: [["invites"]],
  organization: [["organization"], ME],
  organizationKeys: [["organizationKeys"]],
  webhooks: [["webhooks"]],
};

/**
 * What changes all the time is read again no more often than that: a person's requests are counted, and a page that is looked at
 * must leave some of them for what its reader does.
 */
const REFETCH_INTERVAL_MS: Readonly<Record<string, number>> = {
  approvals: 1_000,
  transactions: 10_000,
  agents: 10_000,
};
const DEFAULT_REFETCH_INTERVAL_MS = 2_000;

const FIRST_PAUSE_MS = 1_000;
const PAUSE_MS_MAX = 60_000;

const isNear = ({ state }: Query): boolean => !isFarRead(state.data);

/** One stream of changes for the whole page: what changes elsewhere is shown or read again here. */
class Live {
  readonly #client: QueryClient;
  readonly #due = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #lastMs = new Map<string, number>();
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
    for (const kind of Object.keys(STALE)) {
      source.addEventListener(kind, (event) => this.#take(kind, event));
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

  #take(kind: string, { data, lastEventId }: MessageEvent): void {
    if (lastEventId !== "") this.#lastEventId = lastEventId;
    if (kind === "approvals" && !showApprovals(this.#client, String(data))) {
      void this.#client.invalidateQueries({ queryKey: PENDING });
    }
    if (this.#due.has(kind)) return;
    const since = Date.now() - (this.#lastMs.get(kind) ?? 0);
    const waitMs = Math.max(0, (REFETCH_INTERVAL_MS[kind] ?? DEFAULT_REFETCH_INTERVAL_MS) - since);
    this.#due.set(
      kind,
      setTimeout(() => this.#readAgain(kind), waitMs),
    );
  }

  #readAgain(kind: string): void {
    this.#due.delete(kind);
    this.#lastMs.set(kind, Date.now());
    for (const queryKey of STALE[kind] ?? []) {
      void this.#client.invalidateQueries({ queryKey, predicate: isNear });
    }
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
    for (const timer of this.#due.values()) clearTimeout(timer);
    this.#source?.close();
  }
}

interface ApprovalsChange {
  readonly approvals: readonly Approval[];
  /** More has changed than the events say. */
  readonly more: boolean;
}

/** Puts approvals as they are now into what is shown. Answers whether that is all there is to show. */
function showApprovals(client: QueryClient, data: string): boolean {
  const { approvals, more } = JSON.parse(data) as ApprovalsChange;
  for (const approval of approvals) client.setQueryData(["approvals", "one", approval.id], approval);
  client.setQueryData<Output<"listPendingApprovals">>(PENDING, (page) => {
    if (page === undefined) return page;
    const shown = new Set(approvals.map(({ id }) => id));
    const waiting = approvals.filter(({ resolution }) => resolution === undefined);
    const others = page.approvals.filter(({ id }) => !shown.has(id));
    // Ids sort by time: newest first.
    const all = [...waiting, ...others].toSorted((a, b) => (a.id < b.id ? 1 : -1));
    return { ...page, approvals: all };
  });
  return !more;
}

/** What happens elsewhere comes to the pages by itself. */
export function useLive(): void {
  const client = useQueryClient();
  useEffect(() => {
    const live = new Live(client);
    return () => live.close();
  }, [client]);
}
