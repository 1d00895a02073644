#!/usr/bin/env node
import { startBundled } from "../src/lib/bundle.ts";

/** The one entry of the program: in one file where the build has made one, or else module by module. */
if (!startBundled("server/program")) await import("./program.ts");
