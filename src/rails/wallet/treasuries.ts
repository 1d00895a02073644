import type { Collection, Db } from "mongodb";
import { type Address, getAddress } from "viem";
import { caip2Of, type ChainConfig } from "../../chain/config.ts";
import type { WalletRecord } from "../../store/documents.ts";
import type { Treasuries as TreasuriesPort } from "../../payments/ports.ts";
import type { AccessProofs } from "../../secrets/access-proofs.ts";
import type { Indexes } from "../../store/indexes.ts";

const ORGANIZATIONS = "organizations";

/** Fields of an organization's record that treasuries use; the server writes the others. */
interface OrganizationWithTreasury {
  readonly _id: string;
  readonly walletOwner?: string;
  readonly walletOwnerProof?: string;
  readonly treasury?: WalletRecord | null;
  readonly treasuryProof?: string;
}

export interface TreasuriesDependencies {
  readonly db: Db;
  readonly config: ChainConfig;
  readonly newWallet: (id: string, owner: string) => WalletRecord;
  /** Owner of treasuries if the organization has named none. If both are missing, the organization has no treasury. */
  readonly defaultOwner: string | null;
  readonly proofs: Pick<AccessProofs, "genuine" | "make">;
  /** Runs before an address is disclosed: deposits must be watched from before the first one. */
  readonly beforeFirstUse: () => Promise<void>;
}

export const TREASURY_INDEXES: Indexes = {
  [ORGANIZATIONS]: [
    {
      key: { "treasury.chainCaip2": 1, "treasury.address": 1 },
      name: "treasury_unique",
      reader: "a treasury is one organization's",
      unique: true,
      partialFilterExpression: { "treasury.address": { $exists: true } },
    },
  ],
};

/**
 * The organizations' treasuries. A treasury is a wallet like an agent's, with the organization's id in the agent's
 * place, so it can receive money before anything is deployed. Recorded once; its owner and chain never change here.
 */
export class Treasuries implements TreasuriesPort {
  readonly #dependencies: TreasuriesDependencies;
  readonly #organizations: Collection<OrganizationWithTreasury>;
  readonly #chain: string;

  constructor(dependencies: TreasuriesDependencies) {
    this.#dependencies = dependencies;
    // A disclosed address may receive money, so its record must survive the loss of a primary.
    const options = { readConcern: { level: "majority" } } as const;
    this.#organizations = dependencies.db.collection(ORGANIZATIONS, options);
    this.#chain = caip2Of(dependencies.config.chainId);
  }

  /**
   * Returns an organization's treasury on this chain, recorded at first use. Null if it has no owner, or is on another
   * chain, where deposits would not be seen. Throws if the chain has to be called and does not answer.
   */
  async of(organizationId: string): Promise<Address | null> {
    await this.#dependencies.beforeFirstUse();
    const treasury = await this.record(organizationId);
    return treasury === null || treasury.chainCaip2 !== this.#chain ? null : getAddress(treasury.address);
  }

  /**
   * Returns the treasury's record, created if missing. An address from here must not be disclosed: see `of`. Throws if
   * something other than the service has changed the treasury, or the owner that it is created for.
   */
  async record(organizationId: string): Promise<WalletRecord | null> {
    const { defaultOwner, newWallet, proofs } = this.#dependencies;
    const _id = organizationId;
    const organization = await this.#organizations.findOne({ _id });
    if (organization === null) throw new Error(`organization ${organizationId} has no record`);
    if ((organization.treasury ?? null) !== null) return this.#treasuryIn(organization);
    const owner = walletOwnerOf(organization, proofs) ?? defaultOwner;
    if (owner === null) return null;
    // The first of several concurrent writes wins; the others change nothing and wait until the record is durable.
    const made = { _id, treasury: newWallet(organizationId, owner) };
    const treasuryProof = proofs.make("treasury", made);
    const isThere = { $ne: [{ $ifNull: ["$treasury", null] }, null] };
    const first = (field: "treasury" | "treasuryProof", value: unknown) => ({
      [field]: { $cond: [isThere, `$${field}`, { $literal: value }] },
    });
    const recorded = await this.#organizations.findOneAndUpdate(
      { _id },
      [{ $set: { ...first("treasury", made.treasury), ...first("treasuryProof", treasuryProof) } }],
      { returnDocument: "after" },
    );
    return recorded === null ? null : this.#treasuryIn(recorded);
  }

  #treasuryIn(organization: OrganizationWithTreasury): WalletRecord | null {
    if (this.#dependencies.proofs.genuine("treasury", organization) !== null)
      return organization.treasury ?? null;
    throw new Error(`the treasury of organization ${organization._id} is not as the service wrote it`);
  }

  /** Returns the organizations with treasuries on this chain, by address. */
  async all(): Promise<ReadonlyMap<Address, string>> {
    // An address is disclosed only once its record is durable, so none is missing here.
    const found = await this.#organizations
      .find({ "treasury.chainCaip2": this.#chain }, { projection: { "treasury.address": 1 } })
      .toArray();
    return new Map(
      found.flatMap(({ _id, treasury }) =>
        treasury === null || treasury === undefined ? [] : [[getAddress(treasury.address), _id] as const],
      ),
    );
  }
}

/**
 * Returns the address that owns an organization's new wallets; null if it has named none. Throws if something other than
 * the service has named it.
 */
export function walletOwnerOf(
  organization: Pick<OrganizationWithTreasury, "_id" | "walletOwner" | "walletOwnerProof">,
  proofs: Pick<AccessProofs, "genuine">,
): string | null {
  const { _id, walletOwner = null } = organization;
  if (walletOwner === null || proofs.genuine("walletOwner", organization) !== null) return walletOwner;
  throw new Error(`the owner of the wallets of organization ${_id} is not as the service wrote it`);
}
