import { LRUCache } from "lru-cache";
import {
  type Address,
  concatHex,
  encodeDeployData,
  encodeEventTopics,
  encodeFunctionData,
  erc20Abi,
  getCreate2Address,
  type Hex,
  keccak256,
  toBytes,
  zeroHash,
} from "viem";
import {
  agentWalletAbi,
  agentWalletArtifact,
  agentWalletFactoryAbi,
  agentWalletFactoryArtifact,
  sandboxUSDAbi,
  sandboxUSDArtifact,
} from "../../contracts/artifacts/index.ts";

export { agentWalletAbi };
/** Functions and events of the sandbox's token. As far as the service uses them, they equal USDC's. */
export { sandboxUSDAbi as tokenAbi };

/**
 * The well-known CREATE2 deployer, whose calldata is a salt and an init code. Deployed on most chains, and in anvil.
 */
const CREATE2_DEPLOYER: Address = "0x4e59b44847b379578588920cA78FbF26c0B4956C";

/** Gas limits per call; unused gas costs nothing. */
export const GAS = {
  deployContract: 4_000_000n,
  deployWallet: 2_500_000n,
  setLimit: 200_000n,
  spend: 300_000n,
  /** The wallet's own share of `spend`; the rest is the token's. */
  spendWithoutTransfer: 150_000n,
  /** Maximum of `spend`, for a token that needs more than usual. */
  spendMax: 2_000_000n,
  detach: 150_000n,
  mint: 200_000n,
  /** A permit, or a transfer by authorization. */
  tokenCall: 200_000n,
  anchor: 60_000n,
  nothing: 21_000n,
} as const;

/** Adds a margin to an estimate: the state may have changed by the time of the call. */
export const withMargin = (estimate: bigint): bigint => (estimate * 5n) / 4n;

/** Returns the gas for `spend`, given the gas of the token's transfer as a separate transaction. */
export const spendGas = (transferGas: bigint): bigint => GAS.spendWithoutTransfer + withMargin(transferGas);

/** Maximum gas of a token's transfer, as estimated, that `GAS.spend` covers with the margin. */
export const TRANSFER_GAS = ((GAS.spend - GAS.spendWithoutTransfer) * 4n) / 5n;

/** A contract of the service, deployed once at an address that follows from its init code. */
export interface Deployment {
  readonly address: Address;
  readonly to: Address;
  readonly data: Hex;
}

function deployment(initCode: Hex): Deployment {
  const address = getCreate2Address({ from: CREATE2_DEPLOYER, salt: zeroHash, bytecode: initCode });
  return { address, to: CREATE2_DEPLOYER, data: concatHex([zeroHash, initCode]) };
}

export const factoryDeployment = (): Deployment => deployment(agentWalletFactoryArtifact.bytecode);

/** Deployment of the test token, which `minter` may mint. */
export const sandboxTokenDeployment = (minter: Address): Deployment =>
  deployment(encodeDeployData({ abi: sandboxUSDAbi, bytecode: sandboxUSDArtifact.bytecode, args: [minter] }));

export interface WalletOrigin {
  readonly factory: Address;
  readonly owner: Address;
  readonly spender: Address;
  readonly agentId: string;
}

const saltOf = (agentId: string): Hex => keccak256(toBytes(agentId));

/** Returns the address of an agent's wallet, deployed or not. */
export function walletAddress({ agentId, factory, owner, spender }: WalletOrigin): Address {
  const bytecodeHash = walletInitCodeHash(owner, spender);
  return getCreate2Address({ from: factory, salt: saltOf(agentId), bytecodeHash });
}

/** Maximum cached hashes: about the number of an installation's owners. */
const INIT_CODE_HASHES_MAX = 1_000;
const initCodeHashes = new LRUCache<string, Hex>({ max: INIT_CODE_HASHES_MAX });

/** Returns the hash shared by all wallets of an owner. Cached: hashing the contract's code takes a millisecond. */
function walletInitCodeHash(owner: Address, spender: Address): Hex {
  const name = `${owner}/${spender}`;
  const known = initCodeHashes.get(name);
  if (known !== undefined) return known;
  const args = [owner, spender] as const;
  const hash = keccak256(
    encodeDeployData({ abi: agentWalletAbi, bytecode: agentWalletArtifact.bytecode, args }),
  );
  initCodeHashes.set(name, hash);
  return hash;
}

export const deployWalletData = ({ agentId, owner, spender }: WalletOrigin): Hex =>
  encodeFunctionData({
    abi: agentWalletFactoryAbi,
    functionName: "deploy",
    args: [owner, spender, saltOf(agentId)],
  });

export const paymentIdOf = (transactionId: string): Hex => keccak256(toBytes(transactionId));

export interface Spend {
  readonly transactionId: string;
  readonly token: Address;
  readonly to: Address;
  readonly units: bigint;
}

export const spendArguments = ({ to, token, transactionId, units }: Spend) =>
  [paymentIdOf(transactionId), token, to, units] as const;

export const spendData = (spend: Spend): Hex =>
  encodeFunctionData({ abi: agentWalletAbi, functionName: "spend", args: spendArguments(spend) });

export const transferData = (to: Address, units: bigint): Hex =>
  encodeFunctionData({ abi: erc20Abi, functionName: "transfer", args: [to, units] });

/** Whether a wallet's event in these logs shows the payment. */
export function showsPayment(
  logs: readonly { readonly address: Address; readonly topics: readonly Hex[] }[],
  wallet: string,
  transactionId: string,
): boolean {
  const id = paymentIdOf(transactionId);
  const [event] = encodeEventTopics({ abi: agentWalletAbi, eventName: "Spent" });
  return logs.some(
    ({ address, topics }) =>
      address.toLowerCase() === wallet.toLowerCase() && topics[0] === event && topics[1] === id,
  );
}

export const setLimitData = (token: Address, cap: bigint, periodSeconds: number): Hex =>
  encodeFunctionData({
    abi: agentWalletAbi,
    functionName: "setLimit",
    args: [token, cap, BigInt(periodSeconds)],
  });

export const detachData = (): Hex => encodeFunctionData({ abi: agentWalletAbi, functionName: "detach" });

export const mintData = (to: Address, units: bigint): Hex =>
  encodeFunctionData({ abi: sandboxUSDAbi, functionName: "mint", args: [to, units] });
