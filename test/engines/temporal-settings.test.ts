import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { DEFAULT_TASK_QUEUE } from "../../src/messages/common.ts";
import { newAuthority } from "../support/certificates/authority.ts";
import { readAddresses, readTaskQueue } from "../../server/config.ts";
import { isTemporalNamed, readTemporal, withProfile } from "../../server/temporal-settings.ts";

const refusal = (env: NodeJS.ProcessEnv): string => {
  try {
    readTemporal({ HOME: "/nowhere", ...env });
    return "taken";
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
};

const pair = (certFile: string, keyFile: string) => ({
  TEMPORAL_TLS_CLIENT_CERT_PATH: certFile,
  TEMPORAL_TLS_CLIENT_KEY_PATH: keyFile,
});

describe("settings of a Temporal of the operator's own", () => {
  let folder: string;
  const authority = newAuthority();
  const write = async (name: string, text: string): Promise<string> => {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  };

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-settings-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it("a profile of Temporal's configuration file names all of it, and variables override it", async () => {
    const file = await write(
      "temporal.toml",
      '[profile.cloud]\naddress = "cloud.test:7233"\nnamespace = "money"\napi_key = "from-the-file"\n',
    );
    const env = {
      TEMPORAL_CONFIG_FILE: file,
      TEMPORAL_PROFILE: "cloud",
      TEMPORAL_NAMESPACE: "",
      MONGODB_URI: "m",
    };
    const read = readAddresses(env);
    expect(read).to.include({ temporalAddress: "cloud.test:7233", temporalNamespace: "money" });
    expect(read.readTemporalSecurity?.()).to.deep.equal({
      options: { tls: true, apiKey: "from-the-file", metadata: {} },
      settings: ["TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE"],
    });
    expect(readAddresses({ ...env, TEMPORAL_NAMESPACE: "other" }).temporalNamespace).to.equal("other");
    expect(withProfile(env)).to.include({ TEMPORAL_ADDRESS: "cloud.test:7233", TEMPORAL_NAMESPACE: "money" });
    expect(isTemporalNamed({ TEMPORAL_ADDRESS: "", TEMPORAL_PROFILE: "" })).to.equal(false);
    expect(readTaskQueue({ TEMPORAL_TASK_QUEUE: "" })).to.equal(DEFAULT_TASK_QUEUE);
  });

  it("what can't work is refused in one line that names the setting", async () => {
    const [one, other, old] = [
      authority.issue(["client"]),
      authority.issue(["client"]),
      authority.issue(["client"], "expired"),
    ];
    const [cert, key, otherKey, oldCert, oldKey, text, profiles] = await Promise.all([
      write("one.pem", one.cert),
      write("one.key", one.key),
      write("other.key", other.key),
      write("old.pem", old.cert),
      write("old.key", old.key),
      write("text.pem", "no certificate"),
      write("profiles.toml", '[profile.default]\naddres = "misspelt"\n'),
    ]);
    const CASES: readonly (readonly [NodeJS.ProcessEnv, RegExp])[] = [
      [pair(cert, key), /^taken$/],
      [pair(cert, otherKey), /CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH: not a certificate and its key/],
      [pair(cert, ""), /CLIENT_KEY_PATH: one is set without the other/],
      [pair(oldCert, oldKey), /CLIENT_CERT_PATH: the certificate expired/],
      [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: text }, /SERVER_CA_CERT_PATH: not a certificate/],
      [{ TEMPORAL_TLS_SERVER_CA_CERT_PATH: "/nowhere.pem" }, /SERVER_CA_CERT_PATH: ENOENT.*nowhere\.pem/],
      [{ TEMPORAL_TLS_SERVER_NAME: "t.test:7233" }, /TEMPORAL_TLS_SERVER_NAME: .*without a port/],
      [{ TEMPORAL_TLS: "yes" }, /TEMPORAL_TLS: must be true or false/],
      [{ TEMPORAL_TLS_DISABLE_HOST_VERIFICATION: "true" }, /DISABLE_HOST_VERIFICATION: .*always verified/],
      [{ TEMPORAL_API_KEY: "two words" }, /TEMPORAL_API_KEY: /],
      [{ TEMPORAL_CONFIG_FILE: "/nowhere.toml" }, /TEMPORAL_CONFIG_FILE: ENOENT/],
      [{ TEMPORAL_CONFIG_FILE: profiles }, /TEMPORAL_CONFIG_FILE: .*addres/],
      [{ TEMPORAL_PROFILE: "absent" }, /TEMPORAL_PROFILE: .*absent/],
    ];
    for (const [env, said] of CASES) {
      expect(refusal(env)).to.match(said);
      expect(refusal(env))
        .to.match(/^(taken|ConfigError: [^\n]+)$/)
        .and.not.include("two words");
    }
  });
});
