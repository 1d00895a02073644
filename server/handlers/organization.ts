import { getAddress, isHex } from "viem";
import { caip2Of } from "../../src/chain/config.ts";
import { isSignedByOwner, ownerChallenge } from "../../src/identity/wallet-owner-proof.ts";
import { ChainUnreachable, WrongChain } from "../../src/chain/rpc.ts";
import { TimeoutError, withTimeout } from "../../src/lib/with-timeout.ts";
import { withChecksum } from "../../src/domain/address.ts";
import { refusal } from "../../src/domain/errors.ts";
import { ok, refused } from "../../src/domain/result.ts";
import type { OrganizationDocument } from "../../src/store/identity-documents.ts";
import { organizationView } from "../../src/identity/views.ts";
import { limitsOf } from "../../src/limits/plans.ts";
import { railModesOf } from "../../src/rails/rails.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

/** Timeout for looking up the treasury on the chain. After that it is shown as missing. */
const TREASURY_TIMEOUT_MS = 1_000;

export function organizationHandlers({
  auth,
  cardConnections,
  collections: { organizations },
  wallets,
}: HandlerDependencies): Pick<Handlers, "getOrganization" | "updateOrganization"> {
  const reply = async (organization: OrganizationDocument | null) => {
    if (organization === null) throw new Error("a caller's organization has lost its record");
    const [treasury, connection] = await Promise.all([
      treasuryOf(organization._id),
      cardConnections.recordOf(organization._id),
    ]);
    const rails = railModesOf(wallets, connection);
    const shown = { ...organizationView(organization), ...settingsOf(organization), treasury, rails };
    return ok({ body: { organization: shown } });
  };
  /** Returns the treasury; null if there is none, or if the chain does not answer a necessary look-up. */
  async function treasuryOf(organizationId: string) {
    if (wallets === null) return null;
    const address = await withTimeout(TREASURY_TIMEOUT_MS, wallets.treasuries.of(organizationId)).catch(
      unlessMissing,
    );
    return address === null ? null : { address, chainCaip2: caip2Of(wallets.config.chainId) };
  }

  /** Refuses an owner whose key is not proven. Test money needs no proof, but an invalid one is refused. */
  async function unprovenOwner(organizationId: string, owner: string, signature: string | undefined) {
    if (wallets === null || (signature === undefined && wallets.sandbox !== null)) return null;
    const { config, rpc } = wallets;
    const address = getAddress(owner.toLowerCase());
    const challenge = ownerChallenge(organizationId, address, caip2Of(config.chainId));
    const isProven = isHex(signature) && (await isSignedByOwner(rpc, address, challenge, signature));
    return isProven ? null : refusal("WALLET_OWNER_UNPROVEN", undefined, { challenge });
  }

  return {
    // Read from the record and not from the callers' cache, so that a caller sees its own change.
    async getOrganization(_input, { principal: { organizationId } }) {
      return reply(await organizations.findOne({ _id: organizationId }));
    },

    async updateOrganization(
      { body: { name, requireSecondFactor, timezone, walletOwner, walletOwnerSignature } },
      { audit, principal },
    ) {
      if (typeof walletOwner === "string") {
        const unproven = await unprovenOwner(principal.organizationId, walletOwner, walletOwnerSignature);
        if (unproven !== null) return refused(unproven);
      }
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

const unlessMissing = (error: unknown): null => {
  const isChains = error instanceof ChainUnreachable || error instanceof WrongChain;
  if (isChains || error instanceof TimeoutError) return null;
  throw error;
};

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
