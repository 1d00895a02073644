import { Command, InvalidArgumentError, Option } from "commander";
import { PlainError, shownOf } from "../../src/lib/plain-error.ts";
import type { SetPlanInput } from "./set-plan.ts";

// Each command imports its own dependencies, so that none loads those of the others.

/**
 * Default time for which work in flight may look like a difference. Exceeds the time an actor waits before it completes
 * unfinished work itself, plus the time for that work.
 */
const PATIENCE_SECONDS = 20;

const positive = (value: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(value)) throw new InvalidArgumentError("must be a positive number");
  return Number(value);
};

const percent = (value: string): number => {
  const number = positive(value);
  if (number > 100) throw new InvalidArgumentError("must be 1 to 100");
  return number;
};

/** Default time for a new build's workers to start. */
const WORKERS_SECONDS = 120;

const sayLine = (line: string): void => void process.stderr.write(`${line}\n`);
const sayEntries = (entries: number): void => void process.stderr.write(`${entries} entries …\n`);

export const program = new Command("admin").description(
  "Administers a running service. Run it on the machine of `npm start` (with the same DATA_DIR), or with MONGODB_URI, TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE set.",
);

program
  .command("prepare")
  .description(
    "Makes Temporal and MongoDB ready for a start: creates the namespace, search attributes and indexes that are missing; prints what it did as JSON.",
  )
  .action(async () => {
    const { prepare } = await import("./prepare.ts");
    process.stdout.write(`${JSON.stringify(await prepare(process.env))}\n`);
  });

program
  .command("roll-out")
  .description(
    "Makes a build of the workers the current version once they poll, or gives it a part of the workflows; prints the version as JSON.",
  )
  .requiredOption("--build-id <id>", "the WORKER_BUILD_ID of its workers")
  .option("--percentage <n>", "the part of the workflows; without it all of them", percent)
  .option("--patience <seconds>", `how long its workers may take (${String(WORKERS_SECONDS)})`, positive)
  .action(async ({ buildId, patience, percentage }: RollOutFlags) => {
    const { rollOut } = await import("./roll-out.ts");
    const rolledOut = await rollOut(process.env, {
      buildId,
      percentage: percentage ?? null,
      patienceMs: (patience ?? WORKERS_SECONDS) * 1_000,
      onProgress: sayLine,
    });
    process.stdout.write(`${JSON.stringify(rolledOut)}\n`);
  });

program
  .command("create-organization")
  .description(
    "Creates an organization with its owner and waits until it is ready; prints its ids as JSON. The owner's password (at least 12 characters, and hard to guess) is prompted for, or read from standard input.",
  )
  .requiredOption("--name <name>", "the organization's name")
  .requiredOption("--owner-email <email>", "the owner signs in with it")
  .option("--plan <plan>", "free, pro or enterprise", "free")
  .option("--rest-per-minute <n>", "an enterprise plan's own limit of REST requests", positive)
  .option("--mcp-per-minute <n>", "an enterprise plan's own limit of MCP requests", positive)
  .option("--leave-set-up-open", "only for trials: the set-up link stays valid", false)
  .action(async ({ leaveSetUpOpen, ...options }: CreateOrganizationOptions) => {
    const { createOrganization } = await import("./create-organization.ts");
    const { readSecret } = await import("./secret-input.ts");
    const ownerPassword = await readSecret("The owner's password");
    const occasion = leaveSetUpOpen ? "trial" : "command";
    const created = await createOrganization(process.env, { ...options, ownerPassword }, occasion);
    process.stdout.write(`${JSON.stringify(created)}\n`);
  });

program
  .command("set-plan")
  .description(
    "Changes an organization's plan, which sets its rate limits, within 10 seconds; prints both as JSON.",
  )
  .requiredOption("--organization <id>", "the organization's id")
  .requiredOption("--plan <plan>", "free, pro or enterprise")
  .option("--rest-per-minute <n>", "an enterprise plan's own limit of REST requests", positive)
  .option("--mcp-per-minute <n>", "an enterprise plan's own limit of MCP requests", positive)
  .action(async (options: SetPlanInput) => {
    const { setPlan } = await import("./set-plan.ts");
    process.stdout.write(`${JSON.stringify(await setPlan(process.env, options))}\n`);
  });

