/**
 * `svcd development-network`: the files of a development network of separate validators. A genesis document, and for
 * each validator a sealed consensus key, a sealed fee key with coins from genesis for its heartbeats, and a config file
 * that names them. The keys are public: this is for trials on one machine.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ATOMS_PER_COIN } from '../../protocol/amount.ts';
import { toHex } from '../../protocol/bytes.ts';
import { ProtocolError } from '../../protocol/errors.ts';
import { chainId, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { showGenesis } from '../../protocol/ledger/genesis-file.ts';
import { validatorId } from '../../protocol/staking/names.ts';
import type { Output } from '../../protocol/transactions/transaction.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import { integer, path, USAGE_EXIT } from '../../runtime/command-line/command-line.ts';
import { makeDirectory } from '../../runtime/files/make-directory.ts';
import { PRIVATE_MODE } from '../../runtime/files/private-file.ts';
import { command, type Terminal } from '../../runtime/program.ts';
import { runOptions } from '../node-options.ts';
import { type KeyPurpose, sealValidatorKey } from '../validator/validator-key.ts';
import {
  DEVELOPMENT_DEFAULTS,
  type DevelopmentGenesis,
  developmentGenesis,
  developmentKey,
  developmentSeed,
  EMBEDDED_VALIDATORS,
  feeName,
  validatorName,
} from './development.ts';

/** The keys are public: a slow password hash at every start would protect nothing. */
const SCRYPT_LOG2_N = 10;

export const developmentFiles = (directory: string) => ({
  genesis: join(directory, 'genesis.json'),
  password: join(directory, 'password'),
  key: (member: number) => join(directory, `validator-${member}.key.json`),
  feeKey: (member: number) => join(directory, `validator-${member}.fee.json`),
  /** For `svcd run --config`. */
  config: (member: number) => join(directory, `validator-${member}.json`),
});

/** Of each fee key: the highest fee for a thousand years of days, or for years of epochs of 120 cuts. */
const FEE_COINS = 10_000n;
const MAX_FEE_ATOMS = 2_000_000;

/** Paths are absolute: a node may be started in any directory. */
function configOf(directory: string, member: number): string {
  const files = developmentFiles(resolve(directory));
  const config = {
    network: 'development',
    genesis: files.genesis,
    validator: {
      consensus_key_file: files.key(member),
      password_file: files.password,
      heartbeat: {
        validator_id: toHex(validatorId(developmentKey(validatorName(member)).publicKey)),
        fee_key_file: files.feeKey(member),
        fee_key_password_file: files.password,
        max_fee_atoms: MAX_FEE_ATOMS,
      },
    },
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

type File = { readonly path: string; readonly text: string; readonly mode: number };
const PUBLIC_MODE = 0o644;

/** The files in the order of writing. The genesis comes last: if it exists, all others do. */
async function contents(directory: string, settings: DevelopmentNetwork): Promise<{ files: File[]; chain: string }> {
  const names = developmentFiles(directory);
  const fees = Array.from({ length: settings.validators }, (_, member): Output => {
    return { address: developmentKey(feeName(member)).address, amount: FEE_COINS * ATOMS_PER_COIN };
  });
  // Throws if the settings are wrong.
  const genesis = developmentGenesis({ ...settings, fund: [...(settings.fund ?? []), ...fees] });
  const chain = toHex(chainId(encodeGenesis(genesis)));
  const password = randomBytes(16).toString('hex');
  const seal = async (path: string, name: string, purpose: KeyPurpose): Promise<File> => {
    const text = await sealValidatorKey(developmentSeed(name), purpose, 'development', password, SCRYPT_LOG2_N);
    return { path, text, mode: PRIVATE_MODE };
  };
  const files: File[] = [{ path: names.password, text: `${password}\n`, mode: PRIVATE_MODE }];
  for (let member = 0; member < settings.validators; member++)
    files.push(
      await seal(names.key(member), validatorName(member), 'consensus'),
      await seal(names.feeKey(member), feeName(member), 'heartbeat-fee'),
      { path: names.config(member), text: configOf(directory, member), mode: PUBLIC_MODE },
    );
  return { files: [...files, { path: names.genesis, text: showGenesis(genesis), mode: PUBLIC_MODE }], chain };
}

type DevelopmentNetwork = DevelopmentGenesis & { readonly validators: number };

/**
 * Returns the chain id. Existing files are not replaced, links are not followed, and a failure leaves no files behind.
 */
export async function writeDevelopmentNetwork(directory: string, settings: DevelopmentNetwork): Promise<string> {
  const { files, chain } = await contents(directory, settings);
  const isNew = makeDirectory(directory);
  const written: string[] = [];
  try {
    for (const { path, text, mode } of files) {
      writeFileSync(path, text, { mode, flag: 'wx' });
      written.push(path);
    }
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    if (isNew) rmdirSync(directory);
    throw error;
  }
  return chain;
}

/** Errors that the user can fix are one line; a path that cannot be a directory is a wrong option. */
function refused(out: string, error: unknown, terminal: Terminal): number {
  const { code, path, syscall, message } = error as NodeJS.ErrnoException;
  const say = (text: string, exit: number): number => {
    terminal.err(`svcd development-network: ${text}\n`);
    return exit;
  };
  if (error instanceof RangeError) return say(message, 1);
  if (error instanceof ProtocolError) return say(`${message} [${code}]`, 1);
  if (code === 'ENOTDIR' || (code === 'EEXIST' && syscall === 'mkdir'))
    return say(`--out ${out} is no directory, and cannot be made one`, USAGE_EXIT);
  if (code === 'EEXIST') return say(`${path} exists: nothing is replaced; name another directory with --out`, 1);
  if (syscall !== undefined) return say(`nothing was written to ${out}: ${message}`, 1);
  throw error;
}

export const developmentNetworkCommand = command(
  {
    name: 'svcd development-network',
    summary: 'Writes genesis, keys and password for a development network of separate validators.',
    options: {
      out: path({ help: 'directory to write to; an existing network is left unchanged', placeholder: 'DIR' }),
      validators: integer({
        help: 'validators, each with 1,000,000 coins',
        min: 1,
        max: EMBEDDED_VALIDATORS,
        default: DEVELOPMENT_DEFAULTS.validators,
      }),
      initialWork: runOptions.initialWork,
      minimumWork: runOptions.minimumWork,
      intervalCuts: runOptions.intervalCuts,
      fund: runOptions.fund,
    },
    examples: [
      { line: 'svcd development-network --out .data/four --validators 4', says: 'for four nodes' },
      { line: 'svcd run --config .data/four/validator-0.json --data-dir .data/node-0', says: 'the first of them' },
    ],
  },
  async ({ out, initialWork, minimumWork, ...rest }, _operands, terminal) => {
    if (out === undefined) {
      terminal.err('svcd development-network: name a directory with --out DIR\n');
      return 1;
    }
    if (existsSync(developmentFiles(out).genesis)) {
      terminal.err(`svcd development-network: there is a network in ${out}\n`);
      return 1;
    }
    const work = { initialWork: BigInt(initialWork), minimumWork: BigInt(minimumWork) };
    const settings = { timestampMillis: steadyMillis(), ...work, ...rest };
    try {
      terminal.out(`chain ${await writeDevelopmentNetwork(out, settings)}\n`);
      return 0;
    } catch (error) {
      return refused(out, error, terminal);
    }
  },
);
