/**
 * `svcd development-network`: what a development network of separate validators starts from. A genesis document, a sealed consensus key for each validator, and the password of the keys. The keys
 * are those that everybody knows: this is for trials on one machine.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { steadyMillis } from '../runtime/clock.ts';
import { integer, path } from '../runtime/command-line/command-line.ts';
import { PRIVATE_MODE } from '../runtime/private-file.ts';
import { command } from '../runtime/program.ts';
import {
  DEVELOPMENT_DEFAULTS,
  type DevelopmentGenesis,
  developmentGenesis,
  developmentSeed,
  EMBEDDED_VALIDATORS,
  validatorName,
} from './development.ts';
import { writeGenesis } from './make-genesis.ts';
import { runOptions } from './node-options.ts';
import { sealValidatorKey } from './validator-key.ts';

/** The keys are no secret: a dear password check at every start would protect nothing. */
const SCRYPT_LOG2_N = 10;

export const developmentFiles = (directory: string) => ({
  genesis: join(directory, 'genesis.json'),
  password: join(directory, 'password'),
  key: (member: number) => join(directory, `validator-${member}.key.json`),
});

/** Returns the chain id. The genesis comes last: where it is, everything is. */
export async function writeDevelopmentNetwork(
  directory: string,
  settings: DevelopmentGenesis & { readonly validators: number },
): Promise<string> {
  const files = developmentFiles(directory);
  const password = randomBytes(16).toString('hex');
  mkdirSync(directory, { recursive: true });
  writeFileSync(files.password, `${password}\n`, { mode: PRIVATE_MODE });
  for (let member = 0; member < settings.validators; member++) {
    const seed = developmentSeed(validatorName(member));
    const sealed = await sealValidatorKey(seed, 'consensus', 'development', password, SCRYPT_LOG2_N);
    writeFileSync(files.key(member), sealed, { mode: PRIVATE_MODE });
  }
  return writeGenesis(files.genesis, developmentGenesis(settings));
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
    },
    examples: [{ line: 'svcd development-network --out .data/four --validators 4', says: 'for four nodes' }],
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
    terminal.out(
      `chain ${await writeDevelopmentNetwork(out, { timestampMillis: steadyMillis(), ...work, ...rest })}\n`,
    );
    return 0;
  },
);
