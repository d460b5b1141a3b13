/** Commands of a validator's operator (specification: Operator commands). */

import { DEFAULT_COMMISSION } from '../../protocol/staking/limits.ts';
import { flag, integer, text } from '../../runtime/command-line/command-line.ts';
import type { Command } from '../../runtime/program.ts';
import { CONSENSUS_KEY_INDEXES } from '../keys/derivation.ts';
import { operate, operationOptions } from './operating.ts';
import { terminalPrompt } from './prompt.ts';
import type { Fields } from './session.ts';
import { positionOption } from './staking-commands.ts';
import { walletCommand } from './wallet-command.ts';

/** Options of a new validator. */
export const registrationOptions = {
  amount: text({ help: 'the self-bond, at least 100,000', placeholder: 'COINS', required: true }),
  overlayEndpointHex: text({
    help: "the line of hex that svcd validator-endpoint prints on the validator's machine",
    placeholder: 'HEX',
    required: true,
  }),
  commissionBps: integer({
    help: 'part of delegators’ rewards that you keep: 0 to 1000 basis points, in steps of 10',
    min: 0,
    max: 1_000,
    default: DEFAULT_COMMISSION,
  }),
  rewardAddress: text({ help: "where rewards go (default: the wallet's first address)", placeholder: 'ADDRESS' }),
  consensusKeyIndex: integer({
    help: 'a key of this wallet that no validator ever had',
    min: CONSENSUS_KEY_INDEXES.first,
    max: CONSENSUS_KEY_INDEXES.last,
    default: CONSENSUS_KEY_INDEXES.last,
  }),
} as const;

export const validatorCommands = (name: string): Command[] => [
  walletCommand(
    {
      name: `${name} validator-register`,
      summary: 'registers a validator with a self-bond; asks first',
      options: {
        ...operationOptions,
        ...registrationOptions,
        compoundFirst: flag({ help: 'merge outputs first when the bond needs more than 8' }),
        wait: flag({ help: 'wait until the registration is final' }),
        dryRun: flag({ help: 'only say what it would do and cost' }),
      },
      examples: [
        {
          line: `${name} validator-register --amount 100000 --overlay-endpoint-hex 01... --dry-run`,
          says: 'shows what it would bond, charge and cost',
        },
      ],
    },
    (values, _, terminal) => {
      const { amount, commissionBps, overlayEndpointHex, consensusKeyIndex, rewardAddress, compoundFirst } = values;
      const params = {
        amount,
        overlay_endpoint_hex: overlayEndpointHex,
        commission_bps: commissionBps,
        consensus_key_index: consensusKeyIndex,
        ...(rewardAddress === undefined ? {} : { reward_address: rewardAddress }),
        ...(compoundFirst ? { compound_first: true } : {}),
      };
      const describe = (quote: Fields) =>
        `Register validator ${quote.validator}\nwith a self-bond of ${quote.amount}, commission ${commissionBps / 100} %, consensus key ${consensusKeyIndex},\nrewards to ${quote.reward_address}, fee ${quote.fee}`;
      const { yes, requestId, wait, dryRun } = values;
      return operate(
        { values, terminal, prompt: terminalPrompt },
        { method: 'validator_register', params, yes, requestId, wait, dryRun, describe },
      );
    },
  ),
  walletCommand(
    {
      name: `${name} reward-address`,
      summary: 'changes the reward address of a position; asks first',
      options: {
        ...operationOptions,
        ...positionOption,
        to: text({ help: 'who gets them from now on', placeholder: 'ADDRESS', required: true }),
      },
      examples: [
        { line: `${name} reward-address --position 7c19... --to dsvc1...`, says: 'the stake stays where it is' },
      ],
    },
    (values, _, terminal) => {
      const { position, to, yes, requestId } = values;
      const describe = (quote: Fields) => `Rewards of ${position}\nto ${to}, fee ${quote.fee}`;
      return operate(
        { values, terminal, prompt: terminalPrompt },
        { method: 'reward_address', params: { position, to }, yes, requestId, describe },
      );
    },
  ),
];
