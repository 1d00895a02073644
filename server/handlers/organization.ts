import { withChecksum } from "../../src/domain/address.ts";
import { ok } from "../../src/domain/result.ts";
import type { OrganizationDocument } from "../auth/documents.ts";
import { organizationView } from "../auth/views.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** The organization's own settings. */
export function organizationHandlers({
  collections: { organizations },
}: HandlerDependencies): Pick<Handlers, "getOrganization" | "updateOrganization"> {
  return {
    // From the record, not from what is kept of callers' organizations: who just changed it sees it.
    async getOrganization(_input, { principal: { organizationId } }) {
      return reply(await organizations.findOne({ _id: organizationId }));
    },

    async updateOrganization({ body: { walletOwner } }, { audit, principal: { organizationId } }) {
      const change =
        walletOwner === null
          ? { $unset: { walletOwner: "" as const } }
          : { $set: { walletOwner: withChecksum(walletOwner) } };
      const before = await organizations.findOneAndUpdate({ _id: organizationId }, change);
      const after = walletOwner === null ? null : withChecksum(walletOwner);
      audit.change({ walletOwner: before?.walletOwner ?? null }, { walletOwner: after });
      return reply(await organizations.findOne({ _id: organizationId }));
    },
  };
}

function reply(organization: OrganizationDocument | null) {
  if (organization === null) throw new Error("a caller's organization has lost its record");
  const { walletOwner = null } = organization;
  return ok({ body: { organization: { ...organizationView(organization), walletOwner } } });
}
