import { type Query, type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { Output } from "../../src/client/types.ts";
import { type ChangeKind, type ChangeMessage, Changes, type FollowerMessage } from "./changes.ts";
import { isFarRead } from "./far-read.ts";
import { newestFirst, PENDING } from "./pending.ts";
import { ME, type Me, useMe } from "./session.tsx";
import type { Approval } from "./words.ts";

/** Prefixes of the keys of queries that a kind of change makes stale. */
const STALE: Readonly<Record<ChangeKind, readonly (readonly string[])[]>> = {
  approvals: [
    ["approvals", "completed"],
    ["approvals", "one"],
  ],
  transactions: [["transactions"], ["spend"], ["context"]],
  agents: [["agents"], ["budgets"]],
  budgets: [["budgets"]],
  projects: [["projects"], ["budgets"], ["rules"]],
  teams: [["teams"], ["budgets"], ["rules"]],
  members: [["members"], ME],
  invites: [["invites"]],
  organization: [["organization"], ME],
  organizationKeys: [["organizationKeys"]],
  webhooks: [["webhooks"]],
  raiseRequests: [["raises"]],
};

/**
 * Minimum interval between refetches for frequent changes: a person's requests are limited, and an open page must leave
 * some for the person.
 */
const REFETCH_INTERVAL_MS: Readonly<Partial<Record<ChangeKind, number>>> = {
  approvals: 1_000,
  transactions: 10_000,
  agents: 10_000,
};
const DEFAULT_REFETCH_INTERVAL_MS = 2_000;

const isNear = ({ state }: Query): boolean => !isFarRead(state.data);

/** Returns the port of the browser's single stream. A browser without shared workers has one for each page. */
function changesPort(): MessagePort {
  if (typeof SharedWorker !== "undefined") {
    return new SharedWorker(new URL("./changes-worker.ts", import.meta.url), { type: "module" }).port;
  }
  const { port1, port2 } = new MessageChannel();
  new Changes().connect(port2);
  return port1;
}

/** Applies or refetches changes made elsewhere. */
class Live {
  readonly #client: QueryClient;
  readonly #due = new Map<ChangeKind, ReturnType<typeof setTimeout>>();
  readonly #lastMs = new Map<ChangeKind, number>();
  readonly #port = changesPort();
  readonly #userId: string;

  constructor(client: QueryClient, userId: string) {
    this.#client = client;
    this.#userId = userId;
    this.#port.addEventListener("message", ({ data }: MessageEvent<ChangeMessage>) => this.#take(data));
    this.#port.start();
    this.#follow();
  }

  #follow(): void {
    this.#port.postMessage({ type: "follow", userId: this.#userId } satisfies FollowerMessage, []);
  }

  #take(message: ChangeMessage): void {
    if (message.type === "reset") void this.#client.invalidateQueries();
    else if (message.type === "signedOut") void this.#lookAgain();
    else this.#changed(message.kind, message.data);
  }

  /** Follows again if the user is still signed in. */
  async #lookAgain(): Promise<void> {
    await this.#client.invalidateQueries({ queryKey: ME });
    if (this.#client.getQueryData<Me | null>(ME)?.user.id === this.#userId) this.#follow();
  }

  #changed(kind: ChangeKind, data: string): void {
    if (kind === "approvals" && !showApprovals(this.#client, data)) {
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

  #readAgain(kind: ChangeKind): void {
    this.#due.delete(kind);
    this.#lastMs.set(kind, Date.now());
    for (const queryKey of STALE[kind]) {
      void this.#client.invalidateQueries({ queryKey, predicate: isNear });
    }
  }

  close(): void {
    for (const timer of this.#due.values()) clearTimeout(timer);
    this.#port.postMessage({ type: "leave" } satisfies FollowerMessage, []);
  }
}

interface ApprovalsChange {
  readonly approvals: readonly Approval[];
  /** Whether more has changed than the event contains. */
  readonly more: boolean;
}

/** Writes the current approvals into the shown data. Returns whether that is all there is to show. */
function showApprovals(client: QueryClient, data: string): boolean {
  const { approvals, more } = JSON.parse(data) as ApprovalsChange;
  for (const approval of approvals) client.setQueryData(["approvals", "one", approval.id], approval);
  client.setQueryData<Output<"listPendingApprovals">>(PENDING, (page) => {
    if (page === undefined) return page;
    const shown = new Set(approvals.map(({ id }) => id));
    const waiting = approvals.filter(({ resolution }) => resolution === undefined);
    const others = page.approvals.filter(({ id }) => !shown.has(id));
    return { ...page, approvals: newestFirst([...waiting, ...others]) };
  });
  return !more;
}

export function useLive(isFollowing: boolean): void {
  const client = useQueryClient();
  const { id } = useMe().user;
  useEffect(() => {
    if (!isFollowing) return undefined;
    let live: Live | null = new Live(client, id);
    const leave = (): void => {
      live?.close();
      live = null;
    };
    // A page that the browser keeps for back navigation follows again when shown, and has missed the changes in
    // between.
    const back = ({ persisted }: PageTransitionEvent): void => {
      if (!persisted) return;
      live ??= new Live(client, id);
      void client.invalidateQueries();
    };
    addEventListener("pagehide", leave);
    addEventListener("pageshow", back);
    return () => {
      removeEventListener("pagehide", leave);
      removeEventListener("pageshow", back);
      leave();
    };
  }, [client, id, isFollowing]);
}
