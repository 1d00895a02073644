import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { Client, Connection } from "@temporalio/client";
import type { Db } from "mongodb";
import { connectMongo } from "../../../src/store/connections.ts";
import { loadMasterKey, MASTER_KEY_FILE_NAME } from "../../../src/secrets/load-master-key.ts";
import type { RuntimeFile } from "../../../src/engines/runtime-file.ts";
import { agentWorkflowId } from "../../../src/messages/agent.ts";
import { accessProofsOf, prove, TEST_ACCESS_PROOFS } from "../../support/access-proofs.ts";
import type { Answer } from "../../support/api.ts";
import { ContractApi } from "../../support/contract-api.ts";
import type { ServiceProcess } from "../../support/process.ts";
import { type CrashingOptions, lifePointsOf, placeOf, startCrashing } from "./crashing.ts";
import { armLife, type LifePoint, lifeHeldLine } from "./life-points.ts";
import { Tenant } from "./tenant.ts";

const HELD_MS = 120_000;
const STEPPED_UP_MS = 600_000;

/** A request that is not answered any more once its process is killed. */
export interface Held {
  /** Null: the line broke. */
  readonly answer: Promise<Answer | null>;
}

/** A caller with a team of its own, so that what it makes is told from all else: a machine under one key, or the owner. */
export interface Creator {
  readonly token: string;
  readonly teamId: string;
  /** Null: a person. */
  readonly lineageId: string | null;
}

/** A service in which agents' creates, mints and archives can be held at points, with one organization on it. */
export class LifeStage {
  readonly service: ServiceProcess;
  readonly tenant: Tenant;
  readonly #points: string;
  #api: ContractApi;
  #connected: Awaited<ReturnType<typeof connectedTo>>;

  private constructor(
    service: ServiceProcess,
    tenant: Tenant,
    connected: Awaited<ReturnType<typeof connectedTo>>,
  ) {
    this.service = service;
    this.tenant = tenant;
    this.#points = lifePointsOf(service);
    this.#api = new ContractApi(service.runtime.baseUrl);
    this.#connected = connected;
  }

  static async set(options: CrashingOptions = {}): Promise<LifeStage> {
    const service = await startCrashing(options);
    try {
      return await LifeStage.on(service);
    } catch (error) {
      await service.dispose();
      throw error;
    }
  }

  /** With an organization of its own on a service that others use, too. */
  static async on(service: ServiceProcess): Promise<LifeStage> {
    const tenant = await Tenant.create(placeOf(service));
    return new LifeStage(service, tenant, await connectedTo(service.runtime));
  }

  get api(): ContractApi {
    return this.#api;
  }

  get db(): Db {
    return this.#connected.db;
  }

  get temporal(): Client {
    return this.#connected.temporal;
  }

  /** Sends a request and waits until it is held at the point; the process lives on, and so does the request. */
  async hold(point: LifePoint, request: () => Promise<Answer>): Promise<Held> {
    const arming = await armLife(this.#points, point);
    const answer = request().catch(() => null);
    const line = lifeHeldLine(point, arming);
    await this.service.child.until(line, HELD_MS, () =>
      this.service.child.stdout.includes(line) ? true : null,
    );
    return { answer };
  }

  /** Turns to the service where it is now. */
  async meet(): Promise<void> {
    await this.close();
    await this.tenant.meet(placeOf(this.service));
    this.#api = new ContractApi(this.service.runtime.baseUrl);
    this.#connected = await connectedTo(this.service.runtime);
  }

  /** Lets go of the engines. */
  async close(): Promise<void> {
    await this.#connected.close().catch(() => undefined);
  }

  async dispose(): Promise<void> {
    await this.close();
    await this.service.dispose();
  }

  /** As a step-up does. */
  async elevate(): Promise<void> {
    const { organizationId } = this.tenant.organization;
    const stepUpExpiresAt = new Date(Date.now() + STEPPED_UP_MS);
    const { dataDir } = this.service;
    // A service with embedded engines has made its own key.
    const proofs = existsSync(join(dataDir, MASTER_KEY_FILE_NAME))
      ? accessProofsOf(await loadMasterKey({ setting: null, embeddedDataDir: dataDir }))
      : TEST_ACCESS_PROOFS;
    await prove(this.db, "session", { organizationId }, { stepUpExpiresAt }, proofs);
  }

  async #newTeam(): Promise<string> {
    const body = { name: "Team", projectId: this.tenant.organization.projectId };
    return (await this.#api.ok("createTeam", 201, { token: this.tenant.token, body })).team.id;
  }

  /** A machine that may create one agent a day. */
  async machine(): Promise<Creator> {
    const teamId = await this.#newTeam();
    await this.elevate();
    const binding = { type: "team", id: teamId };
    const body = { name: "Key", scopes: ["agents:write", "agents:read"], binding, dailyCreateLimit: 1 };
    const minted = await this.#api.ok("mintOrganizationKey", 201, { token: this.tenant.token, body });
    return { token: minted.key, teamId, lineageId: minted.organizationKey.lineageId };
  }

  /** The owner, in a team that no other test uses. The session is the stage's own, which a restart renews. */
  async person(): Promise<Creator> {
    const { tenant } = this;
    const teamId = await this.#newTeam();
    return {
      get token() {
        return tenant.token;
      },
      teamId,
      lineageId: null,
    };
  }

  /** The names in the folder of the delivery keys. */
  deliveryKeys(): Promise<readonly string[]> {
    return readdir(join(this.service.dataDir, "key-delivery"));
  }

  /** Whether the key that seals the agent's first key is there; it is in Temporal where engines are not embedded. */
  async hasDeliveryKey(agentId: string): Promise<boolean> {
    const names = await this.deliveryKeys().catch(() => null);
    if (names !== null) return names.includes(agentId);
    // A handle's description would read the memo, which this client can't decode.
    const { namespace } = this.temporal.options;
    const execution = { workflowId: `delivery-key/${agentId}` };
    return this.temporal.workflowService.describeWorkflowExecution({ namespace, execution }).then(
      () => true,
      () => false,
    );
  }

  /** What became of an agent's actor; null: it never ran. */
  async actorOf(agentId: string): Promise<string | null> {
    const handle = this.temporal.workflow.getHandle(agentWorkflowId(agentId));
    return handle.describe().then(
      ({ status }) => status.name,
      () => null,
    );
  }
}

/** A create's body, without an idempotency key; machines must add one. */
export const agentIn = ({ teamId }: Creator) => ({ name: "Agent", teamId, budgetCents: 10_000 });

async function connectedTo({ mongodb, temporal }: RuntimeFile) {
  const { db, mongo } = await connectMongo(mongodb.uri);
  const connection = await Connection.connect({ address: temporal.address });
  return {
    db,
    temporal: new Client({ connection, namespace: temporal.namespace }),
    async close() {
      await connection.close();
      await mongo.close();
    },
  };
}
