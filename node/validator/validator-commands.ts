/**
 * `svcd validator-endpoint`; `svcd validator status` and `svcd consensus dump`: reports of a running node about
 * consensus.
 */
import { toHex } from '../../protocol/bytes.ts';
import { CodedError } from '../../protocol/coded-error.ts';
import { flag, parsed, repeated } from '../../runtime/command-line/command-line.ts';
import { command, commandTable } from '../../runtime/program.ts';
import { storeOptions } from '../node-options.ts';
import type { ConsensusReport } from '../reports/consensus-report.ts';
import { askControl } from '../reports/control-socket.ts';
import { endpointOf, overlayKey, readRoute } from './overlay-key.ts';
import { OVERLAY_PORTS } from './validator-options.ts';
import { STANDINGS } from './validator-state.ts';

const statusOptions = { dataDir: storeOptions.dataDir } as const;

const dumpOptions = {
  dataDir: storeOptions.dataDir,
  trace: flag({ help: 'the recorded events of the running height instead, for a replay' }),
} as const;

const read = async (dataDir: string): Promise<ConsensusReport> =>
  JSON.parse(await askControl(dataDir)) as ConsensusReport;

function signing({
  signs,
  member,
  stopped,
  listens,
  listens_cuts: cuts,
  barred,
}: ConsensusReport['consensus']): string {
  if (stopped) return 'no: its key runs in another process too';
  if (listens)
    return `not yet: it listens first whether its key runs elsewhere, about ${cuts} more cuts, longer while few members are connected`;
  if (member >= 0 && !signs) return `not up to height ${barred}: votes of its key came that its log does not have`;
  return signs ? 'yes' : 'no';
}

/** One line a fact. */
export function statusLines({ validator, neighbours, consensus }: ConsensusReport): string[] {
  const { height, round, step } = consensus;
  const place = `height ${height}, round ${round}, ${step}; ${neighbours} neighbours`;
  if (validator === null) return ['this node has no consensus key: it follows', place];
  const standing: { readonly says: string; readonly advice?: string } = STANDINGS[validator.standing];
  const seat = consensus.member < 0 ? `no: ${standing.says}` : `yes, member ${consensus.member}`;
  return [
    `validator            ${validator.id}`,
    `in the committee     ${seat}`,
    ...(standing.advice === undefined ? [] : [`what to do           ${standing.advice}`]),
    `signs                ${signing(consensus)}`,
    `windows attended     ${validator.attended_windows} of ${validator.windows_over} that are over in epoch ${validator.epoch}`,
    `last heartbeat       ${validator.heartbeat_epoch === null ? 'none: it is not registered' : `epoch ${validator.heartbeat_epoch}`}`,
    `consensus            ${place}`,
  ];
}

const statusCommand = command(
  {
    name: 'svcd validator status',
    summary: 'Says whether the validator of a running node is in the committee, signs and attends its windows.',
    options: statusOptions,
    examples: [{ line: 'svcd validator status --data-dir .data/node', says: 'of the node that runs there' }],
  },
  async ({ dataDir }, _operands, terminal) => {
    const report = await read(dataDir);
    terminal.out(`${statusLines(report).join('\n')}\n`);
    return report.validator === null || report.consensus.signs ? 0 : 1;
  },
);

const dumpCommand = command(
  {
    name: 'svcd consensus dump',
    summary: 'Prints the state of the running round as JSON.',
    options: dumpOptions,
    examples: [{ line: 'svcd consensus dump --data-dir .data/node', says: 'of the node that runs there' }],
  },
  async ({ dataDir, trace: wantsTrace }, _operands, terminal) => {
    const { trace, ...rest } = await read(dataDir);
    terminal.out(wantsTrace ? trace : `${JSON.stringify(rest, null, 2)}\n`);
    return 0;
  },
);

const endpointOptions = {
  ...storeOptions,
  route: repeated(
    parsed(
      {
        help: 'where others reach the validator: one route stands for TCP and QUIC on that port; at most four (default port: 28704, testnet 28709)',
        placeholder: 'HOST[:PORT]',
      },
      readRoute,
    ),
  ),
} as const;

const endpointCommand = command(
  {
    name: 'svcd validator-endpoint',
    summary: 'Makes the overlay key of a validator, once, and prints its endpoint as one line of hex.',
    options: endpointOptions,
    examples: [
      {
        line: 'svcd validator-endpoint --route validator.example.org',
        says: 'for svc-wallet validator-register --overlay-endpoint-hex',
      },
      { line: 'svcd validator-endpoint', says: 'a validator without a route dials the others' },
    ],
  },
  async ({ dataDir, network, route }, _operands, terminal) => {
    try {
      terminal.out(`${toHex(endpointOf(await overlayKey(dataDir), route, OVERLAY_PORTS[network]))}\n`);
      return 0;
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      terminal.err(`svcd validator-endpoint: ${error.message} [${error.code}]\n`);
      return 1;
    }
  },
);

export const validatorCommands = [
  endpointCommand,
  commandTable('svcd validator', 'The validator of a running node.', [statusCommand]),
  commandTable('svcd consensus', 'The consensus of a running node.', [dumpCommand]),
];
