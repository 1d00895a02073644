import { QueryCache, QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use } from "react";
import { valueOf } from "../../src/client/client.ts";
import type { Output } from "../../src/client/types.ts";
import { api, refusedIn } from "./api.ts";

export type Me = Output<"getMe">;

export const ME = ["me"] as const;

/** Who is signed in; null: nobody. */
export const meQuery = queryOptions({
  queryKey: ME,
  queryFn: async ({ signal }): Promise<Me | null> => {
    const answer = await api.getMe({}, { signal });
    if (!answer.ok && answer.refused.status === 401) return null;
    return valueOf(answer);
  },
});

/** What is asked for goes stale at once: whatever shows it again asks again, and shows what it had meanwhile. */
export function newQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        // A session that has ended elsewhere has ended here.
        if (refusedIn(error)?.status === 401) signedOut(client);
      },
    }),
    defaultOptions: {
      // The client tries again where that is right.
      queries: { retry: false, staleTime: 2_000 },
    },
  });
  return client;
}

/** Takes away what somebody saw who is not signed in any more. */
export function signedOut(client: QueryClient): void {
  if (client.getQueryData(ME) === null) return;
  client.setQueryData(ME, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== ME[0] });
}

/** After whatever signs somebody in. */
export async function signedIn(client: QueryClient): Promise<void> {
  await client.fetchQuery({ ...meQuery, staleTime: 0 });
}

export const useSession = () => useQuery(meQuery);

const MeContext = createContext<Me | null>(null);
export const MeProvider = MeContext.Provider;

/** Whoever is signed in, on the pages behind the sign-in. */
export function useMe(): Me {
  const me = use(MeContext);
  if (me === null) throw new Error("nobody is signed in here");
  return me;
}

const RANK = { member: 0, admin: 1, owner: 2 } as const;

/** Whether the signed-in person's role is at least that. */
export const useMay = (least: keyof typeof RANK): boolean => RANK[useMe().user.role] >= RANK[least];

/** Signs out, and forgets. */
export function useSignOut(): () => Promise<void> {
  const client = useQueryClient();
  return async () => {
    const answer = await api.signOut();
    if (answer.ok || answer.refused.status === 401) signedOut(client);
  };
}
