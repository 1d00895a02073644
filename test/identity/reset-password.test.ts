import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { AUDIT_LOG } from "../../src/store/audit-documents.ts";
import { program } from "../../server/admin/commands.ts";
import { resetPassword } from "../../server/admin/reset-password.ts";
import { builtFile, PACKAGE_ROOT } from "../../src/lib/package-root.ts";
import { entriesOf } from "../audit/support.ts";
import { newPassword } from "../support/people.ts";
import {
  EMAIL,
  type Fixture,
  fixture,
  masterKeyTextOf,
  outcomeOf,
  PASSWORD,
  valueOf,
  withTotp,
} from "./support.ts";

describe("npm run admin -- reset-password", () => {
  let the: Fixture;
  beforeEach(async () => {
    the = await fixture();
  });
  afterEach(() => the.database.close());

  const env = (): NodeJS.ProcessEnv => {
    const uri = new URL(String(process.env["TEST_MONGODB_URI"]));
    uri.pathname = `/${the.database.db.databaseName}`;
    return { MONGODB_URI: uri.href, MASTER_KEY: masterKeyTextOf("k") };
  };
  const reset = (password: string, email = EMAIL) => resetPassword(env(), email, password);
  const signIn = (password: string) => the.auth.signIn({ email: EMAIL, password });

  it("the last owner gets in by the new password alone, all sessions end, factors stay", async () => {
    await withTotp(the);
    const { token } = await withoutFactorsAsked();
    const password = newPassword();
    const done = await reset(password, " ada@EXAMPLE.test ");
    expect(done).to.deep.equal({
      userId: the.userId,
      organizationId: the.organizationId,
      email: EMAIL,
      sessionsEnded: 2,
    });
    expect(outcomeOf(await the.auth.authenticateSession(token))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await signIn(PASSWORD))).to.equal("UNAUTHORIZED");
    expect(outcomeOf(await signIn(password)), "right, and TOTP is there").to.equal("SECOND_FACTOR_REQUIRED");
  });

  /** One more session, of a time when there was no factor. */
  async function withoutFactorsAsked() {
    const user = await the.collections.users.findOne({ _id: the.userId });
    await the.prove("user", { _id: the.userId }, { secondFactors: [] });
    const session = await the.signIn();
    await the.prove("user", { _id: the.userId }, { secondFactors: user?.secondFactors });
    return session;
  }

  it("leaves an operator's entry that says whose, and not what", async () => {
    const password = newPassword();
    await reset(password);
    const entries = await entriesOf(the.database.db, the.organizationId);
    expect(entries).to.have.lengthOf(1);
    expect(entries[0]).to.deep.include({
      action: "resetPassword",
      actor: { type: "system", id: "command" },
      resource: { type: "user", id: the.userId },
      from: { address: null, surface: "admin", via: "reset-password" },
      before: null,
      after: null,
    });
    expect(JSON.stringify(entries)).not.to.include(password);
  });

  it("a weak password, an unknown e-mail and an unwritable entry change nothing", async () => {
    const { token } = await the.signIn();
    expect(await messageOf(reset("password1234"))).to.include("too easy to guess");
    expect(await messageOf(reset("short"))).to.include("at least 12");
    expect(await messageOf(reset(newPassword(), "nobody@example.test"))).to.include("Nobody has");
    expect(await entriesOf(the.database.db, the.organizationId)).to.deep.equal([]);
    await the.database.db.createCollection(AUDIT_LOG, { validator: { action: "nothing" } });
    expect(await messageOf(reset(newPassword()))).not.to.equal("it was done");
    valueOf(await the.auth.authenticateSession(token));
    valueOf(await signIn(PASSWORD));
  });

  it("the command reads the password from standard input, and takes none as an argument", async () => {
    const password = newPassword();
    const refused = await admin(["reset-password", "--email", EMAIL, "--password", password], "");
    expect([refused.code, refused.errors]).to.deep.equal([1, "error: unknown option '--password'\n"]);
    const done = await admin(["reset-password", "--email", EMAIL], `${password}\n`);
    expect([done.code, done.errors], "nothing is said beside the result").to.deep.equal([0, ""]);
    expect(JSON.parse(done.output)).to.include({ userId: the.userId });
    valueOf(await signIn(password));
  });

  it("no command takes a secret as an argument, which everybody on the machine can read", () => {
    const options = program.commands.flatMap((command) =>
      command.options.flatMap(({ long, optional, required }) => (required || optional ? `${long}` : [])),
    );
    expect(options).to.include("--owner-email");
    expect(options.filter((option) => /password|secret|key|token/.test(option))).to.deep.equal([]);
  });

  async function admin(args: readonly string[], input: string) {
    const child = spawn(process.execPath, [builtFile("server/main.ts"), "admin", ...args], {
      cwd: PACKAGE_ROOT,
      env: { ...process.env, ...env() },
    });
    child.stdin.end(input);
    const [output, errors, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, "close"),
    ]);
    return { output, errors, code };
  }
});

const messageOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "it was done",
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
