/** `svcd launch`, for the one who coordinates, and `svcd join`, on the machine of each validator (docs/launch.md). */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { parseCoins } from '../../protocol/amount.ts';
import { toHex } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import { chainId, encodeGenesis, MAX_GENESIS_VALIDATORS, SEED_BYTES } from '../../protocol/ledger/genesis.ts';
import { INTERVAL_CUTS, NETWORK_NAMES, POW_EPOCH_CUTS } from '../../protocol/network.ts';
import { DEFAULT_COMMISSION } from '../../protocol/staking/limits.ts';
import { steadyMillis } from '../../runtime/clock/clock.ts';
import {
  choice,
  flag,
  integer,
  type OptionTable,
  parsed,
  path,
  repeated,
  text,
  UsageError,
  type ValuesOf,
} from '../../runtime/command-line/command-line.ts';
import { readSmallFile } from '../../runtime/files/small-file.ts';
import { visible } from '../../runtime/log/visible.ts';
import { type Command, command, refuse, type Terminal } from '../../runtime/program.ts';
import { DEVELOPMENT_DEFAULTS } from '../genesis/development.ts';
import { NODE_DEFAULTS } from '../node-defaults.ts';
import { readGrant } from '../node-options.ts';
import { readRoute } from '../validator/overlay-key.ts';
import { type Invitation, kindOf, LAUNCH_NAME, readBundle, readInvitation } from './documents.ts';
import { joinLaunch, receive, validatorFiles } from './join.ts';
import { gather, invite, type Refusal } from './launch.ts';
import { LaunchError } from './launch-error.ts';
import {
  beginFolder,
  bundleName,
  finishFolder,
  folderFiles,
  genesisIn,
  invitationIn,
  registrationsIn,
} from './launch-folder.ts';

const jsonOption = { json: flag({ help: 'print the result or the error as JSON' }) } as const;
const BUNDLE_BYTES = 8 << 20;

/** Refusals are one line with their code, or one JSON object. */
function launching<const T extends OptionTable & typeof jsonOption>(
  spec: Parameters<typeof command<T>>[0],
  run: (values: ValuesOf<T>, operands: readonly string[], say: Say) => Promise<number>,
): Command {
  return command(spec, async (values, operands, terminal) => {
    const isJson = (values as { json?: boolean }).json === true;
    const say = sayTo(terminal, isJson);
    try {
      return await run(values, operands, say);
    } catch (error) {
      if (error instanceof UsageError) return refuse(spec.name, error, terminal);
      if (!(error instanceof CodedError)) throw error;
      if (isJson) terminal.out(`${JSON.stringify({ error: { code: error.code, message: error.message } })}\n`);
      else terminal.err(`${spec.name}: ${visible(error.message)} [${error.code}]\n`);
      return 1;
    }
  });
}

/** The same facts for a person and for a program. */
type Say = (fields: object, lines: readonly string[]) => void;

const sayTo =
  (terminal: Terminal, isJson: boolean): Say =>
  (fields, lines) =>
    terminal.out(isJson ? `${JSON.stringify(fields)}\n` : lines.map((line) => `${visible(line)}\n`).join(''));

const coins = (help: string, byDefault: string) =>
  parsed({ help, placeholder: 'COINS', group: 'Terms', default: byDefault }, parseCoins);

const TERMS = 'Terms';

const launchOptions = {
  validators: integer({
    help: 'how many validators the network begins with; needed the first time',
    group: TERMS,
    min: 1,
    max: MAX_GENESIS_VALIDATORS,
  }),
  network: choice({ help: 'which kind of network', group: TERMS, default: 'testnet' }, NETWORK_NAMES),
  bond: coins('what each validator has bonded in the first cut, at least 100000', '1000000'),
  feeCoins: coins('what each validator has for the fees of its heartbeats', '100'),
  treasury: text({ help: 'gets what is left of the 20,000,000 coins', group: TERMS, placeholder: 'ADDRESS' }),
  faucet: parsed({ help: 'coins of a faucet, in 64 outputs', group: TERMS, placeholder: 'ADDRESS=COINS' }, readGrant),
  fund: repeated(parsed({ help: 'coins for an address', group: TERMS, placeholder: 'ADDRESS=COINS' }, readGrant)),
  cutMillis: integer({
    help: 'milliseconds from cut to cut',
    group: TERMS,
    min: 20,
    max: 600_000,
    default: NODE_DEFAULTS.cutMillis,
  }),
  intervalCuts: integer({
    help: 'cuts of an epoch, a multiple of 12; 34560 on every network but development. With fewer than 120 a validator that restarts is jailed',
    group: TERMS,
    min: 1,
    max: INTERVAL_CUTS,
    default: INTERVAL_CUTS,
  }),
  powEpochLength: integer({
    help: 'cuts of a PoW epoch',
    group: TERMS,
    min: 1,
    max: 1_000_000_000,
    default: POW_EPOCH_CUTS,
  }),
  initialWork: integer({
    help: 'hashes per block at the start',
    group: TERMS,
    min: 1,
    max: 1_000_000_000_000,
    default: Number(DEVELOPMENT_DEFAULTS.initialWork),
  }),
  minimumWork: integer({
    help: 'least hashes per block',
    group: TERMS,
    min: 1,
    max: 1_000_000_000_000,
    default: Number(DEVELOPMENT_DEFAULTS.minimumWork),
  }),
  explorer: parsed(
    {
      help: 'origin where the explorer will be; the config of the public node admits it',
      placeholder: 'ORIGIN',
    },
    (word) => {
      if (!URL.canParse(word) || new URL(word).origin !== word)
        throw new Error('must be an origin such as https://explorer.example');
      return word;
    },
  ),
  publicNode: parsed(
    { help: 'API of the node that the explorer reads unless another one is named', placeholder: 'URL' },
    (word) => {
      if (!/^https?:\/\/[\w.:[\]-]+(\/[\w./-]*)?$/.test(word) || !URL.canParse(word))
        throw new Error('must be a URL such as https://node.example');
      return word;
    },
  ),
  out: path({ help: 'folder of the launch (default: NAME)', placeholder: 'DIR' }),
  ...jsonOption,
} as const;

