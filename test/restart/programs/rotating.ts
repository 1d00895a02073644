import { Collection } from "mongodb";
import { ROTATION_HOLD, rotationHold } from "../support/rotation-points.ts";

/** The program, whose rotation of the master key is held before or after one of its writes, and goes on no more. */

const { side, write } = rotationHold(process.env[ROTATION_HOLD]);
const plain = Reflect.get(Collection.prototype, "bulkWrite") as (
  ...args: readonly unknown[]
) => Promise<unknown>;
let writes = 0;

Reflect.set(
  Collection.prototype,
  "bulkWrite",
  async function (this: Collection, ...args: readonly unknown[]) {
    writes += 1;
    if (writes !== write) return Reflect.apply(plain, this, args);
    if (side === "after") await Reflect.apply(plain, this, args);
    process.stdout.write(`held ${side} write ${String(write)}: ${this.collectionName}\n`);
    return new Promise(() => undefined);
  },
);

await import("../../../server/program.ts");
