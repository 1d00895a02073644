const PASSED_ON = [
  "PATH",
  "HOME",
  "USER",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "LD_LIBRARY_PATH",
  "JAVA_HOME",
] as const;

/**
 * Environment of an engine: what a program needs to run, and no more. So no secret of ours reaches it, and none of a
 * person's own settings (TEMPORAL_*, GODEBUG, ...) changes how it behaves here.
 */
export function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed: NodeJS.ProcessEnv = {};
  for (const name of PASSED_ON) {
    const value = env[name];
    if (value !== undefined) passed[name] = value;
  }
  return passed;
}
