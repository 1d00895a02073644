import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ServiceProcess, type ServiceProcessOptions } from "../../support/process.ts";
import { LIFE_POINTS_FOLDER } from "./life-points.ts";
import { POINTS_FOLDER } from "./points.ts";
import { PURCHASE_POINTS_FOLDER } from "./purchase-points.ts";
import type { Place } from "./tenant.ts";

export type CrashingOptions = Omit<ServiceProcessOptions, "entry">;

export const pointsOf = ({ dataDir }: ServiceProcess): string => join(dataDir, "points");
export const lifePointsOf = ({ dataDir }: ServiceProcess): string => join(dataDir, "life-points");

export const purchasePointsOf = ({ dataDir }: ServiceProcess): string => join(dataDir, "purchase-points");

export const placeOf = ({ env, runtime }: ServiceProcess): Place => ({
  baseUrl: runtime.baseUrl,
  mongodbUri: runtime.mongodb.uri,
  env,
});

const start = (service: ServiceProcess, env: NodeJS.ProcessEnv) =>
  service.start({
    [POINTS_FOLDER]: pointsOf(service),
    [LIFE_POINTS_FOLDER]: lifePointsOf(service),
    [PURCHASE_POINTS_FOLDER]: purchasePointsOf(service),
    ...env,
  });

/** A service that runs and can be held at points. */
export async function startCrashing(options: CrashingOptions = {}): Promise<ServiceProcess> {
  const service = await ServiceProcess.create({ entry: "test/restart/crashing.ts", ...options });
  try {
    await start(service, {});
    return service;
  } catch (error) {
    await service.dispose();
    throw error;
  }
}

/** Starts it again on the same folder, with nothing left to be held. */
export async function restartCrashing(service: ServiceProcess, env: NodeJS.ProcessEnv = {}): Promise<void> {
  for (const folder of [pointsOf(service), lifePointsOf(service), purchasePointsOf(service)])
    await rm(folder, { recursive: true, force: true });
  await start(service, env);
}
