import { withChecksum } from "../../src/domain/address.ts";
import { ok } from "../../src/domain/result.ts";
import type { OrganizationDocument } from "../../src/store/identity-documents.ts";
import { organizationView } from "../../src/identity/views.ts";
import { limitsOf } from "../../src/limits/plans.ts";
import { railModesOf } from "../../src/rails/rails.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** The organization's own settings. */
export function organizationHandlers({
  auth,
  collections: { organizations },
  wallets,
}: HandlerDependencies): Pick<Handlers, "getOrganization" | "updateOrganization"> {
  const rails = railModesOf(wallets);
  const reply = (organization: OrganizationDocument | null) => {
    if (organization === null) throw new Error("a caller's organization has lost its record");
    const shown = { ...organizationView(organization), ...settingsOf(organization), rails };
    return ok({ body: { organization: shown } });
  };
  return {
    // From the record, not from what is kept of callers' organizations: who just changed it sees it.
    async getOrganization(_input, { principal: { organizationId } }) {
      return reply(await organizations.findOne({ _id: organizationId }));
    },

    async updateOrganization(
      { body: { name, requireSecondFactor, timezone, walletOwner } },
      { audit, principal },
    ) {
      const changed = await auth.writing(audit).changeOrganizationSettings(principal, {
        ...(walletOwner === undefined
          ? {}
          : { walletOwner: walletOwner === null ? null : withChecksum(walletOwner) }),
        ...(requireSecondFactor === undefined ? {} : { requireSecondFactor }),
        ...(name === undefined ? {} : { name }),
        ...(timezone === undefined ? {} : { timezone }),
      });
      if (!changed.ok) return changed;
      return reply(changed.value.after);
    },
  };
}

function settingsOf(organization: OrganizationDocument) {
  const { requireSecondFactor, timezone, walletOwner } = organization;
  const { mcp, rest } = limitsOf(organization);
  return {
    walletOwner: walletOwner ?? null,
    requireSecondFactor: requireSecondFactor === true,
    timezone: timezone ?? null,
    limits: { restPerMinute: rest, mcpPerMinute: mcp },
  };
}