program
  .command("deploy-wallet-factory")
  .description(
    "Deploys the factory contract of agents' wallets on the chain of EVM_RPC_URL, once for all organizations; prints its address as JSON.",
  )
  .action(async () => {
    const { deployWalletFactory } = await import("./deploy-wallet-factory.ts");
    process.stdout.write(`${JSON.stringify(await deployWalletFactory(process.env))}\n`);
  });

program
  .command("rotate-master-key")
  .description(
    "Seals everything anew under the first key of MASTER_KEYS while the service runs, and retires older keys that nothing needs any more; prints what still needs each key as JSON. May be stopped and run again.",
  )
  .option("--check", "changes nothing", false)
  .option("--retire <id>", "retires this key even where something needs it, which is lost then")
  .option(
    "--new-session-key",
    "also replaces the key that signs sessions' tokens; restart all servers then",
    false,
  )
  .action(async ({ check, newSessionKey, retire }: RotateFlags) => {
    const { rotateMasterKey } = await import("./rotate-master-key.ts");
    const result = await rotateMasterKey(process.env, {
      isCheck: check,
      retire: retire ?? null,
      newSessionKey,
      onProgress: sayLine,
    });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  });

program
  .command("reset-second-factors")
  .description(
    "Removes all second factors of a person who has lost the last one, and ends their sessions; prints what it removed as JSON.",
  )
  .requiredOption("--email <email>", "the person's e-mail; verify who asks for it")
  .option("--organization <id>", "the organization's id, if the e-mail has accounts in several")
  .action(async ({ email, organization }: { readonly email: string; readonly organization?: string }) => {
    const { resetSecondFactors } = await import("./reset-second-factors.ts");
    const reset = await resetSecondFactors(process.env, email, organization ?? null);
    process.stdout.write(`${JSON.stringify(reset)}\n`);
  });

program
  .command("reset-password")
  .description(
    "Sets a new password for a person who can't sign in and ends their sessions; prints whose it is as JSON. The password (at least 12 characters, and hard to guess) is prompted for, or read from standard input.",
  )
  .requiredOption("--email <email>", "the person's e-mail; verify who asks for it")
  .option("--organization <id>", "the organization's id, if the e-mail has accounts in several")
  .action(async ({ email, organization }: { readonly email: string; readonly organization?: string }) => {
    const { resetPassword } = await import("./reset-password.ts");
    const { readSecret } = await import("./secret-input.ts");
    const password = await readSecret("The new password");
    process.stdout.write(
      `${JSON.stringify(await resetPassword(process.env, email, password, organization ?? null))}\n`,
    );
  });

program
  .command("reconcile")
  .description(
    "Compares actors, ledgers, records, the card processor's ledger and the chain, to the cent; exits with 1 if anything differs.",
  )
  .option("--organization <id>", "only this one")
  .option("--repair", "corrects differing records from the actors", false)
  .option("--json", "prints one JSON object", false)
  .option(
    "--patience <seconds>",
    `how long work in progress may look like a difference (${String(PATIENCE_SECONDS)})`,
    positive,
  )
  .action(async ({ json, organization, patience, repair }: ReconcileFlags) => {
    const { reconcile } = await import("./reconcile/reconcile.ts");
    const { reconciledJson, reconciledText } = await import("./reconcile/text.ts");
    const result = await reconcile(process.env, {
      organizationId: organization ?? null,
      repair,
      patienceMs: (patience ?? PATIENCE_SECONDS) * 1_000,
      onProgress: sayLine,
    });
    process.stdout.write(`${json ? reconciledJson(result) : reconciledText(result)}\n`);
    if (result.left.length > 0) process.exitCode = 1;
  });

