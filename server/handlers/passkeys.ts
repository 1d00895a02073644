import { ok } from "../../src/domain/result.ts";
import type { PasskeyDocument } from "../../src/store/identity-documents.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import { sessionReply } from "./session-reply.ts";
import type { Handlers } from "./types.ts";

type PasskeyHandlers = Pick<
  Handlers,
  | "passkeyOptions"
  | "enrollPasskey"
  | "listPasskeys"
  | "updatePasskey"
  | "removePasskey"
  | "passkeySignInOptions"
  | "signInWithPasskey"
  | "stepUpOptions"
>;

export function passkeyHandlers({ auth, lists }: HandlerDependencies): PasskeyHandlers {
  const { passkeys } = auth.collections;
  return {
    async passkeyOptions(_input, { principal }) {
      const options = await auth.passkeyOptions(principal);
      return options.ok ? ok({ body: options.value }) : options;
    },
    async enrollPasskey({ body }, { audit, principal }) {
      const enrolled = await auth.writing(audit).enrollPasskey(principal, body);
      return enrolled.ok ? ok({ body: { passkey: passkeyView(enrolled.value) } }) : enrolled;
    },
    async listPasskeys({ query }, { principal: { userId } }) {
      const page = await lists.page({
        collection: passkeys,
        list: "passkeys",
        filters: { userId },
        equals: { userId },
        where: { kind: "passkey" },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { passkeys: items.map(passkeyView), nextCursor } });
    },
    async updatePasskey({ params, body }, { audit, principal }) {
      const renamed = await auth.writing(audit).renamePasskey(principal, params.id, body.name);
      return renamed.ok ? ok({ body: { passkey: passkeyView(renamed.value) } }) : renamed;
    },
    async removePasskey({ params }, { audit, principal }) {
      const removed = await auth.writing(audit).removePasskey(principal, params.id);
      return removed.ok ? ok({ body: undefined }) : removed;
    },
    async passkeySignInOptions() {
      return ok({ body: await auth.passkeySignInOptions() });
    },
    async signInWithPasskey({ body }, { audit, userAgent }) {
      const signedIn = await auth
        .writing(audit)
        .signInWithPasskey(body.response, audit.noteAffected, userAgent);
      return sessionReply(signedIn);
    },
    async stepUpOptions(_input, { principal }) {
      const options = await auth.stepUpOptions(principal);
      return options.ok ? ok({ body: options.value }) : options;
    },
  };
}

const passkeyView = (passkey: PasskeyDocument) => ({
  id: passkey._id,
  name: passkey.name,
  credentialId: passkey.credentialId,
  transports: passkey.transports,
  backupEligible: passkey.backupEligible,
  backedUp: passkey.backedUp,
  createdAt: passkey.createdAt.toISOString(),
  lastUsedAt: passkey.lastUsedAt?.toISOString() ?? null,
  suspectedCloneAt: passkey.suspectedCloneAt?.toISOString() ?? null,
});
