import { Button } from "@mantine/core";
import { type InfiniteData, type QueryKey, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { type ReactElement, useEffect, useRef } from "react";
import { valueOf } from "../../../src/client/client.ts";
import type { Answer, CallOptions } from "../../../src/client/types.ts";
import { isFarRead } from "../far-read.ts";

interface PageOf {
  readonly nextCursor: string | null;
}

const isNear = ({ state }: { readonly state: { readonly data: unknown } }): boolean => !isFarRead(state.data);

/**
 * Reads a list page by page. `call` reads the page at a cursor. Pages are refetched in sequence, so a reader far down a
 * list keeps the pages already read; the list starts again from its first page on a later visit.
 */
export function usePages<P extends PageOf>(
  queryKey: QueryKey,
  call: (cursor: { readonly cursor?: string }, options: CallOptions) => Promise<Answer<P>>,
) {
  const client = useQueryClient();
  const key = JSON.stringify(queryKey);
  useEffect(
    () => () => {
      client.setQueryData<InfiniteData<P>>(queryKey, (read) =>
        read !== undefined && isFarRead(read)
          ? { pages: read.pages.slice(0, 1), pageParams: read.pageParams.slice(0, 1) }
          : read,
      );
    },
    [client, key],
  );
  return useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam, signal }) =>
      valueOf(await call(pageParam === "" ? {} : { cursor: pageParam }, { signal })),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }: P) => nextCursor,
    refetchOnWindowFocus: isNear,
    refetchOnReconnect: isNear,
  });
}

interface MoreProps {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly isFetchNextPageError: boolean;
  readonly fetchNextPage: () => Promise<unknown>;
}

/** Distance from the end at which more is read. */
const AHEAD = "600px";

/** End of a list with more pages: scrolling near it reads more, and a button serves keyboard users. */
export function More(props: MoreProps): ReactElement | null {
  const { fetchNextPage, hasNextPage, isFetchingNextPage, isFetchNextPageError } = props;
  const end = useRef<HTMLDivElement>(null);
  const isWaiting = hasNextPage && !isFetchingNextPage && !isFetchNextPageError;
  useEffect(() => {
    if (end.current === null || !isWaiting) return;
    const seen = new IntersectionObserver(
      ([entry]) => {
        if (entry?.isIntersecting === true) void fetchNextPage();
      },
      { rootMargin: AHEAD },
    );
    seen.observe(end.current);
    return () => seen.disconnect();
  }, [isWaiting, fetchNextPage]);
  if (!hasNextPage) return null;
  return (
    <div ref={end} className="more">
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
