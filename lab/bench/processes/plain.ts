import { randomUUID } from "node:crypto";
import express, { type Request, type Response } from "express";
import { type ClientSession, type MongoClient, MongoServerError } from "mongodb";
import { connectMongo } from "../../../src/store/connections.ts";
import { listen } from "../../../server/http/server.ts";
import {
  type AccountDocument,
  type EntryDocument,
  hashKey,
  type PlainStore,
  plainStore,
  PROJECT,
} from "./plain-store.ts";
import { type Role, runRole } from "./role.ts";

export interface PlainConfig {
  readonly mongodbUri: string;
  /** Keeps the limits of agent, team and project together, in a transaction. */
  readonly hasLevels: boolean;
}

const DUPLICATE_KEY = 11_000;

interface Order {
  readonly amountCents: number;
  readonly merchant: string;
  readonly purpose: string;
  readonly idempotencyKey: string;
}

function orderOf(body: unknown): Order | null {
  if (typeof body !== "object" || body === null) return null;
  const { amountCents, merchant, purpose, idempotencyKey } = body as Record<string, unknown>;
  if (typeof amountCents !== "number" || !Number.isSafeInteger(amountCents) || amountCents < 1) return null;
  if (typeof merchant !== "string" || typeof purpose !== "string") return null;
  if (typeof idempotencyKey !== "string") return null;
  return { amountCents, merchant, purpose, idempotencyKey };
}

/**
 * A user's naive substitute: look the key up, take the amount if it is there, write the entry. A crash between the
 * two writes loses the amount, which is the actors' purpose.
 */
class PlainEndpoint {
  readonly #store: PlainStore;
  readonly #mongo: MongoClient;
  readonly #hasLevels: boolean;

  constructor(store: PlainStore, mongo: MongoClient, hasLevels: boolean) {
    this.#store = store;
    this.#mongo = mongo;
    this.#hasLevels = hasLevels;
  }

  async pay(request: Request, response: Response): Promise<void> {
    const key = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "")?.[1];
    const account = key === undefined ? null : await this.#store.accounts.findOne({ keyHash: hashKey(key) });
    if (account === null) return void response.status(401).json({ error: "UNAUTHORIZED" });
    const order = orderOf(request.body);
    if (order === null) return void response.status(400).json({ error: "VALIDATION_FAILED" });
    if (this.#hasLevels) return this.#payAtAllLevels(account, order, response);
    if (!(await this.#take(account._id, order.amountCents))) {
      return void response.status(402).json({ error: "BUDGET_EXCEEDED" });
    }
    const entry = { _id: randomUUID(), accountId: account._id, ...order, createdAt: new Date() };
    if (await this.#enter(entry)) return void response.status(201).json(entry);
    await this.#take(account._id, -order.amountCents);
    response.status(200).json(await this.#store.entries.findOne(earlier(entry)));
  }

  /** All or nothing: a payment that meets another one under the same cap is tried again by the driver. */
  async #payAtAllLevels(account: AccountDocument, order: Order, response: Response): Promise<void> {
    const entry = { _id: randomUUID(), accountId: account._id, ...order, createdAt: new Date() };
    try {
      const taken = await this.#mongo.withSession((session) =>
        session.withTransaction(async () => {
          for (const take of [
            () => this.#takeFrom(this.#store.accounts, account._id, order.amountCents, session),
            () => this.#takeFrom(this.#store.levels, account.teamId, order.amountCents, session),
            () => this.#takeFrom(this.#store.levels, PROJECT, order.amountCents, session),
          ]) {
            if (await take()) continue;
            await session.abortTransaction();
            return false;
          }
          await this.#store.entries.insertOne(entry, { session });
          return true;
        }),
      );
      if (taken) response.status(201).json(entry);
      else response.status(402).json({ error: "BUDGET_EXCEEDED" });
    } catch (error) {
      if (!(error instanceof MongoServerError) || error.code !== DUPLICATE_KEY) throw error;
      response.status(200).json(await this.#store.entries.findOne(earlier(entry)));
    }
  }

  async #takeFrom(
    from: PlainStore["accounts"] | PlainStore["levels"],
    _id: string,
    amountCents: number,
    session: ClientSession,
  ): Promise<boolean> {
    const enough = { _id, remainingCents: { $gte: amountCents } };
    const change = { $inc: { remainingCents: -amountCents, spentCents: amountCents } };
    const taken = await (from as PlainStore["levels"]).updateOne(enough, change, { session });
    return taken.modifiedCount === 1;
  }

  async #take(_id: string, amountCents: number): Promise<boolean> {
    const taken = await this.#store.accounts.updateOne(
      { _id, remainingCents: { $gte: amountCents } },
      { $inc: { remainingCents: -amountCents, spentCents: amountCents } },
    );
    return taken.modifiedCount === 1;
  }

  async #enter(entry: EntryDocument): Promise<boolean> {
    try {
      await this.#store.entries.insertOne(entry);
      return true;
    } catch (error) {
      if (error instanceof MongoServerError && error.code === DUPLICATE_KEY) return false;
      throw error;
    }
  }
}

const earlier = ({ accountId, idempotencyKey }: EntryDocument) => ({ accountId, idempotencyKey });

await runRole(async (config): Promise<Role> => {
  const { hasLevels, mongodbUri } = config as PlainConfig;
  // The service's own connection: what is acknowledged is in the journal of a majority.
  const { mongo, db } = await connectMongo(mongodbUri);
  const store = plainStore(db);
  await store.accounts.createIndex({ keyHash: 1 }, { unique: true });
  await store.entries.createIndex({ accountId: 1, idempotencyKey: 1 }, { unique: true });
  const endpoint = new PlainEndpoint(store, mongo, hasLevels);
  const app = express();
  app.disable("etag");
  app.use(express.json());
  app.post("/payments", (request, response) => endpoint.pay(request, response));
  const http = await listen("127.0.0.1", 0);
  http.serve(app);
  return {
    port: http.port,
    async stop() {
      await http.drain();
      await mongo.close();
    },
  };
});
