import type { Settings } from "./shapes.ts";

export const DEFAULT_SETTINGS: Settings = {
  id: "settings",
  object: "simulator.settings",
  created: 0,
  authorizationUrl: null,
  authorizationSecret: "whsec_simulator_authorizations",
  answerTimeoutMs: 2_000,
  standsIn: "decline",
  amountFalls: true,
  numbersRequests: true,
  isLive: false,
  fundedCents: 100_000_000,
  lost: 0,
  doubled: 0,
  delayMaxMs: 0,
  answersLost: 0,
  requestsDoubled: 0,
};
