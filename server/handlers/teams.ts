import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type TeamHandlers = Pick<
  Handlers,
  "createTeam" | "createTeamByTool" | "listTeams" | "getTeam" | "updateTeam" | "archiveTeam"
>;

const notBuilt = (): never => {
  throw new Error("not built yet");
};

/** Teams (management-api.md section 2.7, decisions.md section 4). */
export function teamHandlers(_dependencies: HandlerDependencies): TeamHandlers {
  return {
    createTeam: notBuilt,
    createTeamByTool: notBuilt,
    listTeams: notBuilt,
    getTeam: notBuilt,
    updateTeam: notBuilt,
    archiveTeam: notBuilt,
  };
}