const listed = (refused: readonly Refusal[]): string =>
  refused.map(({ file, message }) => `${file}: ${message}`).join('; ');

function began(folder: string, { validators, network, bond, launch }: Invitation, say: Say): number {
  const files = folderFiles(folder);
  say({ state: 'invited', invitation: files.invitation, registrations: files.registrations, launch, validators }, [
    `invitation   ${files.invitation}, for ${validators} validators of ${network} with ${bond} coins each`,
    '1. send it to each of them; on its own machine each runs:',
    '     svcd join invitation.json --owner ADDRESS --route HOST --out DIR',
    `2. put the ${validators} registration.json that come back into ${files.registrations}, each under another name ending in .json`,
    '3. run the same svcd launch again',
  ]);
  return 0;
}

export const launchCommand = launching(
  {
    name: 'svcd launch',
    summary:
      'Launches a network of validators on machines of their own: invitation, then genesis and a bundle for each.',
    options: launchOptions,
    operands: [{ name: 'NAME', help: 'of the network: small letters, digits and -' }],
    exits: [
      { code: 0, says: 'the invitation is written, more registrations are awaited, or the network is ready' },
      { code: 1, says: 'refused: nothing was written' },
      { code: 2, says: 'the command line is wrong' },
    ],
    examples: [
      {
        line: 'svcd launch harbour --validators 5 --treasury tsvc1... --faucet tsvc1...=100000',
        says: 'writes harbour/invitation.json',
      },
      {
        line: 'svcd launch harbour',
        says: 'once the registrations are in harbour/registrations: writes harbour/network',
      },
    ],
  },
  async (values, [name = ''], say) => {
    if (!new RegExp(LAUNCH_NAME).test(name))
      throw new UsageError(
        'usage_value',
        `'${name}' is no name of a network`,
        'small letters, digits and -, such as harbour',
      );
    const folder = values.out ?? name;
    const invitation = invitationIn(folder);
    if (invitation === undefined) {
      const { validators, ...terms } = values;
      if (validators === undefined)
        throw new UsageError(
          'usage_option_missing',
          '--validators is missing',
          `there is no invitation in ${folder} yet`,
        );
      const seed = randomBytes(SEED_BYTES).toString('hex');
      const written = invite({ ...terms, name, seed, validators });
      await beginFolder(folder, written);
      return began(folder, written, say);
    }
    if (invitation.name !== name || (values.validators ?? invitation.validators) !== invitation.validators)
      throw new LaunchError(
        'launch_terms',
        `${folder} has the invitation of ${invitation.name} for ${invitation.validators} validators: for other terms name another folder with --out`,
      );
    return finish(folder, invitation, values, say);
  },
);

function finish(
  folder: string,
  invitation: Invitation,
  { explorer, publicNode }: Pick<ValuesOf<typeof launchOptions>, 'explorer' | 'publicNode'>,
  say: Say,
): number {
  const files = folderFiles(folder);
  const done = genesisIn(folder);
  if (done !== undefined) {
    const chain = toHex(chainId(encodeGenesis(done)));
    say({ state: 'ready', chain_id: chain, network: files.network }, [`chain ${chain}`, `${files.network} is ready`]);
    return 0;
  }
  const { joined, refused } = gather(invitation, registrationsIn(folder));
  if (refused.length > 0)
    throw new LaunchError(
      (refused[0] as Refusal).code,
      `${refused.length} of the registrations cannot be taken: correct or remove them: ${listed(refused)}`,
    );
  const { validators } = invitation;
  if (joined.length > validators)
    throw new LaunchError(
      'launch_terms',
      `there are ${joined.length} registrations for ${validators} validators: take ${joined.length - validators} out of ${files.registrations}`,
    );
  if (joined.length < validators) {
    say({ state: 'waiting', registered: joined.map(({ validator }) => validator), validators }, [
      `${joined.length} of ${validators} registrations are in ${files.registrations}:`,
      ...joined.map(({ validator }) => `  ${validator}`),
      'put the others there, and run the same command again',
    ]);
    return 0;
  }
  const made = finishFolder(folder, invitation, joined, steadyMillis(), { explorer, publicNode });
  const bundles = joined.map(({ validator }) => join(files.bundles, bundleName(invitation, validator)));
  say(
    {
      state: 'ready',
      chain_id: made.chain,
      network: files.network,
      bundles,
      bootstrap: made.bootstrap,
      explorer: made.hasExplorer ? files.explorer : null,
    },
    [
      `chain ${made.chain}`,
      `${files.network} is ready`,
      '1. send each validator its bundle; it runs svcd join BUNDLE --out DIR, and compares the chain with yours:',
      ...bundles.map((bundle) => `     ${bundle}`),
      `2. everybody else starts with genesis.json and node.json of ${files.network}`,
      made.hasExplorer
        ? `3. ${files.explorer} is the explorer: copy it to a web server`
        : '3. the explorer is not built (npm run build): see docs/dashboard.md',
    ],
  );
  return 0;
}

