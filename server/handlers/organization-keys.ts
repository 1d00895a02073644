import type { Result } from "../../src/domain/result.ts";
import { ok } from "../../src/domain/result.ts";
import type { OrganizationKeyDocument } from "../organization-keys/documents.ts";
import type { MintedKey } from "../organization-keys/keys.ts";
import { organizationKeyView } from "../views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type OrganizationKeyHandlers = Pick<
  Handlers,
  "mintOrganizationKey" | "listOrganizationKeys" | "rotateOrganizationKey" | "revokeOrganizationKey"
>;

/** Organization keys. */
export function organizationKeyHandlers(dependencies: HandlerDependencies): OrganizationKeyHandlers {
  const { clock, collections, dailyCreates, lists, organizationKeys } = dependencies;

  /** What each lineage has created in this UTC day. */
  async function views(documents: readonly OrganizationKeyDocument[]) {
    const lineageIds = documents.map(({ lineageId }) => lineageId);
    const counts = await dailyCreates.createdToday(lineageIds, clock());
    return documents.map((document) => organizationKeyView(document, counts.get(document.lineageId) ?? 0));
  }

  async function view(document: OrganizationKeyDocument) {
    const [only] = await views([document]);
    if (only === undefined) throw new Error("a view for each document");
    return only;
  }

  async function shownOnce(minted: Result<MintedKey>) {
    if (!minted.ok) return minted;
    const { document, value } = minted.value;
    return ok({ body: { organizationKey: await view(document), key: value } });
  }

  return {
    async mintOrganizationKey({ body }, { audit, principal }) {
      const minted = await organizationKeys.mint(principal, body);
      if (minted.ok) audit.change(null, keptOf(minted.value.document));
      return shownOnce(minted);
    },
    async rotateOrganizationKey({ params }, { audit, principal }) {
      const rotated = await organizationKeys.rotate(principal, params.id);
      if (rotated.ok) {
        const after = keptOf(rotated.value.document);
        audit.change({ ...after, keyId: params.id }, after);
      }
      return shownOnce(rotated);
    },
    async revokeOrganizationKey({ params }, { audit, principal }) {
      const revoked = await organizationKeys.revoke(principal, params.id);
      if (!revoked.ok) return revoked;
      audit.change(keptOf(revoked.value), null);
      return ok({ body: { organizationKey: await view(revoked.value) } });
    },
    async listOrganizationKeys({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: collections.organizationKeys,
        list: "organization-keys",
        asked: { organizationId },
        having: { organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { organizationKeys: await views(items), nextCursor } });
    },
  };
}

/** What a key may do, for the audit log. */
const keptOf = ({ _id, binding, dailyCreateLimit, lineageId, name, scopes }: OrganizationKeyDocument) => ({
  keyId: _id,
  lineageId,
  name,
  scopes,
  binding,
  dailyCreateLimit,
});
