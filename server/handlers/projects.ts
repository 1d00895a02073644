import type { HandlerDependencies } from "./dependencies.ts";
import type { Handlers } from "./types.ts";

type ProjectHandlers = Pick<
  Handlers,
  "createProject" | "createProjectByTool" | "listProjects" | "getProject" | "updateProject" | "archiveProject"
>;

const notBuilt = (): never => {
  throw new Error("not built yet");
};

/** Projects (management-api.md section 2.7, decisions.md section 4). */
export function projectHandlers(_dependencies: HandlerDependencies): ProjectHandlers {
  return {
    createProject: notBuilt,
    createProjectByTool: notBuilt,
    listProjects: notBuilt,
    getProject: notBuilt,
    updateProject: notBuilt,
    archiveProject: notBuilt,
  };
}
