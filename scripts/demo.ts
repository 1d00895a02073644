import { playStory } from "./demo/story.ts";
import { Stage, StepDiffers } from "./demo/stage.ts";

// `npm run demo`: the story of an agent that pays, against the service that runs on this DATA_DIR.
const stage = await Stage.open(process.env);
try {
  await playStory(stage);
  process.stdout.write("\nAll steps passed.\n");
} catch (error) {
  const text =
    error instanceof StepDiffers ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`\n✗ ${text}\n`);
  process.exitCode = 1;
} finally {
  await stage.close();
}
process.exit();
