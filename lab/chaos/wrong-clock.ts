/**
 * Loaded into a role before anything of it (`--import`): its clock goes wrong by what its parent tells it, from one moment to the next, as
 * when an operator or a time server sets it. What measures durations (`performance.now`) goes on, as it does on a real machine. Workflows
 * are not touched: theirs is the engine's clock.
 */
/** Setting of a process whose clock is wrong from its start, in milliseconds. */
export const CLOCK_OFFSET = "LAB_CLOCK_OFFSET_MS";

let offsetMs = Number(process.env[CLOCK_OFFSET] ?? 0);

export function setClock(wrongByMs: number): void {
  offsetMs = wrongByMs;
}

process.on("message", (message: unknown) => {
  if (typeof message === "object" && message !== null && "clockOffsetMs" in message)
    setClock(Number(message.clockOffsetMs));
});
// A role does not live on for the sake of its clock.
process.channel?.unref();

const nowMs = Date.now;
const wrongNow = (): number => nowMs() + offsetMs;

globalThis.Date = new Proxy(Date, {
  construct: (target, args, made) =>
    Object(Reflect.construct(target, args.length === 0 ? [wrongNow()] : args, made)),
  apply: () => new Date().toString(),
  get: (target, key) => (key === "now" ? wrongNow : Reflect.get(target, key)),
});
