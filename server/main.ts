#!/usr/bin/env node
import { startBundled } from "../src/lib/bundle.ts";

/** The program's only entry: runs the built single file if there is one, else the modules. */
if (!startBundled("server/program")) await import("./program.ts");
