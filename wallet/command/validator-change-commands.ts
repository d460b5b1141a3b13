/**
 * Commands for the owner of a validator (specification: Operator commands): heartbeat, key, endpoint, commission, exit.
 * Each asks for confirmation at a terminal.
 */
import { flag, integer, text, type ValuesOf } from '../../runtime/command-line/command-line.ts';
import type { Command, Terminal } from '../../runtime/program.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import type { StakingKind } from '../state/records.ts';
import { operate, operationOptions } from './operating.ts';
import { terminalPrompt } from './prompt.ts';
import type { Fields } from './session.ts';
import { walletCommand } from './wallet-command.ts';

const changeOptions = {
  ...operationOptions,
  validator: text({ help: 'one of `validators` that this wallet registered', placeholder: 'ID', required: true }),
  wait: flag({ help: 'wait until the change is final' }),
  dryRun: flag({ help: 'only say what it would do and cost' }),
} as const;

const { first: min, last: max } = CONSENSUS_KEY_INDEXES;
const keyIndex = (help: string) => integer({ help, min, max, required: true });
const endpointOption = {
  overlayEndpointHex: text({
    help: 'the line of hex of `svcd validator-endpoint`',
    placeholder: 'HEX',
    required: true,
  }),
} as const;

function change(
  values: ValuesOf<typeof changeOptions>,
  terminal: Terminal,
  method: StakingKind,
  more: Fields,
  describe: (quote: Fields) => string,
): Promise<number> {
  const { validator, yes, requestId, wait, dryRun } = values;
  return operate(
    { values, terminal, prompt: terminalPrompt },
    { method, params: { validator, ...more }, yes, requestId, wait, dryRun, describe },
  );
}

export const validatorChangeCommands = (name: string): Command[] => [
  walletCommand(
    {
      name: `${name} validator-heartbeat`,
      summary: 'sends the heartbeat of the running epoch; asks first. A node with a fee key does so by itself',
      options: {
        ...changeOptions,
        consensusKeyIndex: integer({
          help: 'index of the key that signs now (default: the wallet looks for it)',
          min,
          max,
        }),
      },
      examples: [{ line: `${name} validator-heartbeat --validator 3f0a...`, says: 'asks before it pays the fee' }],
    },
    (values, _, terminal) => {
      const { consensusKeyIndex: index, validator } = values;
      const more = index === undefined ? {} : { consensus_key_index: index };
      return change(
        values,
        terminal,
        'validator_heartbeat',
        more,
        (quote) => `Heartbeat of ${validator}\nfee ${quote.fee}`,
      );
    },
  ),
  walletCommand(
    {
      name: `${name} validator-rotate`,
      summary: 'gives a validator another consensus key, from the second epoch after this one on',
      options: {
        ...changeOptions,
        ...endpointOption,
        consensusKeyIndex: keyIndex('the new key: an index that no validator ever had'),
      },
      examples: [
        {
          line: `${name} validator-rotate --validator 3f0a... --consensus-key-index 2147483646 --overlay-endpoint-hex 01...`,
          says: 'the old key signs until then',
        },
      ],
    },
    (values, _, terminal) => {
      const { validator, consensusKeyIndex: index, overlayEndpointHex: endpoint } = values;
      const more = { consensus_key_index: index, overlay_endpoint_hex: endpoint };
      return change(
        values,
        terminal,
        'validator_rotate',
        more,
        (quote) =>
          `Rotate the consensus key of ${validator}\nto index ${index}, which signs from epoch ${quote.from_epoch} on at the earliest, fee ${quote.fee}`,
      );
    },
  ),
  walletCommand(
    {
      name: `${name} validator-endpoint`,
      summary: 'replaces the registered endpoint of a validator',
      options: {
        ...changeOptions,
        ...endpointOption,
        consensusKeyIndex: keyIndex('of the key that signs now: it signs the endpoint too'),
      },
      examples: [
        {
          line: `${name} validator-endpoint --validator 3f0a... --consensus-key-index 2147483647 --overlay-endpoint-hex 01...`,
          says: 'with the first key of this wallet',
        },
      ],
    },
    (values, _, terminal) => {
      const { validator, consensusKeyIndex, overlayEndpointHex } = values;
      const more = { consensus_key_index: consensusKeyIndex, overlay_endpoint_hex: overlayEndpointHex };
      return change(
        values,
        terminal,
        'validator_endpoint',
        more,
        (quote) =>
          `Replace the endpoint of ${validator}\nfrom epoch ${quote.from_epoch} on at the earliest, fee ${quote.fee}`,
      );
    },
  ),
  walletCommand(
    {
      name: `${name} validator-commission`,
      summary: 'announces another commission, in force 14 epochs later',
      options: {
        ...changeOptions,
        commissionBps: integer({
          help: 'part of delegators’ rewards that you keep: 0 to 1000 basis points, in steps of 10',
          min: 0,
          max: 1_000,
          required: true,
        }),
      },
      examples: [{ line: `${name} validator-commission --validator 3f0a... --commission-bps 300 --wait`, says: '3 %' }],
    },
    (values, _, terminal) => {
      const { validator, commissionBps } = values;
      return change(
        values,
        terminal,
        'validator_commission',
        { commission_bps: commissionBps },
        (quote) =>
          `Commission of ${validator}\n${commissionBps / 100} % from epoch ${quote.from_epoch} on at the earliest, fee ${quote.fee}`,
      );
    },
  ),
  walletCommand(
    {
      name: `${name} validator-exit`,
      summary:
        'ends a validator permanently and unbonds all its stake; withdraw the self-bond ten epochs (ten days) later',
      options: changeOptions,
      examples: [{ line: `${name} validator-exit --validator 3f0a...`, says: 'asks first: an exit cannot be undone' }],
    },
    (values, _, terminal) =>
      change(
        values,
        terminal,
        'validator_exit',
        {},
        (quote) =>
          `Exit of ${values.validator}\nevery position of it unbonds, delegations too; this cannot be undone. Let its node run to the end of the epoch. Fee ${quote.fee}`,
      ),
  ),
];
