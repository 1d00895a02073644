import { engineBinaries, NO_OTHER_ENGINES } from "../../support/engine-binaries.ts";

const progress = (line: string): void => {
  process.stderr.write(`    ${line}\n`);
};

let found: Promise<NodeJS.ProcessEnv> | undefined;

const find = async (): Promise<NodeJS.ProcessEnv> => ({
  ...process.env,
  ...NO_OTHER_ENGINES,
  ...(await engineBinaries(process.env, progress)),
});

/** An environment that names the real binaries, found once per run, wherever they come from. */
export const engineEnvironment = (): Promise<NodeJS.ProcessEnv> => (found ??= find());
