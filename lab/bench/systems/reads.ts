import { accessProofsOf, prove } from "../../../test/support/access-proofs.ts";
import { MasterKey } from "../../../src/secrets/master-key.ts";
import { join } from "node:path";
import { z } from "zod";
import { createOrganization } from "../../../server/admin/create-organization.ts";
import { connectMongo } from "../../../src/store/connections.ts";
import { Child } from "../child.ts";
import type { BareReadConfig } from "../processes/bare-read.ts";
import type { ServiceConfig } from "../processes/service.ts";
import { postTo } from "./payments-agents.ts";
import type { Site, System } from "./system.ts";
import { databaseOf, MASTER_KEY, portOf, serviceEnvironment } from "./system.ts";

/**
 * One trivial read, of a project's record: bare over the same driver and Express, and from the service by an
 * organization's key and by a session. The difference is the cost of authentication, limits and the pipeline.
 */

/** A system that only answers: no actors, nothing to settle, no books. */
const onlyAnswers = {
  settle: () => Promise.resolve(),
  course: () => Promise.resolve(null),
  audit: () => Promise.resolve([]),
} as const;

export async function startBareRead(site: Site): Promise<System> {
  const mongodbUri = databaseOf(site.mongodbUri, "bench_bare_read");
  const { mongo, db } = await connectMongo(mongodbUri);
  const _id = "018f0000-0000-7000-8000-000000000000";
  const project = {
    _id,
    organizationId: _id,
    name: "General",
    description: null,
    color: null,
    logoHash: null,
  };
  await db
    .collection<typeof project & { createdAt: Date; archivedAt: null }>("projects")
    .insertOne({ ...project, createdAt: new Date(), archivedAt: null });
  await mongo.close();
  const config: BareReadConfig = { mongodbUri, baseUrl: "http://127.0.0.1" };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/bare-read.ts", config, profileDir });
  return {
    port: portOf(child.port),
    pid: child.pid,
    templates: () => Promise.resolve([{ method: "GET", path: `/projects/${_id}`, headers: {}, body: null }]),
    ...onlyAnswers,
    stop: () => child.stop(),
  };
}

export const startKeyRead = (site: Site): Promise<System> => startGuardedRead(site, "key");
export const startSessionRead = (site: Site): Promise<System> => startGuardedRead(site, "session");

const OWNER = { email: "owner@example.com", password: "correct horse battery staple" } as const;

const session = z.object({ token: z.string() });
const minted = z.object({ key: z.string() });

async function startGuardedRead(site: Site, by: "key" | "session"): Promise<System> {
  const env = serviceEnvironment(site, `bench_${by}_read`);
  const config: ServiceConfig = { env, logFile: join(site.dataDir, "logs", `${by}-read.log`) };
  const { profileDir } = site;
  const child = await Child.start({ entry: "processes/payments.ts", config, profileDir });
  const port = portOf(child.port);
  const { projectId } = await createOrganization(env, {
    name: "Bench",
    ownerEmail: OWNER.email,
    ownerPassword: OWNER.password,
    plan: "enterprise",
    restPerMinute: 1_000_000,
  });
  const key = by === "key" ? await mintKey(env, port, await signIn(port)) : null;
  const sessionToken = renewed(() => signIn(port));
  return {
    port,
    pid: child.pid,
    templates: async () => {
      const headers = { authorization: `Bearer ${key ?? (await sessionToken())}` };
      return [{ method: "GET", path: `/v1/projects/${projectId}`, headers, body: null }];
    },
    ...onlyAnswers,
    stop: () => child.stop(),
  };
}

/** A session's token is good for 15 minutes, and a run takes longer; but a user may sign in only 10 times a minute. */
const TOKEN_MS = 5 * 60_000;

function renewed(signedIn: () => Promise<string>): () => Promise<string> {
  let newest: { readonly token: string; readonly at: number } | null = null;
  return async () => {
    if (newest === null || Date.now() - newest.at > TOKEN_MS)
      newest = { token: await signedIn(), at: Date.now() };
    return newest.token;
  };
}

const signIn = async (port: number): Promise<string> =>
  session.parse(await postTo(port, "/v1/auth/sign-in", OWNER, null)).token;

/** As the owner would, who has stepped up: by hand, since the bench has no code generator. */
async function mintKey(env: NodeJS.ProcessEnv, port: number, token: string): Promise<string> {
  const { mongo, db } = await connectMongo(String(env["MONGODB_URI"]));
  const stepUpExpiresAt = new Date(Date.now() + 60_000);
  await prove(
    db,
    "session",
    {},
    { stepUpExpiresAt },
    accessProofsOf(MasterKey.parse(MASTER_KEY, "the bench")),
  );
  await mongo.close();
  const body = { name: "bench", scopes: ["projects:read"], binding: { type: "organization" } };
  return minted.parse(await postTo(port, "/v1/organization-keys", body, token)).key;
}
