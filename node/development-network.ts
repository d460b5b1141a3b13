/**
 * `svcd development-network`: what a development network of separate validators starts from. A genesis document, and for each validator a sealed consensus key, a sealed fee key that genesis gives
 * coins to, so that its heartbeats keep its seat, and a config file that names them. The keys are those that everybody knows: this is for trials on one machine.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ATOMS_PER_COIN } from '../protocol/amount.ts';
import { toHex } from '../protocol/bytes.ts';
import { validatorId } from '../protocol/staking/names.ts';
import type { Output } from '../protocol/transaction.ts';
import { steadyMillis } from '../runtime/clock.ts';
import { integer, path } from '../runtime/command-line/command-line.ts';
import { PRIVATE_MODE } from '../runtime/private-file.ts';
import { command } from '../runtime/program.ts';
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
import { writeGenesis } from './make-genesis.ts';
import { runOptions } from './node-options.ts';
import { type KeyPurpose, sealValidatorKey } from './validator-key.ts';

/** The keys are no secret: a dear password check at every start would protect nothing. */
const SCRYPT_LOG2_N = 10;

export const developmentFiles = (directory: string) => ({
  genesis: join(directory, 'genesis.json'),
  password: join(directory, 'password'),
  key: (member: number) => join(directory, `validator-${member}.key.json`),
  feeKey: (member: number) => join(directory, `validator-${member}.fee.json`),
  /** For `svcd run --config`. */
  config: (member: number) => join(directory, `validator-${member}.json`),
});

/** Of each fee key: the highest fee for a thousand years of days, or for weeks of epochs of 24 cuts. */
const FEE_COINS = 10_000n;
const MAX_FEE_ATOMS = 2_000_000;

/** Paths are whole: a node may be started anywhere. */
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

/** Returns the chain id. The genesis comes last: where it is, everything is. */
export async function writeDevelopmentNetwork(
  directory: string,
  settings: DevelopmentGenesis & { readonly validators: number },
): Promise<string> {
  const files = developmentFiles(directory);
  const password = randomBytes(16).toString('hex');
  mkdirSync(directory, { recursive: true });
  writeFileSync(files.password, `${password}\n`, { mode: PRIVATE_MODE });
  const seal = async (file: string, name: string, purpose: KeyPurpose) => {
    const sealed = await sealValidatorKey(developmentSeed(name), purpose, 'development', password, SCRYPT_LOG2_N);
    writeFileSync(file, sealed, { mode: PRIVATE_MODE });
  };
  const fees: Output[] = [];
  for (let member = 0; member < settings.validators; member++) {
    await seal(files.key(member), validatorName(member), 'consensus');
    await seal(files.feeKey(member), feeName(member), 'heartbeat-fee');
    writeFileSync(files.config(member), configOf(directory, member));
    fees.push({ address: developmentKey(feeName(member)).address, amount: FEE_COINS * ATOMS_PER_COIN });
  }
  return writeGenesis(files.genesis, developmentGenesis({ ...settings, fund: [...(settings.fund ?? []), ...fees] }));
}

export const developmentNetworkCommand = command(
  {
    name: 'svcd development-network',
    summary: 'Writes genesis, keys and password for a development network of separate validators.',
    options: {
      out: path({ help: 'directory to write to; a network that is there is left alone', placeholder: 'DIR' }),
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
      // More is funded than there is.
      if (!(error instanceof RangeError)) throw error;
      terminal.err(`svcd development-network: ${error.message}\n`);
      return 1;
    }
  },
);
