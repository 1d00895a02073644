import { expect } from "chai";
import { type Address, type Hex, numberToHex, zeroAddress } from "viem";
import { agentWalletAbi, sandboxUSDAbi } from "../../../contracts/artifacts/index.ts";
import {
  type Call,
  deployToken,
  deployWallet,
  done,
  type Said,
  send,
  tokenCall,
  walletCall,
} from "../support/calls.ts";
import { accountAt, type Chain } from "../support/chain.ts";
import { type Action, type Deed, type Recipient, TOKENS, type Token, type Wait } from "./actions.ts";
import { Auditor } from "./auditor.ts";
import { Book, type Order } from "./book.ts";

const PERIOD_SECONDS = 10n;
const ALIGNMENT_SECONDS = 150n;
const FUNDS = 1_000n;
const CAP = 100n;

/** Who and what is the same in all simulations on one chain. */
export class World {
  readonly chain: Chain;
  readonly tokens: readonly [Address, Address];
  readonly people: Readonly<
    Record<"owner" | "spender" | "other" | "stranger" | "minter" | "shop" | "nobody", Address>
  >;

  private constructor(chain: Chain, tokens: readonly [Address, Address]) {
    this.chain = chain;
    this.tokens = tokens;
    const [owner, spender, other, stranger] = [0, 1, 2, 3].map((index) => accountAt(chain, index));
    if (owner === undefined || spender === undefined || other === undefined || stranger === undefined)
      throw new Error("four accounts are four");
    const [minter, shop] = [accountAt(chain, 4), accountAt(chain, 5)];
    this.people = { owner, spender, other, stranger, minter, shop, nobody: zeroAddress };
  }

  static async create(chain: Chain): Promise<World> {
    const minter = accountAt(chain, 4);
    return new World(chain, [await deployToken(chain, minter), await deployToken(chain, minter)]);
  }

  /** A time to come at which windows of all periods begin: from there a simulation is the same each time. */
  async start(): Promise<bigint> {
    const { timestamp } = await this.chain.client.getBlock();
    return timestamp - (timestamp % ALIGNMENT_SECONDS) + 2n * ALIGNMENT_SECONDS;
  }
}

/** A wallet of its own that actions come over, with a book that says what each must lead to. */
export class Simulation {
  readonly #world: World;
  readonly #wallet: Address;
  readonly #book: Book;
  readonly #auditor: Auditor;
  #now: bigint;

  private constructor(world: World, wallet: Address, now: bigint) {
    const { owner, spender } = world.people;
    [this.#world, this.#wallet, this.#now] = [world, wallet, now];
    this.#book = new Book(wallet, owner, spender);
    this.#auditor = new Auditor(owner, spender);
  }

  /** Deploys the wallet, or a mutant, with money and a limit, and carries out all actions; throws at the first fault. */
  static async run(world: World, actions: readonly Action[], bytecode?: Hex): Promise<void> {
    const { owner, spender } = world.people;
    const wallet = await deployWallet(world.chain, owner, spender, bytecode);
    const simulation = new Simulation(world, wallet, await world.start());
    await simulation.#mint(0, FUNDS);
    await simulation.#mint(1, FUNDS);
    for (const token of TOKENS)
      await simulation.#step(spender, { kind: "setLimit", token, cap: CAP, period: PERIOD_SECONDS });
    for (const { by, wait, deed } of actions) {
      simulation.#now = later(simulation.#now, wait);
      await simulation.#step(by === "entitled" ? simulation.#entitled(deed) : world.people[by], deed);
    }
  }

  async #step(by: Address, deed: Deed): Promise<void> {
    if (deed.kind === "mint") await this.#mint(deed.token, deed.amount);
    else await this.#carryOut(by, this.#order(deed));
    await this.#compare();
  }

