import { createHash, randomBytes } from "node:crypto";
import type { ClientSession, Db } from "mongodb";
import { z } from "zod";
import { email } from "../contract/primitives.ts";
import { refusal, type Refusal } from "../domain/errors.ts";
import { ok, refused, type Result } from "../domain/result.ts";
import { isDuplicateKey } from "../lib/duplicate-key.ts";
import type { AccessProofs } from "../secrets/access-proofs.ts";
import { settingsOf } from "../secrets/settings.ts";
import {
  authCollections,
  type OrganizationDocument,
  type UserDocument,
} from "../store/identity-documents.ts";
import { newUuid } from "./ids.ts";
import { invalid, newUser } from "./new-user.ts";
import { chosenPasswordIssue, passwordIssue, Passwords } from "./passwords.ts";
import { checkCustomLimits, planFields } from "./plan.ts";
import { ensureAuthIndexes } from "../store/identity-indexes.ts";

/** Unvalidated input of the admin command. */
export interface CreateOrganizationInput {
  readonly name: string;
  readonly ownerEmail: string;
  readonly ownerPassword: string;
  /** Defaults to the part of the e-mail before the @. */
  readonly ownerName?: string | undefined;
  readonly plan: string;
  readonly restPerMinute?: number | undefined;
  readonly mcpPerMinute?: number | undefined;
}

export interface CreatedOrganization {
  readonly organizationId: string;
  readonly userId: string;
  /** Ids of the default project and team, which the provisioning workflow creates. */
  readonly projectId: string;
  readonly teamId: string;
}

/** Occasion of the creation: the operator's command, repeatable, sometimes as a trial; or the set-up link, once. */
export type Occasion = "command" | "trial" | "set-up";

/** Setting that closes the set-up for good. */
const SET_UP_DONE = "set-up-done";

const nameSchema = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}]*$/u, "Must not hold control characters.");

const inputSchema = z
  .object({
    name: nameSchema,
    ownerEmail: z.string().trim().pipe(email),
    ownerPassword: z.string().superRefine((password, check) => {
      const message = passwordIssue(password);
      if (message !== null) check.addIssue({ code: "custom", message });
    }),
    ownerName: nameSchema.optional(),
    ...planFields,
  })
  .superRefine(checkCustomLimits);

export type CheckedInput = z.output<typeof inputSchema>;

/**
 * Writes an organization with its owner: both or, after a crash, neither. The organization is `provisioning` until its
 * workflow is done. Repeating the call while it is provisioning returns the same ids, so that a command that died
 * before starting the workflow can be repeated; once it is ready, the repeated call is refused. The owner's e-mail may
 * have accounts in other organizations.
 */
export async function createOrganizationWithOwner(
  db: Db,
  accessProofs: AccessProofs,
  input: CreateOrganizationInput,
  clock: () => Date = () => new Date(),
  occasion: Occasion = "command",
  passwords?: Passwords,
): Promise<Result<CreatedOrganization>> {
  const parsed = inputSchema.safeParse(input);
  if (!parsed.success) return refused(validationRefusal(parsed.error));
  const { name, ownerEmail, ownerName = "", ownerPassword } = parsed.data;
  const issue = await chosenPasswordIssue(ownerPassword, [name, ownerEmail, ownerName]);
  if (issue !== null) return refused(invalid("ownerPassword", issue));
  return writeOrganization(db, parsed.data, { accessProofs, now: clock(), occasion, passwords });
}

