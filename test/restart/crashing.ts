import { startBundled } from "../../src/lib/bundle.ts";

/** As `server/main.ts` starts the program. */
if (!startBundled("test/restart/programs/crashing")) await import("./programs/crashing.ts");
