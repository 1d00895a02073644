import { useQuery } from "@tanstack/react-query";
import { valueOf } from "../../src/client/client.ts";
import { api } from "./api.ts";

export const PENDING = ["approvals", "pending"] as const;

const PAGE = 200;

/** What waits for a person, newest first: the first page of it. */
export const usePending = () =>
  useQuery({
    queryKey: PENDING,
    queryFn: async ({ signal }) =>
      valueOf(await api.listPendingApprovals({ query: { limit: PAGE } }, { signal })),
  });

/** How many wait, as far as the first page shows. */
export const usePendingCount = (): number => usePending().data?.approvals.length ?? 0;