  async #carryOut(by: Address, order: Order): Promise<void> {
    const expected = this.#book.refusal(by, order, this.#now);
    const outcome = await send(this.#world.chain, by, toCall(this.#wallet, order), this.#now);
    if (outcome.ok) this.#auditor.carriedOut(by, order, this.#now);
    const actual = outcome.ok ? null : outcome.error;
    expect(actual, `${order.kind}: expected ${expected?.name ?? "success"}`).to.deep.equal(expected);
    if (outcome.ok) {
      expect(outcome.events, `events of ${order.kind}`).to.deep.equal([eventOf(order, this.#book.spender)]);
      this.#book.record(order, this.#now);
    }
    if (order.kind === "spend") {
      const args = [idOf(order.id)] as const;
      const read = { address: this.#wallet, abi: agentWalletAbi, functionName: "isSpent", args } as const;
      expect(await this.#world.chain.client.readContract(read), "isSpent").to.equal(
        this.#book.isSpent(order.id),
      );
    }
  }

  async #mint(token: Token, amount: bigint): Promise<void> {
    const address = this.#world.tokens[token];
    const call = tokenCall(address, "mint", [this.#wallet, amount]);
    await done(this.#world.chain, this.#world.people.minter, call, this.#now);
    this.#book.minted(address, amount);
  }

  /** Everything that the wallet shows is as the book says, at the time of the latest block. */
  async #compare(): Promise<void> {
    const { client } = this.#world.chain;
    const wallet = { address: this.#wallet, abi: agentWalletAbi } as const;
    const perToken = this.#world.tokens.map(async (token) => {
      const [limit, ceiling, total, balance] = await Promise.all([
        client.readContract({ ...wallet, functionName: "limitOf", args: [token] }),
        client.readContract({ ...wallet, functionName: "ceilingOf", args: [token] }),
        client.readContract({ ...wallet, functionName: "totalSpent", args: [token] }),
        client.readContract({
          address: token,
          abi: sandboxUSDAbi,
          functionName: "balanceOf",
          args: [this.#wallet],
        }),
      ]);
      return { limit, ceiling, total, balance };
    });
    const [owner, spender, ...tokens] = await Promise.all([
      client.readContract({ ...wallet, functionName: "owner" }),
      client.readContract({ ...wallet, functionName: "spender" }),
      ...perToken,
    ]);
    expect([owner, spender], "owner and spender").to.deep.equal([this.#book.owner, this.#book.spender]);
    expect(tokens, "what the wallet shows").to.deep.equal(
      this.#world.tokens.map((token) => ({
        limit: this.#shown(token, "limit"),
        ceiling: this.#shown(token, "ceiling"),
        total: this.#book.total(token),
        balance: this.#book.balance(token),
      })),
    );
  }

  #shown(token: Address, which: "limit" | "ceiling"): readonly bigint[] {
    const { cap, period, spent, available } = this.#book.usage(token, which, this.#now);
    return [cap, period, spent, available];
  }

  #entitled({ kind }: Deed): Address {
    const { owner, spender } = this.#world.people;
    if (kind !== "spend" && kind !== "setLimit" && kind !== "detach") return owner;
    return this.#book.spender === zeroAddress ? spender : this.#book.spender;
  }

  #order(deed: Exclude<Deed, { kind: "mint" }>): Order {
    const { people, tokens } = this.#world;
    if (deed.kind === "setSpender") return { ...deed, to: people[deed.to] };
    if (deed.kind === "detach" || deed.kind === "renounceOwnership") return deed;
    const token = tokens[deed.token];
    if (deed.kind === "spend")
      return { ...deed, id: idOf(deed.id), token, to: this.#recipient(deed.to, token) };
    if (deed.kind === "withdraw") return { ...deed, token, to: this.#recipient(deed.to, token) };
    return { ...deed, token };
  }

  #recipient(to: Recipient, token: Address): Address {
    if (to === "wallet") return this.#wallet;
    return to === "token" ? token : this.#world.people[to];
  }
}

const idOf = (id: number | string): Hex => numberToHex(BigInt(id), { size: 32 });

function later(now: bigint, wait: Wait): bigint {
  if (wait.kind === "seconds") return now + wait.seconds;
  const next = now - (now % wait.edge) + wait.edge + wait.offset;
  return next > now ? next : now;
}

function toCall(wallet: Address, order: Order): Call {
  switch (order.kind) {
    case "spend":
      return walletCall(wallet, "spend", [idOf(order.id), order.token, order.to, order.amount]);
    case "setLimit":
    case "setCeiling":
      return walletCall(wallet, order.kind, [order.token, order.cap, order.period]);
    case "clearCeiling":
      return walletCall(wallet, "clearCeiling", [order.token]);
    case "withdraw":
      return walletCall(wallet, "withdraw", [order.token, order.to, order.amount]);
    case "setSpender":
      return walletCall(wallet, "setSpender", [order.to]);
    case "detach":
    case "renounceOwnership":
      return walletCall(wallet, order.kind, []);
  }
}

/** The one event that tells of an order that was carried out. */
function eventOf(order: Order, previousSpender: Address): Said {
  switch (order.kind) {
    case "spend": {
      const { id, token, to, amount } = order;
      return { name: "Spent", args: { id: idOf(id), token, to, amount } };
    }
    case "setLimit":
    case "setCeiling": {
      const { token, cap, period } = order;
      const name = order.kind === "setLimit" ? "LimitSet" : "CeilingSet";
      return { name, args: { token, cap, periodSeconds: period } };
    }
    case "clearCeiling":
      return { name: "CeilingCleared", args: { token: order.token } };
    case "withdraw": {
      const { token, to, amount } = order;
      return { name: "Withdrawn", args: { token, to, amount } };
    }
    case "setSpender":
      return { name: "SpenderChanged", args: { previousSpender, newSpender: order.to } };
    case "detach":
      return { name: "SpenderChanged", args: { previousSpender, newSpender: zeroAddress } };
    case "renounceOwnership":
      return { name: "none", args: {} };
  }
}
