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

/** Organization keys (management-api.md section 2.4, decisions.md section 2). */
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
    async mintOrganizationKey({ body }, { principal }) {
      return shownOnce(await organizationKeys.mint(principal, body));
    },
    async rotateOrganizationKey({ params }, { principal }) {
      return shownOnce(await organizationKeys.rotate(principal, params.id));
    },
    async revokeOrganizationKey({ params }, { principal }) {
      const revoked = await organizationKeys.revoke(principal, params.id);
      return revoked.ok ? ok({ body: { organizationKey: await view(revoked.value) } }) : revoked;
    },
    async listOrganizationKeys({ query }, { principal }) {
      const page = await lists.page({
        collection: collections.organizationKeys,
        list: "organization-keys",
        filter: { organizationId: principal.organizationId },
        ...query,
        cursor: query.cursor,
      });
      if (!page.ok) return page;
      const { items, nextCursor } = page.value;
      return ok({ body: { organizationKeys: await views(items), nextCursor } });
    },
  };
}
