import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { SERVICE_CHAIN } from "../../src/store/audit-documents.ts";
import { entriesOf } from "../audit/support.ts";
import { adoptKeyDeliveryFolder } from "../../server/admin/adopt-key-delivery-folder.ts";
import { ConfigError } from "../../src/lib/config-error.ts";
import { openDeliveryKeys } from "../../src/agents/key-deliveries/folder.ts";
import { sharedService } from "../support/service.ts";
import { testDatabase, type TestDatabase } from "../support/mongo.ts";

const now = new Date();

const refusalOf = (opening: Promise<unknown>): Promise<unknown> => opening.catch((error: unknown) => error);

/** Servers and workers of one database use one folder for key deliveries, and a lost one is no end of the service. */
describe("the folder for key deliveries", () => {
  let database: TestDatabase;
  let scratch = "";
  const folder = (name: string): string => join(scratch, name);

  beforeEach(async () => {
    database = await testDatabase();
    scratch = await mkdtemp(join(tmpdir(), "key-delivery-"));
  });
  afterEach(async () => {
    await rm(scratch, { recursive: true });
    await database.close();
  });

  it("is the first one's: a process that is given another does not start", async () => {
    const { db } = database;
    await openDeliveryKeys(db, folder("first"), now, { isAlone: false });
    await openDeliveryKeys(db, folder("first"), now, { isAlone: false });
    const refused = await refusalOf(openDeliveryKeys(db, folder("other"), now, { isAlone: false }));
    expect(refused).to.be.instanceOf(ConfigError);
    expect(String(refused)).to.include("adopt-key-delivery-folder");
  });

  it("is any that is given where the database is the service's own, even after a loss", async () => {
    const { db } = database;
    await openDeliveryKeys(db, folder("lost"), now, { isAlone: true });
    const { folderId } = await openDeliveryKeys(db, folder("new"), now, { isAlone: true });
    const again = await openDeliveryKeys(db, folder("new"), now, { isAlone: false });
    expect(again.folderId).to.equal(folderId);
  });

  it("is another one after `adopt-key-delivery-folder`", async () => {
    const { connections, env } = await sharedService();
    const { db } = connections;
    const before = env["KEY_DELIVERY_DIR"] ?? "";
    const adopt = (path: string) => adoptKeyDeliveryFolder({ ...env, KEY_DELIVERY_DIR: path });
    const withoutKey = {
      ...env,
      KEY_DELIVERY_DIR: folder("adopted"),
      MASTER_KEY: "",
      DATA_DIR: folder("none"),
    };
    expect(String(await refusalOf(adoptKeyDeliveryFolder(withoutKey)))).to.include("set MASTER_KEY");
    await openDeliveryKeys(db, before, now, { isAlone: false });
    expect(await adopt(folder("adopted"))).to.deep.equal({ folder: folder("adopted") });
    await openDeliveryKeys(db, folder("adopted"), now, { isAlone: false });
    expect(await refusalOf(openDeliveryKeys(db, before, now, { isAlone: false }))).to.be.instanceOf(
      ConfigError,
    );
    await adopt(before);
    const kept = await entriesOf(db, SERVICE_CHAIN);
    expect(kept.slice(-2).map(({ action, after }) => [action, after])).to.deep.equal([
      ["adoptKeyDeliveryFolder", { folder: folder("adopted") }],
      ["adoptKeyDeliveryFolder", { folder: before }],
    ]);
  });
});
