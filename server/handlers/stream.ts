import { CHANGE_KINDS } from "../../src/contract/stream.ts";
import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

export function streamHandlers({ streams }: HandlerDependencies): Pick<Handlers, "streamChanges"> {
  return {
    async streamChanges({ query: { kinds, lastEventId = null } }, { principal }) {
      const requested = kinds?.split(",");
      const chosen = requested === undefined ? null : CHANGE_KINDS.filter((kind) => requested.includes(kind));
      const stream = await streams.prepare(principal, { kinds: chosen, lastEventId });
      return stream.ok ? ok({ body: "", events: stream.value }) : stream;
    },
  };
}
