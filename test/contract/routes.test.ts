import { expect } from "chai";
import { z } from "zod";
import { define } from "../../src/contract/define.ts";
import { operationList } from "../../src/contract/registry.ts";
import { conflictsOf, inOrder, methodsAt, routesOf } from "../../src/contract/routes.ts";

type Path = `/v1/${string}`;

const route = (path: Path, method: "get" | "post" = "get") => ({ id: path, http: { method, path } });

/** An operation at a path, with its parameters. */
function operation(path: Path) {
  const names = path.split("/").filter((segment) => segment.startsWith(":"));
  const params = z.strictObject(Object.fromEntries(names.map((name) => [name.slice(1), z.string()])));
  const defined = define({
    summary: path,
    description: path,
    tag: "Agents",
    access: { kind: "public" },
    rate: "standard",
    output: z.undefined(),
    errors: [],
    params,
    http: { method: "get", path, successStatus: 200 },
  });
  return [path, defined] as const;
}

describe("routes", () => {
  it("a literal segment comes before a parameter, whatever the operations are called", () => {
    const paths = [
      "/v1/a/:id/:part",
      "/v1/a/:id/keys",
      "/v1/:what/x/y",
      "/v1/a/export/keys",
      "/v1/a/:id",
    ] as const;
    expect(inOrder(paths.map((path) => route(path))).map(({ id }) => id)).to.deep.equal([
      "/v1/a/export/keys",
      "/v1/a/:id",
      "/v1/a/:id/keys",
      "/v1/a/:id/:part",
      "/v1/:what/x/y",
    ]);
  });

  it("the routes of operations come in that order", () => {
    const operations = [operation("/v1/a/:id"), operation("/v1/a/me")];
    expect(routesOf(operations).map(({ http }) => http.path)).to.deep.equal(["/v1/a/me", "/v1/a/:id"]);
  });

  const conflicting = [
    ["/v1/a/:id", "/v1/a/:name"],
    ["/v1/a/:id/list", "/v1/a/me/:part"],
    ["/v1/a", "/v1/a"],
  ] as const;
  for (const [one, other] of conflicting) {
    it(`${one} and ${other} do not start: their order would decide`, () => {
      const [first, second] = [operation(one), operation(other)] as const;
      expect(() => routesOf([first, second])).to.throw("match the same path");
      expect(conflictsOf([route(one), route("/v1/b/:id"), route(other)])).to.have.lengthOf(1);
      expect(conflictsOf([route(one), route(other, "post")])).to.deep.equal([]);
    });
  }

  it("what can't match the same path, or is the more literal one, is no conflict", () => {
    const paths = ["/v1/a/:id", "/v1/a/me", "/v1/a/:id/b", "/v1/b/:id", "/v1/:what/:part/:more"] as const;
    expect(conflictsOf(paths.map((path) => route(path)))).to.deep.equal([]);
  });

  it("a path has the methods of its most literal routes, HEAD with GET, and OPTIONS", () => {
    const routes = [
      route("/v1/a/:id"),
      route("/v1/a/:id", "post"),
      route("/v1/a/me", "post"),
      route("/v1/b", "post"),
    ];
    for (const [path, methods] of [
      ["/v1/a/1", "GET, HEAD, POST, OPTIONS"],
      ["/v1/a/me", "POST, OPTIONS"],
      ["/v1/a/%41", "GET, HEAD, POST, OPTIONS"],
      ["/v1/b", "POST, OPTIONS"],
      ["/v1/a", ""],
      ["/v1/a/", ""],
      ["/v1/a/%zz", ""],
      ["/v1/A/1", ""],
      ["/v1/a/1/", ""],
    ] as const) {
      expect(methodsAt(routes, path).join(", "), path).to.equal(methods);
    }
  });

  it("every operation with a route has one, and none conflict", () => {
    const withRoute = operationList.filter(([, { http }]) => http !== null).map(([id]) => id);
    expect(
      routesOf(operationList)
        .map(({ id }) => id)
        .toSorted(),
    ).to.deep.equal(withRoute.toSorted());
  });
});
