import { randomBytes } from "node:crypto";
import type { Db } from "mongodb";
import { z } from "zod";
import { refusal, type Refusal } from "../../src/domain/errors.ts";
import { ok, refused, type Result } from "../../src/domain/result.ts";
import { isDuplicateKey } from "../secrets/settings.ts";
import {
  authCollections,
  ensureAuthIndexes,
  PLANS,
  type OrganizationDocument,
  type UserDocument,
} from "./documents.ts";
import { normalizeEmail } from "./email.ts";
import { newUuid } from "./ids.ts";
import { hashPassword, passwordIssue, PasswordVerifier } from "./passwords.ts";

/** As the admin command has it from its arguments, not yet looked at. */
export interface CreateOrganizationInput {
  readonly name: string;
  readonly ownerEmail: string;
  readonly ownerPassword: string;
  /** By default the part of the e-mail before the @. */
  readonly ownerName?: string | undefined;
  readonly plan: string;
  readonly restPerMinute?: number | undefined;
  readonly mcpPerMinute?: number | undefined;
}

export interface CreatedOrganization {
  readonly organizationId: string;
  readonly userId: string;
  /** Of the default project and team, which the provisioning workflow is to make under these ids. */
  readonly projectId: string;
  readonly teamId: string;
}

const MAX_PER_MINUTE = 1_000_000;

const nameSchema = z
  .string()
  .trim()
  .min(1)
  .max(100)
  .regex(/^[^\p{Cc}]*$/u, "Must not hold control characters.");
const limitSchema = z.int().min(1).max(MAX_PER_MINUTE).optional();

const inputSchema = z
  .object({
    name: nameSchema,
    ownerEmail: z.string().trim().max(254).pipe(z.email()),
    ownerPassword: z.string().superRefine((password, check) => {
      const message = passwordIssue(password);
      if (message !== null) check.addIssue({ code: "custom", message });
    }),
    ownerName: nameSchema.optional(),
    plan: z.enum(PLANS),
    restPerMinute: limitSchema,
    mcpPerMinute: limitSchema,
  })
  .superRefine(({ plan, restPerMinute, mcpPerMinute }, check) => {
    const message = "Custom limits belong to the enterprise plan.";
    if (plan === "enterprise") return;
    if (restPerMinute !== undefined) check.addIssue({ code: "custom", path: ["restPerMinute"], message });
    if (mcpPerMinute !== undefined) check.addIssue({ code: "custom", path: ["mcpPerMinute"], message });
  });

type ParsedInput = z.output<typeof inputSchema>;

/**
 * Writes an organization, `provisioning` until its workflow is done, and its owner (decisions.md section 2): both or,
 * after a crash, neither. The same call again while it is still provisioning answers the same ids, so that a command
 * that died before it started the workflow can be repeated; any other use of the e-mail is refused.
 */
export async function createOrganizationWithOwner(
  db: Db,
  input: CreateOrganizationInput,
  clock: () => Date = () => new Date(),
): Promise<Result<CreatedOrganization>> {
  const parsed = inputSchema.safeParse(input);
  if (!parsed.success) return refused(validationRefusal(parsed.error));
  // The e-mail is unique by an index alone, and this may be the first thing that is ever written here.
  await ensureAuthIndexes(db);
  const { organization, owner } = await newRecords(parsed.data, clock());
  try {
    await insertBoth(db, organization, owner);
    return ok(idsOf(organization, owner));
  } catch (error) {
    if (!isDuplicateKey(error)) throw error;
  }
  const earlier = await findUnfinished(db, parsed.data);
  if (earlier !== null) return ok(earlier);
  const issue = { path: "ownerEmail", message: "A user with this e-mail exists already." };
  return refused(refusal("VALIDATION_FAILED", issue.message, { issues: [issue] }));
}

async function newRecords(
  input: ParsedInput,
  now: Date,
): Promise<{ readonly organization: OrganizationDocument; readonly owner: UserDocument }> {
  const organization: OrganizationDocument = {
    _id: newUuid(now, randomBytes),
    name: input.name,
    plan: input.plan,
    restPerMinute: input.restPerMinute ?? null,
    mcpPerMinute: input.mcpPerMinute ?? null,
    status: "provisioning",
    defaultProjectId: newUuid(now, randomBytes),
    defaultTeamId: newUuid(now, randomBytes),
    createdAt: now,
    readyAt: null,
  };
  const owner: UserDocument = {
    _id: newUuid(now, randomBytes),
    organizationId: organization._id,
    name: input.ownerName ?? input.ownerEmail.replace(/@.*$/, ""),
    email: input.ownerEmail,
    emailNormalized: normalizeEmail(input.ownerEmail),
    role: "owner",
    passwordHash: await hashPassword(input.ownerPassword),
    createdAt: now,
  };
  return { organization, owner };
}

async function insertBoth(db: Db, organization: OrganizationDocument, owner: UserDocument): Promise<void> {
  const { organizations, users } = authCollections(db);
  await db.client.withSession((session) =>
    session.withTransaction(
      async () => {
        await users.insertOne(owner, { session });
        await organizations.insertOne(organization, { session });
      },
      { writeConcern: { w: "majority" } },
    ),
  );
}

/** The organization that this very call made before, if its provisioning has not ended. */
async function findUnfinished(db: Db, input: ParsedInput): Promise<CreatedOrganization | null> {
  const { organizations, users } = authCollections(db);
  const owner = await users.findOne({ emailNormalized: normalizeEmail(input.ownerEmail), role: "owner" });
  if (owner === null) return null;
  const organization = await organizations.findOne({
    _id: owner.organizationId,
    status: "provisioning",
    name: input.name,
    plan: input.plan,
    restPerMinute: input.restPerMinute ?? null,
    mcpPerMinute: input.mcpPerMinute ?? null,
  });
  if (organization === null) return null;
  const passwords = await PasswordVerifier.create();
  const isSame = await passwords.matches(owner.passwordHash, input.ownerPassword);
  return isSame ? idsOf(organization, owner) : null;
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
