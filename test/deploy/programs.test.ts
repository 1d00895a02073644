import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect } from "chai";
import { parseAllDocuments } from "yaml";
import { findOnPath } from "../../src/engines/tools.ts";

const run = promisify(execFile);
const at = (path: string): string => resolve("deploy", path);

/** A test that is pending, and says why, where the program is not installed. */
const itBy = (program: string, title: string, test: (path: string) => Promise<void>) =>
  it(title, async function () {
    const path = await findOnPath(program, process.env);
    if (path !== null) return test(path);
    process.stderr.write(`skipped: ${title}: no ${program} on PATH\n`);
    this.skip();
  });

describe("the files of deploy/, read by the programs that they are for", () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "spending-control-deploy-"));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  /** Output of a program that must end with 0. Its own files go into the test's folder. */
  async function output(program: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const homes = { HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
    const { stderr, stdout } = await run(program, args, { env: { ...process.env, ...homes, ...env } });
    return { stdout, stderr };
  }

  itBy("promtool", "Prometheus takes the alert rules, and each fires as its case says", async (promtool) => {
    const { stdout } = await output(promtool, ["check", "rules", at("helm/files/alerts.yaml")]);
    expect(stdout).to.match(/SUCCESS: 16 rules found/);
    await output(promtool, ["test", "rules", at("helm/files/alerts.test.yaml")]);
  });

  itBy("caddy", "Caddy takes the proxy's configuration", async (caddy) => {
    const config = ["--adapter", "caddyfile", "--config", at("compose/Caddyfile")];
    await output(caddy, ["validate", ...config], { HOST_NAME: "localhost" });
  });

  itBy("systemd-analyze", "systemd has nothing to say about the unit of either role", async (analyze) => {
    for (const role of ["server", "worker"]) {
      const unit = join(folder, `agent-spending-control@${role}.service`);
      await cp(at("systemd/agent-spending-control@.service"), unit);
      const { stderr, stdout } = await output(analyze, ["verify", unit]);
      expect(stderr + stdout).to.equal("");
    }
  });

  itBy("helm", "helm renders the chart, with all that is off by default too", async (helm) => {
    const required = ["BASE_URL=https://a.example", "TEMPORAL_ADDRESS=t:7233", "TEMPORAL_NAMESPACE=n"];
    const all = [
      ...["podMonitor", "rules", "dashboard"].map((name) => `monitoring.${name}=true`),
      ...["enabled=true", "host=a.example", "tlsSecret=s"].map((setting) => `ingress.${setting}`),
      "worker.builds={1.0.0,1.1.0}",
      "filesSecret=files",
    ];
    const kindsOf = async (settings: readonly string[]): Promise<string[]> => {
      const args = settings.flatMap((setting) => ["--set", setting]);
      const { stdout } = await output(helm, ["template", "spending", at("helm"), ...args]);
      return parseAllDocuments(stdout).map((document) => {
        expect(document.errors).to.deep.equal([]);
        return String(document.get("kind"));
      });
    };
    const env = required.map((setting) => `env.${setting}`);
    expect(await kindsOf(env)).to.include.members(["Deployment", "Job", "NetworkPolicy", "Service"]);
    const more = ["ConfigMap", "Ingress", "PodMonitor", "PrometheusRule"];
    expect(await kindsOf([...env, ...all])).to.include.members(more);
  });
});
