import { join } from "node:path";
import type { WorkflowBundlePath } from "@temporalio/worker";
import { PACKAGE_ROOT } from "../src/lib/package-root.ts";

/** All workflows in the single file that workers run, made by the build. */
export const WORKFLOW_BUNDLE: WorkflowBundlePath = {
  codePath: join(PACKAGE_ROOT, "dist", "workflow-bundle.js"),
};
