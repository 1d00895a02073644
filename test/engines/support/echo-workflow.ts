import { sleep } from "@temporalio/workflow";

/** Waits a day and answers with what it was given. */
export async function echoAfterADay(text: string): Promise<string> {
  await sleep("24 hours");
  return text;
}
