/** What a process of tests closes once no file is left for it. */
const closing: (() => Promise<void>)[] = [];

export const atEnd = (close: () => Promise<void>): void => void closing.push(close);

export async function closeAll(): Promise<void> {
  await Promise.all(closing.splice(0).map((close) => close()));
}
