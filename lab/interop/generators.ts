import { join } from "node:path";
import type { Fetched, Line } from "./commands.ts";

/** A generator of clients, and what a user does with it. */
export interface Generator extends Fetched {
  /** Generates the client of `document.json`. */
  readonly generate: (tools: string) => readonly Line[];
  /** The program that uses the client: its source in `programs`, and its name beside the client. */
  readonly program: readonly [source: string, name: string];
  readonly compile: (tools: string) => readonly Line[];
  readonly pay: (tools: string) => Line;
}

const OPENAPI_GENERATOR = "7.14.0";
const MAVEN: Line = ["mvn", "-B", "-q", "-DskipTests"];

export const GENERATORS: readonly Generator[] = [
  {
    name: "openapi-typescript",
    version: "7.13.0",
    install: () => [
      ["npm", "init", "-y"],
      ["npm", "pkg", "set", "type=module"],
      [
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "openapi-typescript@7.13.0",
        "openapi-fetch@0.17.0",
        "typescript@5.9.3",
        "@types/node@20.19.43",
      ],
    ],
    generate: (tools) => [
      ["cp", "-r", join(tools, "node_modules"), join(tools, "package.json"), "."],
      ["node_modules/.bin/openapi-typescript", "document.json", "-o", "api.d.ts"],
    ],
    program: ["pay.ts.txt", "pay.ts"],
    compile: () => [
      [
        "node_modules/.bin/tsc",
        "--strict",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--types",
        "node",
        "pay.ts",
      ],
    ],
    pay: () => ["node", "pay.js"],
  },
  {
    name: "openapi-python-client",
    version: "0.29.1",
    install: () => [
      ["python3", "-m", "venv", "."],
      ["bin/pip", "install", "--quiet", "--no-input", "openapi-python-client==0.29.1", "mypy==2.4.1"],
    ],
    generate: (tools) => [
      // The generator formats by ruff, which is beside it.
      [
        "env",
        `PATH=${join(tools, "bin")}:/usr/bin:/bin`,
        "openapi-python-client",
        "generate",
        "--path",
        "document.json",
        "--output-path",
        "client",
      ],
    ],
    program: ["pay.py", "client/pay.py"],
    compile: (tools) => [
      [join(tools, "bin", "python"), "-m", "compileall", "-q", "client"],
      ["env", "MYPYPATH=client", join(tools, "bin", "mypy"), "--ignore-missing-imports", "client/pay.py"],
    ],
    pay: (tools) => [join(tools, "bin", "python"), "client/pay.py"],
  },
  {
    name: "oapi-codegen",
    version: "2.8.2",
    install: (tools) => [
      [
        "env",
        `GOBIN=${tools}`,
        "go",
        "install",
        "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2",
      ],
    ],
    generate: (tools) => [
      ["mkdir", "spend"],
      [
        join(tools, "oapi-codegen"),
        "-generate",
        "types,client",
        "-package",
        "spend",
        "-o",
        "spend/spend.go",
        "document.json",
      ],
    ],
    program: ["pay.go.txt", "pay.go"],
    compile: () => [
      ["go", "mod", "init", "example.com/pay"],
      ["go", "mod", "tidy"],
      ["go", "vet", "."],
      ["go", "build", "-o", "pay", "."],
    ],
    pay: () => ["./pay"],
  },
  {
    name: "openapi-generator (Java)",
    version: OPENAPI_GENERATOR,
    install: (tools) => [
      [
        ...MAVEN,
        "dependency:copy",
        `-Dartifact=org.openapitools:openapi-generator-cli:${OPENAPI_GENERATOR}`,
        `-DoutputDirectory=${tools}`,
      ],
    ],
    generate: (tools) => [
      [
        "java",
        "-jar",
        join(tools, `openapi-generator-cli-${OPENAPI_GENERATOR}.jar`),
        "generate",
        "-i",
        "document.json",
        "-g",
        "java",
        "--library",
        "native",
        "-o",
        ".",
        "--additional-properties=openApiNullable=false",
        "--global-property=apiTests=false,modelTests=false,apiDocs=false,modelDocs=false",
      ],
    ],
    program: ["Pay.java", "src/main/java/Pay.java"],
    compile: () => [[...MAVEN, "compile", "dependency:copy-dependencies", "-DoutputDirectory=target/lib"]],
    pay: () => ["java", "-cp", "target/classes:target/lib/*", "Pay"],
  },
];
