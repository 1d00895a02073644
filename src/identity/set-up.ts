import { randomBytes } from "node:crypto";
import { refusal, type Refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { isSameText } from "../lib/same-text.ts";
import { hmacSha256 } from "../secrets/keyed-macs.ts";
import { readOrCreateSetting } from "../secrets/settings.ts";
import type { AuthContext, WritingContext } from "./context.ts";
import { createOrganizationWithOwner, isSetUpOpen } from "./create-organization.ts";
import { openSession, type SignedIn } from "./sessions.ts";

const NONCE_SETTING = "set-up-nonce";
const NONCE_SIZE_BYTES = 32;

/** Maximum wait for the organization to be ready; the answer says whether it is. */
const READY_WAIT_MS = 1_500;

export interface SetUpInput {
  readonly token: string;
  readonly organizationName: string;
  readonly name: string;
  readonly email: string;
  readonly password: string;
  /** User agent as stated by the client. */
  readonly userAgent?: string | null;
}

/**
 * Returns the token of the set-up link; null once the service is set up. Derived from the master key and a nonce in the
 * database: every server and every restart returns the same one, and it is stored nowhere.
 */
export async function setUpToken(context: AuthContext): Promise<string | null> {
  const nonce = await openNonce(context);
  return nonce === null ? null : (tokensOf(context, nonce)[0] ?? null);
}

/** Whether the token is the set-up link's, and the service is not set up yet. */
export async function isSetUpToken(context: AuthContext, token: string): Promise<boolean> {
  const nonce = await openNonce(context);
  return nonce !== null && tokensOf(context, nonce).some((each) => isSameText(each, token));
}

/**
 * Creates the first organization with its owner and signs the owner in. Of any number of concurrent calls exactly one
 * succeeds. `NOT_FOUND` for a wrong token, and for any token once the service is set up.
 */
export async function setUp(context: WritingContext, input: SetUpInput): Promise<Result<SignedIn>> {
  const { accessProofs, clock, collections, db } = context;
  if (!(await isSetUpToken(context, input.token))) return refused(refusal("NOT_FOUND"));
  const created = await createOrganizationWithOwner(
    db,
    accessProofs,
    {
      name: input.organizationName,
      ownerName: input.name,
      ownerEmail: input.email,
      ownerPassword: input.password,
      plan: context.defaultPlan,
    },
    clock,
    "set-up",
    context.passwords,
  );
  if (!created.ok) return refused(inTermsOfTheRequest(created.refusal));
  const { organizationId, userId } = created.value;
  const provisioning = await collections.organizations.findOne({ _id: organizationId });
  if (provisioning !== null) await context.provision(provisioning, READY_WAIT_MS);
  const [organization, user] = await Promise.all([
    collections.organizations.findOne({ _id: organizationId }),
    collections.users.findOne({ _id: userId }),
  ]);
  if (organization === null || user === null) throw new Error("the created organization has disappeared");
  return ok(await openSession(context, { user, organization }, ["pwd"], clock(), input.userAgent));
}

/** Returns the tokens under each master key in use, newest first. */
const tokensOf = ({ masterKey }: Pick<AuthContext, "masterKey">, nonce: string): readonly string[] =>
  masterKey.deriveKeys("set-up-token").map(({ key }) => hmacSha256(key, nonce));

/** Returns the token's nonce; null once the service is set up. */
async function openNonce({ clock, db }: Pick<AuthContext, "clock" | "db">): Promise<string | null> {
  if (!(await isSetUpOpen(db))) return null;
  const nonce = await readOrCreateSetting(db, NONCE_SETTING, () => ({
    value: randomBytes(NONCE_SIZE_BYTES).toString("base64url"),
    createdAt: clock(),
  }));
  return nonce.value;
}

const FIELD_NAMES: Readonly<Record<string, string>> = {
  name: "organizationName",
  ownerName: "name",
  ownerEmail: "email",
  ownerPassword: "password",
};

/** Renames the fields of a refusal to those of the request. */
function inTermsOfTheRequest(reason: Refusal): Refusal {
  if (reason.issues === undefined) return reason;
  const issues = reason.issues.map(({ path, message }) => ({ path: FIELD_NAMES[path] ?? path, message }));
  return { ...reason, issues };
}
