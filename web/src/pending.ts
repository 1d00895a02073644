import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { valueOf } from "../../src/client/client.ts";
import { api } from "./api.ts";
import { noteServiceTime } from "./clock.ts";
import { asWritten, money } from "./format.ts";
import type { Approval } from "./words.ts";

export const PENDING = ["approvals", "pending"] as const;

const PAGE = 200;

/** What waits for a person, newest first: the first page of it. */
export const usePending = () =>
  useQuery({
    queryKey: PENDING,
    queryFn: async ({ signal }) => {
      const answer = await api.listPendingApprovals({ query: { limit: PAGE } }, { signal });
      if (answer.ok) noteServiceTime(answer.now);
      return valueOf(answer);
    },
  });

/** Behind the number of those that were read: whether there are more. */
export const plusOf = (page: { readonly nextCursor: string | null } | undefined): "+" | "" =>
  (page?.nextCursor ?? null) === null ? "" : "+";

/** Number of approvals that wait, with a plus if there are more than the first page; empty for none. */
export function usePendingCount(): string {
  const { data } = usePending();
  const count = data?.approvals.length ?? 0;
  return count === 0 ? "" : `${count}${plusOf(data)}`;
}

/** Notifies of what comes while the page is hidden, where the person has allowed it. */
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

function notify({ agentName, amountCents, currency, id, recipient }: Approval): void {
  const notification = new Notification(`${asWritten(agentName)} asks for ${money(amountCents, currency)}`, {
    body: `To ${asWritten(recipient)}`,
    tag: id,
    icon: document.querySelector<HTMLLinkElement>("link[rel=icon]")?.href ?? "",
  });
  notification.addEventListener("click", () => {
    window.focus();
    location.assign(`/approvals/${id}`);
  });
}