const joinOptions = {
  owner: text({
    help: 'with an invitation: who owns the bond, an address of your wallet (svc-wallet new-address)',
    placeholder: 'ADDRESS',
  }),
  rewardAddress: text({ help: 'where rewards go (default: the owner)', placeholder: 'ADDRESS' }),
  commissionBps: integer({
    help: 'part of delegators’ rewards that you keep: 0 to 1000 basis points, in steps of 10',
    min: 0,
    max: 1_000,
    default: DEFAULT_COMMISSION,
  }),
  route: repeated(
    parsed(
      {
        help: 'where other validators reach this one; at most four (default port: 28704, testnet 28709). Without one it dials the others',
        placeholder: 'HOST[:PORT]',
      },
      readRoute,
    ),
  ),
  peer: parsed(
    {
      help: 'where peers reach the node (default: the host of the first route, port 28705, testnet 28707)',
      placeholder: 'HOST[:PORT]',
    },
    readRoute,
  ),
  out: path({ help: 'folder of the validator: keys, data, config', placeholder: 'DIR', required: true }),
  ...jsonOption,
} as const;

export const joinCommand = launching(
  {
    name: 'svcd join',
    summary: 'On the validator’s machine: answers an invitation with new keys that stay there, then takes the bundle.',
    options: joinOptions,
    operands: [{ name: 'FILE', help: 'the invitation, and later the bundle' }],
    examples: [
      {
        line: 'svcd join invitation.json --owner tsvc1... --route validator.example.org --out /var/lib/svc/harbour',
        says: 'makes the keys, and registration.json to send back',
      },
      {
        line: 'svcd join harbour-0123456789abcdef.json --out /var/lib/svc/harbour',
        says: 'checks the bundle, and writes genesis.json and node.json',
      },
    ],
  },
  async ({ out, owner, ...wishes }, [file = ''], say) => {
    const source = readSource(file);
    const files = validatorFiles(out);
    if (kindOf(source) === 'invitation') {
      if (owner === undefined)
        throw new UsageError(
          'usage_option_missing',
          '--owner is missing',
          'an address of your wallet: svc-wallet new-address',
        );
      const invitation = readInvitation(source);
      const { validator, feeAddress, peers } = await joinLaunch(out, invitation, {
        owner,
        rewardAddress: wishes.rewardAddress,
        commissionBps: wishes.commissionBps,
        routes: wishes.route,
        peer: wishes.peer,
      });
      say(
        {
          state: 'joined',
          launch: invitation.launch,
          validator,
          registration: files.registration,
          fee_address: feeAddress,
          peers,
        },
        [
          `validator      ${validator}`,
          `bond           ${invitation.bond} coins, owned by ${owner}`,
          `keys           ${files.keys} (they stay on this machine)`,
          `registration   ${files.registration} (nothing in it is secret): send it back`,
          'when the bundle comes: svcd join BUNDLE --out DIR, with the same folder',
        ],
      );
      return 0;
    }
    const { own, chain, genesis } = await receive(out, readBundle(source));
    say({ state: 'ready', chain_id: chain, validator: own.validator, genesis: files.genesis, config: files.config }, [
      `chain ${chain}`,
      `compare it with what the coordinator and the others have, over another way than the bundle came`,
      `validators     ${genesis.validators.length}, this one is ${own.validator}`,
      'look first, then start:',
      `     svcd doctor --config ${files.config}`,
      `     svcd run --config ${files.config}`,
    ]);
    return 0;
  },
);

function readSource(file: string): string {
  let source: string;
  try {
    source = readSmallFile(file, BUNDLE_BYTES);
  } catch (error) {
    throw new LaunchError('launch_file', `${file} cannot be read: ${(error as Error).message}`);
  }
  const kind = kindOf(source);
  if (kind === 'registration')
    throw new LaunchError('launch_file', `${file} is a registration: send it to the coordinator of the launch`);
  if (kind === undefined) throw new LaunchError('launch_file', `${file} is neither an invitation nor a bundle`);
  return source;
}
