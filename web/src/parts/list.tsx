import { Button } from "@mantine/core";
import { useInfiniteQuery, type QueryKey } from "@tanstack/react-query";
import type { ReactElement } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Answer, CallOptions } from "../../../src/client/types.ts";

interface PageOf {
  readonly nextCursor: string | null;
}

/** A list of the service's, page after page. `call` asks for one, from a cursor on. */
export function usePages<P extends PageOf>(
  queryKey: QueryKey,
  call: (cursor: { readonly cursor?: string }, options: CallOptions) => Promise<Answer<P>>,
) {
  return useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam, signal }) =>
      valueOf(await call(pageParam === "" ? {} : { cursor: pageParam }, { signal })),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }: P) => nextCursor,
  });
}

interface MoreProps {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => Promise<unknown>;
}

/** Below a list that goes on. */
export function More({ fetchNextPage, hasNextPage, isFetchingNextPage }: MoreProps): ReactElement | null {
  if (!hasNextPage) return null;
  return (
    <div className="more">
      <Button
        variant="default"
        size="compact-md"
        loading={isFetchingNextPage}
        onClick={() => void fetchNextPage()}
      >
        Show more
      </Button>
    </div>
  );
}
