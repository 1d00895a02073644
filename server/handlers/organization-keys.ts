import type { Result } from "../../src/domain/result.ts";
import { ok } from "../../src/domain/result.ts";
import type { OrganizationKeyDocument } from "../../src/store/organization-key-documents.ts";
import type { MintedKey } from "../../src/identity/organization-keys/keys.ts";
import { organizationKeyView } from "../../src/views/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type OrganizationKeyHandlers = Pick<
  Handlers,
  "mintOrganizationKey" | "listOrganizationKeys" | "rotateOrganizationKey" | "revokeOrganizationKey"
>;

export function organizationKeyHandlers(dependencies: HandlerDependencies): OrganizationKeyHandlers {
  const { clock, collections, dailyCreates, lists, organizationKeys } = dependencies;

  /** Adds to each key the number of creates by its lineage on the current UTC day. */
  async function views(documents: readonly OrganizationKeyDocument[]) {
    const lineageIds = documents.map(({ lineageId }) => lineageId);
    const counts = await dailyCreates.createdToday(lineageIds, clock());
    return documents.map((document) => organizationKeyView(document, counts.get(document.lineageId) ?? 0));
  }

  async function view(document: OrganizationKeyDocument) {
    const [only] = await views([document]);
    if (only === undefined) throw new Error("the only view is missing");
    return only;
  }

  async function shownOnce(minted: Result<MintedKey>) {
    if (!minted.ok) return minted;
    const { document, value } = minted.value;
    return ok({ body: { organizationKey: await view(document), key: value } });
  }

  return {
    async mintOrganizationKey({ body }, { audit, principal }) {
      return shownOnce(await organizationKeys.mint(principal, body, audit));
    },
    async rotateOrganizationKey({ params }, { audit, principal }) {
      return shownOnce(await organizationKeys.rotate(principal, params.id, audit));
    },
    async revokeOrganizationKey({ params }, { audit, principal }) {
      const revoked = await organizationKeys.revoke(principal, params.id, audit);
      if (!revoked.ok) return revoked;
      return ok({ body: { organizationKey: await view(revoked.value) } });
    },
    async listOrganizationKeys({ query }, { principal: { organizationId } }) {
      const page = await lists.page({
        collection: collections.organizationKeys,
        list: "organization-keys",
        filters: { organizationId },
        equals: { organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { organizationKeys: await views(items), nextCursor } });
    },
  };
}