/** Writes the checked input. Defaults to the service's password hashing. */
export async function writeOrganization(
  db: Db,
  input: CheckedInput,
  making: Omit<Making, "passwords"> & { readonly passwords?: Passwords | undefined },
): Promise<Result<CreatedOrganization>> {
  // The index that makes a call execute once may not exist yet.
  await ensureAuthIndexes(db);
  const { now, occasion } = making;
  const passwords = making.passwords ?? (await Passwords.on(db, now));
  const { organization, owner } = await newRecords(input, { ...making, passwords });
  // A repeated script must not create its organization twice.
  const made = { creation: organization.creation, status: "ready" } as const;
  if ((await authCollections(db).organizations.findOne(made)) !== null) {
    return refused(invalid("ownerEmail", "The same call has made an organization already."));
  }
  try {
    const inserted = await insertBoth(db, organization, owner, occasion);
    return inserted ? ok(idsOf(organization, owner)) : refused(refusal("NOT_FOUND"));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  return ok(await madeBefore(db, organization.creation));
}

/** Whether the service is not set up yet, so that the set-up link is valid. */
export async function isSetUpOpen(db: Db, session?: ClientSession): Promise<boolean> {
  const options = session === undefined ? {} : { session };
  if ((await settingsOf(db).findOne({ _id: SET_UP_DONE }, options)) !== null) return false;
  // The marker may be missing: a partial restore can lose it, and older databases never had it.
  const others = { createdBy: { $ne: "trial" } } as const;
  return (await authCollections(db).organizations.findOne(others, options)) === null;
}

interface Making {
  readonly accessProofs: AccessProofs;
  readonly now: Date;
  readonly occasion: Occasion;
  readonly passwords: Passwords;
}

async function newRecords(
  input: CheckedInput,
  { accessProofs, now, occasion, passwords }: Making,
): Promise<{ readonly organization: OrganizationDocument; readonly owner: UserDocument }> {
  const organizationId = newUuid(now, randomBytes);
  const owner = await newUser(
    {
      organizationId,
      name: input.ownerName ?? input.ownerEmail.replace(/@.*$/, ""),
      email: input.ownerEmail,
      emailVerified: false,
      role: "owner",
      // At least one person must hear of the first payments on hold; everybody else chooses. A trial's address may be
      // unused.
      ...(occasion === "trial" ? {} : { approvalMails: true }),
      password: input.ownerPassword,
    },
    now,
    randomBytes,
    passwords,
    accessProofs,
  );
  const organization: OrganizationDocument = {
    _id: organizationId,
    name: input.name,
    plan: input.plan,
    restPerMinute: input.restPerMinute ?? null,
    mcpPerMinute: input.mcpPerMinute ?? null,
    status: "provisioning",
    defaultProjectId: newUuid(now, randomBytes),
    defaultTeamId: newUuid(now, randomBytes),
    createdAt: now,
    createdBy: occasion,
    creation: creationOf(input, owner),
    readyAt: null,
  };
  return { organization, owner };
}

/** Returns the identity of a call, including the password. A call that differs creates another organization. */
function creationOf({ mcpPerMinute, name, plan, restPerMinute }: CheckedInput, owner: UserDocument): string {
  const said = [name, plan, restPerMinute ?? null, mcpPerMinute ?? null, owner.name];
  const text = JSON.stringify([...said, owner.emailNormalized, owner.passwordHash]);
  return createHash("sha256").update(text).digest("base64url");
}

/**
 * Inserts both or neither. The first organization also inserts the marker that closes the set-up, unless set-up stays
 * open. A concurrent writer of the marker conflicts, retries and finds it, so of any number of concurrent set-ups
 * exactly one succeeds.
 */
async function insertBoth(
  db: Db,
  organization: OrganizationDocument,
  owner: UserDocument,
  occasion: Occasion,
): Promise<boolean> {
  const { organizations, users } = authCollections(db);
  const marker = { value: organization._id, createdAt: organization.createdAt };
  return await db.client.withSession((session) =>
    session.withTransaction(
      async () => {
        if (occasion === "set-up" && !(await isSetUpOpen(db, session))) return false;
        const first = { $setOnInsert: marker };
        if (occasion !== "trial")
          await settingsOf(db).updateOne({ _id: SET_UP_DONE }, first, { upsert: true, session });
        await users.insertOne(owner, { session });
        await organizations.insertOne(organization, { session });
        return true;
      },
      { writeConcern: { w: "majority" } },
    ),
  );
}

/** Returns the organization that this very call created earlier; it may be ready by now. */
async function madeBefore(db: Db, creation: string): Promise<CreatedOrganization> {
  const { organizations, users } = authCollections(db);
  const organization = await organizations.findOne({ creation }, { sort: { createdAt: -1 } });
  const organizationId = organization?._id ?? "";
  const owner = await users.findOne({ organizationId, role: "owner" }, { sort: { createdAt: 1, _id: 1 } });
  if (organization === null || owner === null) throw new Error("the created organization has disappeared");
  return idsOf(organization, owner);
}

const idsOf = (organization: OrganizationDocument, owner: UserDocument): CreatedOrganization => ({
  organizationId: organization._id,
  userId: owner._id,
  projectId: organization.defaultProjectId,
  teamId: organization.defaultTeamId,
});

function validationRefusal(error: z.ZodError): Refusal {
  const issues = error.issues.map(({ path, message }) => ({ path: path.join("."), message }));
  return refusal("VALIDATION_FAILED", undefined, { issues });
}
