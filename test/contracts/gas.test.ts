import { readFile } from "node:fs/promises";
import { expect } from "chai";
import { type Address, keccak256, toHex, zeroHash } from "viem";
import { privateKeyToAddress } from "viem/accounts";
import { type Call, done, factoryCall, walletCall } from "./support/calls.ts";
import { addressOf, mint, nextEdge, useScene } from "./support/scene.ts";

const DAY = 86_400n;
const TOLERANCE_PERCENT = 5n;
/** A row of the table of costs: | call | gas | */
const ROW = /^\| (.+?) +\| +([\d,]+) +\|$/gm;

describe("what the calls of a wallet cost", () => {
  const scene = useScene();

  it("is what docs/contracts.md says, call by call", async () => {
    const measured = await measure();
    const text = await readFile("docs/contracts.md", "utf8");
    const rows = [...text.matchAll(ROW)].map(
      ([, call = "", gas = ""]) => [call, BigInt(gas.replaceAll(",", ""))] as const,
    );
    const said = new Map(rows);
    const shown = measured.map(([call, gas]) => `${call}: ${String(gas)}`).join("\n");
    expect([...said.keys()], shown).to.deep.equal(measured.map(([call]) => call));
    for (const [call, gas] of measured) {
      const figure = said.get(call) ?? 0n;
      const difference = gas > figure ? gas - figure : figure - gas;
      expect(difference * 100n <= figure * TOLERANCE_PERCENT, `${call} costs ${String(gas)}`).to.equal(true);
    }
  });

  /** The calls in the order in which a wallet's life has them, in windows of their own time. */
  async function measure(): Promise<readonly (readonly [string, bigint])[]> {
    const { chain, owner, spender, factory, token, shop } = scene();
    const wallet = await addressOf(scene(), owner, spender, zeroHash);
    await mint(scene(), wallet, 1_000n);
    await mint(scene(), shop, 1n);
    const day = await nextEdge(scene(), DAY);
    const newcomer = privateKeyToAddress(keccak256(toHex("a shop that has no tokens yet")));
    const spend = (id: string, to: Address): Call =>
      walletCall(wallet, "spend", [keccak256(toHex(id)), token, to, 1n]);
    const calls: readonly (readonly [string, Address, Call, bigint])[] = [
      ["`deploy`", spender, factoryCall(factory, "deploy", [owner, spender, zeroHash]), day],
      ["`deploy`, already there", spender, factoryCall(factory, "deploy", [owner, spender, zeroHash]), day],
      ["`setLimit`, first", spender, walletCall(wallet, "setLimit", [token, 100n, DAY]), day],
      ["`setLimit`, another cap", spender, walletCall(wallet, "setLimit", [token, 200n, DAY]), day],
      ["`spend`, the first of the token", spender, spend("1", shop), day],
      ["`spend`, next", spender, spend("2", shop), day],
      ["`spend`, next, to one who never had the token", spender, spend("3", newcomer), day],
      ["`spend`, the first in a new period", spender, spend("4", shop), day + DAY],
      ["`setCeiling`, first", owner, walletCall(wallet, "setCeiling", [token, 500n, DAY]), day + DAY],
      ["`spend`, next, under a ceiling", spender, spend("5", shop), day + DAY],
      ["`withdraw`", owner, walletCall(wallet, "withdraw", [token, shop, 1n]), day + DAY],
      ["`setSpender`", owner, walletCall(wallet, "setSpender", [spender]), day + DAY],
      ["`detach`", spender, walletCall(wallet, "detach", []), day + DAY],
    ];
    const measured: (readonly [string, bigint])[] = [];
    for (const [name, by, call, at] of calls)
      measured.push([name, (await done(chain, by, call, at)).gasUsed]);
    return measured;
  }
});
