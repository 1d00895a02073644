import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Db } from "mongodb";
import { z } from "zod";
import { createOrganization } from "../../../server/admin/create-organization.ts";
import type { CreatedOrganization } from "../../../src/identity/create-organization.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import { budgetPolicy } from "../../../src/contract/records.ts";
import { Api } from "../../support/api.ts";
import { until } from "../../support/process.ts";
import { PASSWORD, WITHOUT_LIMITS } from "../../support/service.ts";
import { audit, type Totals } from "./audit.ts";

/** Where a service is reached, and the settings of an admin command beside it. */
export interface Place {
  readonly baseUrl: string;
  readonly mongodbUri: string;
  readonly env: NodeJS.ProcessEnv;
}

type Make = (input: Parameters<typeof createOrganization>[1]) => Promise<CreatedOrganization>;

const approvedAnswer = z.object({ approval: z.object({ resolution: z.string() }) });

/** An organization of one test, seen from outside: over HTTP, and in the books. It outlives the service. */
export class Tenant {
  readonly organization: CreatedOrganization;
  readonly #email: string;
  #place: Place;
  #api: Api;
  #token = "";

  private constructor(place: Place, email: string, organization: CreatedOrganization) {
    this.#place = place;
    this.#api = new Api(place.baseUrl);
    this.#email = email;
    this.organization = organization;
  }

  /** `make`: left out, the admin command, as an operator runs it. */
  static async create(
    place: Place,
    make: Make = (input) => createOrganization(place.env, input),
  ): Promise<Tenant> {
    const ownerEmail = `owner-${randomBytes(6).toString("hex")}@example.com`;
    const owner = { name: "Restarts", ownerEmail, ownerPassword: PASSWORD };
    const organization = await make({ ...owner, ...WITHOUT_LIMITS });
    const tenant = new Tenant(place, ownerEmail, organization);
    await tenant.meet(place);
    return tenant;
  }

  /** Turns to the service where it is after a restart. */
  async meet(place: Place): Promise<void> {
    this.#place = place;
    this.#api = new Api(place.baseUrl);
    this.#token = await this.#api.signIn(this.#email, PASSWORD);
  }

  get api(): Api {
    return this.#api;
  }

  /** The owner's session, of after the last `meet`. */
  get token(): string {
    return this.#token;
  }

  createAgent(fields: Readonly<Record<string, unknown>> = {}) {
    return this.#api.createAgent(this.#token, this.organization.teamId, fields);
  }

  async usage(agentId: string) {
    const path = `/v1/agents/${agentId}/budget-policy`;
    const { body, status } = await this.#api.surely("GET", path, { token: this.#token });
    expect(status, `${agentId}: ${JSON.stringify(body)}`).to.equal(200);
    return z.object({ usage: budgetPolicy.shape.usage }).parse(body).usage;
  }

  /** The id of the approval that a payment waits for, once it is written down. */
  async approvalOf(apiKey: string, transactionId: string, withinMs: number): Promise<string> {
    return until(`${transactionId} waits for approval`, withinMs, async () => {
      const { approval } = await this.#api.payment(apiKey, transactionId);
      return approval?.id ?? null;
    });
  }

  /** Approves as the owner; answers the resolution. */
  async approve(approvalId: string): Promise<string> {
    const path = `/v1/approvals/${approvalId}/approve`;
    const { body, status } = await this.#api.surely("POST", path, { token: this.#token });
    expect(status, `${approvalId}: ${JSON.stringify(body)}`).to.equal(200);
    return approvedAnswer.parse(body).approval.resolution;
  }

  async withDatabase<T>(work: (db: Db) => Promise<T>): Promise<T> {
    const { db, mongo } = await connectMongo(this.#place.mongodbUri);
    try {
      return await work(db);
    } finally {
      await mongo.close();
    }
  }

  /** The actor's totals are these within the bound. */
  async expectTotals(agentId: string, totals: Totals, withinMs: number): Promise<void> {
    await until(`${totals.spentCents} spent, ${totals.reservedCents} reserved`, withinMs, async () => {
      expect(await this.usage(agentId)).to.include(totals);
      return true;
    });
  }

  /** The books agree within the bound, by the service's own doing. */
  async expectBooksToAgree(withinMs: number): Promise<void> {
    const { organizationId } = this.organization;
    const totalsOf = (agentId: string) => this.usage(agentId);
    await this.withDatabase((db) =>
      until("the books agree", withinMs, async () => {
        const differences = await audit({ db, organizationId, totalsOf });
        expect(differences, differences.join("; ")).to.deep.equal([]);
        return true;
      }),
    );
  }
}
