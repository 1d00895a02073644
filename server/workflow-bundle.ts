import { join } from "node:path";
import type { WorkflowBundlePath } from "@temporalio/worker";
import { PACKAGE_ROOT } from "../src/lib/package-root.ts";

/** All workflows as the one file that workers run; the build makes it. */
export const WORKFLOW_BUNDLE: WorkflowBundlePath = {
  codePath: join(PACKAGE_ROOT, "dist", "workflow-bundle.js"),
};
