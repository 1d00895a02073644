import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { generate } from "otplib";
import { expect } from "chai";
import { z } from "zod";
import { creationOptions, requestOptions } from "../../src/contract/webauthn.ts";
import { builtFile } from "../../src/lib/package-root.ts";
import { PlainError } from "../../src/lib/plain-error.ts";
import { createLogger, endLog } from "../../src/lib/logger.ts";
import { sharedService } from "../support/service.ts";
import { startServiceOn } from "../support/own-service.ts";
import { authenticatorFor } from "../support/passkeys.ts";
import { cardPayment, newWorld, times, until, worldOf } from "../support/world.ts";

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

describe("the log", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-log-"));
  });
  after(() => rm(folder, { recursive: true }));

  it("its file and the folders made for it are its owner's alone from the first moment", async () => {
    const file = join(folder, "data", "logs", "service.log");
    const logger = createLogger({ level: "info", file });
    logger.info("first");
    await endLog(logger);
    expect(await readFile(file, "utf8")).to.match(/"msg":"first"\}\n$/);
    expect([
      await modeOf(file),
      await modeOf(dirname(file)),
      await modeOf(join(folder, "data")),
    ]).to.deep.equal(["600", "700", "700"]);
  });

  it("its end is bounded, and the process exits with 0: a full disk, no file, a second end", async () => {
    const script = `
      import { createLogger, endLog } from ${JSON.stringify(pathToFileURL(builtFile("src/lib/logger.ts")).href)};
      const logger = createLogger({ level: "info", file: process.argv[1] });
      logger.info("a line that may be lost");
      await endLog(logger);
      await endLog(logger);
      if (process.argv[2] === "at once") process.exit(0);
    `;
    for (const file of ["/dev/full", folder, join(folder, "ended.log")]) {
      for (const exit of ["at once", "by itself"]) {
        const args = ["--input-type=module", "-e", script, file, exit];
        // Rejects for another status, and for one that has to be killed.
        await promisify(execFile)(process.execPath, args, { timeout: 30_000, killSignal: "SIGKILL" });
      }
    }
    expect(await readFile(join(folder, "ended.log"), "utf8")).to.include("a line that may be lost");
  });

  it("is renamed when it has grown; four older files stay, and no line is cut or lost", async () => {
    const file = join(folder, "rotated", "service.log");
    const fileMaxBytes = 4_000;
    const olderToNewer = [".4", ".3", ".2", ".1", ""].map((end) => `${file}${end}`);
    const texts = () => Promise.all(olderToNewer.map((each) => readFile(each, "utf8").catch(() => "")));
    const written = async () => (await texts()).join("");
    let line = 0;
    for (const _start of times(3, () => null)) {
      const logger = createLogger({ level: "info", file, fileMaxBytes });
      for (const _burst of times(25, () => null)) {
        for (const _line of times(5, () => null)) logger.info({ line: (line += 1) }, "a line");
        await until("it is written", async () =>
          (await written()).includes(`"line":${line},`) ? true : null,
        );
      }
      await endLog(logger);
    }
    const older = (await texts()).slice(0, -1);
    for (const text of older) expect(text.length).to.be.within(fileMaxBytes, fileMaxBytes + 1_000);
    expect((await readdir(dirname(file))).length).to.be.at.most(olderToNewer.length);
    const lines = (await written()).trimEnd().split("\n");
    const numbers = lines.map((each) => z.object({ line: z.number() }).parse(JSON.parse(each)).line);
    expect(numbers).to.deep.equal(numbers.map((_each, index) => line - numbers.length + 1 + index));
    expect(await Promise.all([`${file}.1`, `${file}.2`].map(modeOf))).to.deep.equal(["600", "600"]);
  });

  it("says in words that its folder can't be made", async () => {
    const occupied = join(folder, "occupied");
    await writeFile(occupied, "");
    const file = join(occupied, "logs", "service.log");
    expect(() => createLogger({ level: "info", file })).to.throw(PlainError, /^The log's folder .*DATA_DIR/);
  });

  it("a defect is one line with its cause, unknown to the caller, and no line has a secret", async () => {
    const shared = await newWorld(await sharedService());
    const { env } = shared.service;
    const file = join(folder, "service.log");
    const service = await startServiceOn({
      env,
      logger: createLogger({ level: "trace", file }),
      worker: false,
    });
    const secrets: string[] = [];
    let requestId = "";
    try {
      const { email, password } = shared.organization;
      const api = worldOf(service, shared.organization).api;
      const session = await api.ok("signIn", 200, { body: { email, password } });
      const { refreshToken = "", token = "" } = session;
      const wrong = { email, password: `${password} is wrong` };
      await api.refused("signIn", 401, "UNAUTHORIZED", { body: wrong });
      const authenticator = authenticatorFor({ service });
      const creation = creationOptions.parse(await api.ok("passkeyOptions", 200, { token }));
      const made = authenticator.create(creation);
      await api.ok("enrollPasskey", 201, { token, body: { name: "Laptop", response: made } });
      const request = requestOptions.parse(await api.ok("stepUpOptions", 200, { token }));
      const signed = authenticator.get(request);
      await api.ok("stepUp", 200, { token, body: { method: "passkey", response: signed } });
      const replayed = { body: { response: signed } };
      await api.refused("signInWithPasskey", 401, "SECOND_FACTOR_INVALID", replayed);
      secrets.push(creation.challenge, request.challenge, signed.response.signature);
      secrets.push(made.response.attestationObject, signed.response.clientDataJSON);
      const { secret } = await api.ok("enrollTotp", 201, { token });
      const code = await generate({ secret });
      await api.ok("confirmTotp", 200, { token, body: { code } });
      const body = { name: "Secretive", teamId: shared.organization.teamId, budgetCents: 1_000 };
      const { agent, apiKey } = await api.ok("createAgent", 201, { token, body });
      const key = apiKey ?? "";
      secrets.push(password, wrong.password, token, refreshToken, secret, key);
      const { transaction } = await api.ok("createPayment", 201, { token: key, body: cardPayment() });
      await api.refused("createPayment", 400, "VALIDATION_FAILED", {
        token: key,
        body: { idempotencyKey: key },
      });
      // A record that cannot be: what reads it runs into a defect.
      const transactions = service.db.collection<{ _id: string }>("transactions");
      await transactions.updateOne({ _id: transaction.id }, { $set: { createdAt: "yesterday" } });
      const failing = { token: key, id: transaction.id };
      ({ requestId } = await api.refused("getPayment", 500, "INTERNAL", failing));
      await transactions.deleteOne({ _id: transaction.id });
      expect(agent.name).to.equal("Secretive");
    } finally {
      await service.stop();
    }
    const log = await until("the defect is logged", async () => {
      const text = await readFile(file, "utf8");
      return text.includes("an operation failed unexpectedly") ? text : null;
    });
    const lines = log.trim().split("\n");
    for (const line of lines) expect(() => void JSON.parse(line)).not.to.throw();
    const [defect = "", ...more] = lines.filter((line) => line.includes("an operation failed unexpectedly"));
    expect(more).to.deep.equal([]);
    expect(JSON.parse(defect)).to.include({ operation: "getPayment", requestId });
    for (const secret of secrets) expect(log).not.to.include(secret);
  });

  it("credentials in what is logged are replaced", async () => {
    const file = join(folder, "redaction.log");
    const logger = createLogger({ level: "info", file });
    const fields = {
      authorization: "s3",
      password: "s3",
      token: "s3",
      refreshToken: "s3",
      apiKey: "s3",
      secret: "s3",
    };
    logger.info({ request: fields }, "within");
    const text = await until("the line is written", async () => {
      const written = await readFile(file, "utf8").catch(() => "");
      return written.includes("within") ? written : null;
    });
    expect(text).not.to.include("s3");
  });
});