program
  .command("restore-ledger")
  .description(
    "Restarts the lost ledger of a project from the records and compares everything afterwards; exits with 1 if anything differs. Without --yes it only prints what it would start.",
  )
  .addOption(new Option("--project <id>", "the project whose ledger is lost").conflicts("all"))
  .option("--all", "every ledger that is lost or behind its records; compares nothing", false)
  .option("--yes", "starts the ledger", false)
  .option("--json", "prints one JSON object", false)
  .action(async ({ all, json, project, yes }: RestoreFlags) => {
    const { restoreLedger, restoreLedgers } = await import("./restore-ledger/restore-ledger.ts");
    const { restoredAllText, restoredJson, restoredText } = await import("./restore-ledger/text.ts");
    if (all) {
      const result = await restoreLedgers(process.env, { isConfirmed: yes, onProgress: sayLine });
      process.stdout.write(`${json ? JSON.stringify(result) : restoredAllText(result)}\n`);
      if (result.refused.length > 0) process.exitCode = 1;
      return;
    }
    if (project === undefined) throw new PlainError("Name a project with --project, or give --all.");
    const result = await restoreLedger(process.env, {
      projectId: project,
      isConfirmed: yes,
      patienceMs: PATIENCE_SECONDS * 1_000,
      onProgress: sayLine,
    });
    process.stdout.write(`${json ? restoredJson(result) : restoredText(result)}\n`);
    if ((result.differences?.length ?? 0) > 0) process.exitCode = 1;
  });

program
  .command("accept-records")
  .description(
    "Resumes the ledger of a project whose records were restored from a backup that is older than it. Without --yes it only says what the records lack.",
  )
  .requiredOption("--project <id>", "the project whose records are behind")
  .option("--yes", "lets it go on", false)
  .option("--json", "one object on standard output", false)
  .action(async ({ json, project, yes }: AcceptFlags) => {
    const { acceptedText, acceptRecords } = await import("./restore-ledger/accept-records.ts");
    const result = await acceptRecords(process.env, { projectId: project, isConfirmed: yes });
    process.stdout.write(`${json ? JSON.stringify(result) : acceptedText(result)}\n`);
  });

program
  .command("verify-audit-log")
  .description(
    "Verifies the audit log against its hashes, its key and its anchors; names the first broken entry of each chain and exits with 1 if there is one.",
  )
  .option("--organization <id>", "only this organization's chain")
  .option("--without-anchors", "skips the anchors: a missing end of a chain is then not detected", false)
  .option("--json", "prints the result as JSON", false)
  .action(async ({ json, organization, withoutAnchors }: VerifyFlags) => {
    const { explained, verifyAuditLog } = await import("./verify-audit-log.ts");
    const options = { organization, withoutAnchors, onProgress: sayEntries };
    const verdict = await verifyAuditLog(process.env, options);
    const lines = json ? [JSON.stringify(verdict)] : explained(verdict);
    process.stdout.write(`${lines.join("\n")}\n`);
    process.exitCode = verdict.unbroken ? 0 : 1;
  });

interface RotateFlags {
  readonly check: boolean;
  readonly newSessionKey: boolean;
  readonly retire?: string;
}

interface VerifyFlags {
  readonly organization?: string;
  readonly withoutAnchors: boolean;
  readonly json: boolean;
}

interface AcceptFlags {
  readonly project: string;
  readonly yes: boolean;
  readonly json: boolean;
}

interface RestoreFlags extends Omit<AcceptFlags, "project"> {
  readonly project?: string;
  readonly all: boolean;
}

interface ReconcileFlags {
  readonly organization?: string;
  readonly repair: boolean;
  readonly json: boolean;
  readonly patience?: number;
}

interface RollOutFlags {
  readonly buildId: string;
  readonly percentage?: number;
  readonly patience?: number;
}

interface CreateOrganizationOptions {
  readonly name: string;
  readonly ownerEmail: string;
  readonly plan: string;
  readonly leaveSetUpOpen: boolean;
  readonly restPerMinute?: number;
  readonly mcpPerMinute?: number;
}

/**
 * Runs the admin command named by the arguments, then exits the process: with 0, or with 1 and a line on standard
 * error.
 */
export async function runAdminCommand(args: readonly string[]): Promise<never> {
  try {
    await program.parseAsync(args, { from: "user" });
    process.exit();
  } catch (error) {
    process.stderr.write(`error: ${shownOf(error)}\n`);
    process.exit(1);
  }
}
