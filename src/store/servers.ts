import type { Collection, Db, Document } from "mongodb";

export const SERVERS = "servers";

/** A server that accepts commands forwarded by other servers. */
export interface LiveServer {
  readonly id: string;
  readonly url: string;
}

export interface ServerDocument extends Document {
  /** New with each start. */
  _id: string;
  url: string;
  version: string;
  startedAt: Date;
  seenAt: Date;
  /** MAC over id, address and version (`AccessProofs`). */
  proof: string;
}

export interface ServerProofs {
  make(kind: "server", record: Pick<ServerDocument, "_id" | "url" | "version">): string;
  genuine(kind: "server", record: ServerDocument): ServerDocument | null;
}

/** Age of the last heartbeat from which nothing is forwarded to a server: three heartbeats. */
const LIVE_MS = 6_000;

/** Age of the last heartbeat at which a record is removed that its server left behind. */
const DEAD_MS = 600_000;

/** Write concern of heartbeats, without journal: a lost one costs nothing. */
const LOOSE = { writeConcern: { w: 1, journal: false } } as const;

/** Compares ages by MongoDB's clock, since servers' clocks may differ. */
const seen = (operator: "$gt" | "$lt", agoMs: number): Document => ({
  $expr: { [operator]: ["$seenAt", { $subtract: ["$$NOW", agoMs] }] },
});

/** Servers of this database that commands can be forwarded to, in MongoDB. */
export class MongoServers {
  readonly #servers: Collection<ServerDocument>;
  readonly #proofs: ServerProofs;
  readonly #version: string;

  /** `version` is the program's; servers of another version may understand other commands. */
  constructor(db: Db, proofs: ServerProofs, version: string) {
    this.#servers = db.collection<ServerDocument>(SERVERS);
    this.#proofs = proofs;
    this.#version = version;
  }

  async announce({ id, url }: LiveServer): Promise<void> {
    const version = this.#version;
    const proof = this.#proofs.make("server", { _id: id, url, version });
    const named = {
      url: { $literal: url },
      version: { $literal: version },
      proof: { $literal: proof },
    };
    const times = { startedAt: { $ifNull: ["$startedAt", "$$NOW"] }, seenAt: "$$NOW" };
    await this.#servers.updateOne({ _id: id }, [{ $set: { ...named, ...times } }], {
      upsert: true,
      ...LOOSE,
    });
  }

  async remove(id: string): Promise<void> {
    await this.#servers.deleteMany({ $or: [{ _id: id }, seen("$lt", DEAD_MS)] }, LOOSE);
  }

  async live(): Promise<readonly LiveServer[]> {
    const found = await this.#servers.find({ version: this.#version, ...seen("$gt", LIVE_MS) }).toArray();
    const genuine = found.filter((server) => this.#proofs.genuine("server", server) !== null);
    return genuine.map(({ _id: id, url }) => ({ id, url }));
  }
}
