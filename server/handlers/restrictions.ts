import type { AuditedWrites } from "../../src/audit/notes.ts";
import {
  RestrictionLists,
  type RestrictedTarget,
  type VersionedRestrictions,
} from "../../src/containers/restrictions.ts";
import { ok } from "../../src/domain/result.ts";
import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type RestrictionsHandlers = Pick<
  Handlers,
  | "getProjectRestrictions"
  | "setProjectRestrictions"
  | "getTeamRestrictions"
  | "setTeamRestrictions"
  | "getAgentRestrictions"
  | "setAgentRestrictions"
>;

export function restrictionsHandlers(dependencies: HandlerDependencies): RestrictionsHandlers {
  const lists = new RestrictionLists(dependencies);

  const read = async (target: RestrictedTarget) => ok({ body: await lists.of(target) });

  async function replace(target: RestrictedTarget, body: VersionedRestrictions, audit: AuditedWrites) {
    const replaced = await lists.replace(target, body, audit);
    return replaced.ok ? ok({ body: replaced.value }) : replaced;
  }

  return {
    getProjectRestrictions: (_input, { target: record }) => read({ level: "project", record }),
    setProjectRestrictions: ({ body }, { audit, target: record }) =>
      replace({ level: "project", record }, body, audit),
    getTeamRestrictions: (_input, { target: record }) => read({ level: "team", record }),
    setTeamRestrictions: ({ body }, { audit, target: record }) =>
      replace({ level: "team", record }, body, audit),
    getAgentRestrictions: (_input, { target: record }) => read({ level: "agent", record }),
    setAgentRestrictions: ({ body }, { audit, target: record }) =>
      replace({ level: "agent", record }, body, audit),
  };
}
