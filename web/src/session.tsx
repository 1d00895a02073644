import { QueryCache, QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { createContext, use, useState } from "react";
import { valueOf } from "../../src/client/client.ts";
import type { Output } from "../../src/client/types.ts";
import { api, refusedIn, sentenceOf } from "./api.ts";

export type Me = Output<"getMe">;

export const ME = ["me"] as const;

/** Key of the reason for a sign-out, which the next sign-in shows. */
const NOTE = ["signed out"] as const;
const ENDED = "Your session has ended. Sign in again.";

/** The signed-in user; null if nobody is. */
export const meQuery = queryOptions({
  queryKey: ME,
  queryFn: async ({ client, signal }): Promise<Me | null> => {
    const answer = await api.getMe({}, { signal });
    if (answer.ok || answer.refused.status !== 401) return valueOf(answer);
    if (client.getQueryData(ME)) client.setQueryData(NOTE, ENDED);
    return null;
  },
});

const LATER_TRIES_MAX = 5;

/** Creates a query client. Stale data is shown while it is refetched. */
export function newQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        // A session that has ended elsewhere has ended here too.
        if (refusedIn(error)?.status === 401) signedOut(client);
      },
    }),
    defaultOptions: {
      queries: {
        // The API client retries by itself. Only a longer wait is left to the query.
        retry: (count, error) => refusedIn(error)?.code === "RATE_LIMITED" && count < LATER_TRIES_MAX,
        retryDelay: (_count, error) => 1_000 * (refusedIn(error)?.retryAfterSeconds ?? 1),
        staleTime: 5_000,
      },
    },
  });
  return client;
}

export const useSignedOutNote = (): string => useQueryClient().getQueryData<string>(NOTE) ?? "";

/** Removes the data of a user who is no longer signed in. */
export function signedOut(client: QueryClient, note = ENDED): void {
  if (client.getQueryData(ME) === null) return;
  // A pending response would show the pages again.
  void client.cancelQueries({ queryKey: ME });
  client.setQueryData(NOTE, note);
  client.setQueryData(ME, null);
  client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== ME[0] && queryKey[0] !== NOTE[0] });
}

/** Stores the user from a sign-in's response, which saves a read. */
export function signedIn(client: QueryClient, session: Output<"signIn">): void {
  const { organization, secondFactorEnrolment, user } = session;
  client.setQueryData(NOTE, "");
  client.setQueryData(ME, { organization, secondFactorEnrolment, user, stepUpExpiresAt: null });
}

const RETRY_INTERVAL_MS = 5_000;

export const useSession = () =>
  useQuery({
    ...meQuery,
    // An unreachable service may soon be reachable again.
    refetchInterval: ({ state }) => (state.status === "error" ? RETRY_INTERVAL_MS : false),
  });

const MeContext = createContext<Me | null>(null);
export const MeProvider = MeContext.Provider;

/** Returns the signed-in user, on pages behind the sign-in. */
export function useMe(): Me {
  const me = use(MeContext);
  if (me === null) throw new Error("no user is signed in here");
  return me;
}

const RANK = { auditor: 0, member: 1, admin: 2, owner: 3 } as const;

export const useMay = (least: keyof typeof RANK): boolean => RANK[useMe().user.role] >= RANK[least];

export const useSeesAll = (): boolean => useMe().user.binding.type === "organization";

/** Signs out and removes the user's data. If it fails, shows why and allows a retry. */
export function useSignOut(): { readonly signOut: () => Promise<void>; readonly problem: string } {
  const client = useQueryClient();
  const [problem, setProblem] = useState("");
  const signOut = async (): Promise<void> => {
    setProblem("");
    const answer = await api.signOut();
    if (answer.ok || answer.refused.status === 401) return signedOut(client, "");
    setProblem(`You are still signed in. ${sentenceOf(answer.refused)}`);
  };
  return { signOut, problem };
}
