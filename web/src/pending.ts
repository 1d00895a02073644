import { type QueryClient, useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { valueOf } from "../../src/client/client.ts";
import type { Answer, Input, Output } from "../../src/client/types.ts";
import { api } from "./api.ts";
import { noteServiceTime } from "./clock.ts";
import { exactMoney, asWritten } from "./format.ts";
import { type Approval, payeeOf } from "./words.ts";

export const PENDING = ["approvals", "pending"] as const;

const PAGE = 200;
/** Maximum approvals that a page holds: more than two full projects. */
const READ_MAX = 5_000;

/** Waiting approvals, newest first. */
export const usePending = () =>
  useQuery({ queryKey: PENDING, queryFn: ({ client, signal }) => readPending(client, signal) });

type Pending = Pick<Output<"listPendingApprovals">, "approvals" | "nextCursor">;

/** Reads all pages. Approvals that the stream has delivered in the meantime are newer than the pages. */
async function readPending(client: QueryClient, signal: AbortSignal): Promise<Pending> {
  const current = (): readonly Approval[] => client.getQueryData<Pending>(PENDING)?.approvals ?? [];
  const before = new Set(current().map(({ id }) => id));
  const read: Approval[] = [];
  let cursor: string | null = null;
  do {
    const query: Input<"listPendingApprovals">["query"] = {
      limit: PAGE,
      ...(cursor === null ? {} : { cursor }),
    };
    const answer: Answer<Pending> = await api.listPendingApprovals({ query }, { signal });
    if (answer.ok) noteServiceTime(answer.now);
    const page = valueOf(answer);
    read.push(...page.approvals);
    cursor = page.nextCursor;
  } while (cursor !== null && read.length < READ_MAX);
  const ids = new Set(read.map(({ id }) => id));
  const arrived = current().filter(({ id }) => !before.has(id) && !ids.has(id));
  const isOpen = ({ id }: Approval): boolean =>
    client.getQueryData<Approval>(["approvals", "one", id])?.resolution === undefined;
  return { approvals: newestFirst([...arrived, ...read.filter(isOpen)]), nextCursor: cursor };
}

/** Sorts by id, since ids sort by time. */
export const newestFirst = (approvals: readonly Approval[]): Approval[] =>
  approvals.toSorted((a, b) => (a.id < b.id ? 1 : -1));

/** Returns the plus that follows a count if there are more than were read. */
export const plusOf = (page: { readonly nextCursor: string | null } | undefined): "+" | "" =>
  (page?.nextCursor ?? null) === null ? "" : "+";

/** Number of waiting approvals, with a plus if not all were read; empty for none. */
export function usePendingCount(): string {
  const { data } = usePending();
  const count = data?.approvals.length ?? 0;
  return count === 0 ? "" : `${count}${plusOf(data)}`;
}

/** Notifies the person of approvals that arrive while the page is hidden, if they have allowed it. */
export function useNotifications(): void {
  const { data } = usePending();
  const known = useRef<ReadonlySet<string> | null>(null);
  useEffect(() => {
    if (data === undefined) return;
    const before = known.current;
    known.current = new Set(data.approvals.map(({ id }) => id));
    if (before === null || !document.hidden || !mayNotify()) return;
    for (const approval of data.approvals) if (!before.has(approval.id)) notify(approval);
  }, [data]);
}

export const canNotify = (): boolean => "Notification" in window;
const mayNotify = (): boolean => canNotify() && Notification.permission === "granted";

function notify(approval: Approval): void {
  const { agentName, id } = approval;
  const notification = new Notification(`${asWritten(agentName)} asks for ${exactMoney(approval)}`, {
    body: `To ${asWritten(payeeOf(approval))}`,
    tag: id,
    icon: document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href ?? "",
  });
  notification.addEventListener("click", () => {
    window.focus();
    location.assign(`/approvals/${id}`);
  });
}
