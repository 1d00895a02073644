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
 * Returns the environment of an engine, limited to the variables that a program needs to run. So no secret of the
 * service reaches the engine, and none of a person's own settings (TEMPORAL_*, GODEBUG, ...) changes its behaviour.
 */
export function childEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed: NodeJS.ProcessEnv = {};
  for (const name of PASSED_ON) {
    const value = env[name];
    if (value !== undefined) passed[name] = value;
  }
  return passed;
}
