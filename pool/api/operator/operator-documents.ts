/** Documents of the operator's routes, under `api/v1/operator/`, with `Authorization: Bearer TOKEN`. */
import {
  anything,
  described,
  flag,
  type Infer,
  list,
  nullable,
  number,
  object,
  oneOf,
  optional,
  text,
} from '../../../protocol/api/schema.ts';
import {
  address,
  amount,
  bigNumber,
  count,
  height,
  identifier,
  millis,
  version,
} from '../../../protocol/api/values.ts';
import { AUDIT_PARTS } from '../../audit/slices.ts';
import { EDITABLE } from '../../edits/editable.ts';
import { payoutState, service } from '../documents.ts';

export const operatorStatus = object(
  {
    api_version: version,
    sheet: object({
      rewards: amount,
      uncredited: amount,
      balances: amount,
      in_flight: amount,
      paid: amount,
      pool_fees: amount,
      network_fees: amount,
      gap: text({ pattern: '^-?(0|[1-9][0-9]{0,18})$', description: 'atoms; anything but 0 is an alarm' }),
    }),
    wallet: object({
      ready: flag(),
      reason: nullable(text()),
      spendable: nullable(amount),
      outputs: nullable(count),
    }),
    payouts_paused: flag(),
    payouts_held: described(nullable(text()), 'why nothing is paid: the books and the wallet do not agree'),
    accounts_refused: described(
      list(object({ account: count, address, why: text() })),
      'accounts that are not paid because their books fail the audit before a payout',
    ),
    accountant: object({ term: text(), holder: text(), here: flag() }),
  },
  'OperatorStatus',
);
export type OperatorStatus = Infer<typeof operatorStatus>;

export const instances = object(
  {
    api_version: version,
    instances: list(
      object({
        instance: text(),
        boot_id: text(),
        version: text(),
        ready: flag('whether it serves miners'),
        connections: count,
        accepted: described(count, 'shares since its start'),
        rejected: count,
        height: described(height, 'the newest cut that it knows of'),
        waiting: described(count, 'entries of its journal that the books have not taken yet'),
        accountant: flag(),
        started_millis: millis,
        seen_millis: millis,
      }),
    ),
  },
  'Instances',
);
export type InstancesDocument = Infer<typeof instances>;

export const connections = object(
  {
    api_version: version,
    all: described(count, 'connections of this instance'),
    found: described(count, 'those that are looked for; the newest 200 of them are listed'),
    connections: list(
      object({
        ip: text(),
        service,
        address: described(nullable(address), 'null before the login'),
        worker: text(),
        agent: described(text(), 'the program, as it names itself'),
        since_millis: millis,
        accepted: count,
        stale: count,
        rejected: count,
      }),
    ),
  },
  'Connections',
);
export type ConnectionsDocument = Infer<typeof connections>;

const banFields = { key: text(), until_millis: millis } as const;
export const bans = object({ api_version: version, bans: list(object(banFields)) }, 'Bans');
export type BansDocument = Infer<typeof bans>;
export const ban = object({ api_version: version, ...banFields }, 'Ban');
export const lifted = object({ api_version: version, lifted: flag() }, 'Lifted');

export const config = object({ api_version: version, config: anything('options by name') }, 'Config');

export const payoutAction = oneOf(['release', 'void', 'sent']);
export type PayoutAction = Infer<typeof payoutAction>;
export const queue = object(
  {
    api_version: version,
    payouts: list(
      object({
        payout_id: text(),
        number: described(nullable(count), "its place in the wallet's record, once the wallet was asked"),
        state: payoutState,
        total: amount,
        recipients: count,
        items: list(object({ address, amount })),
        needs_person: nullable(text()),
        reason: nullable(text()),
        created_millis: millis,
        actions: described(list(payoutAction), 'what the operator can do about it now'),
      }),
    ),
  },
  'Queue',
);
export type QueueDocument = Infer<typeof queue>;

export const settings = object(
  {
    api_version: version,
    settings: list(
      object({
        name: oneOf(EDITABLE),
        value: described(nullable(text()), 'as it counts now, written as in the options'),
        file_value: described(
          nullable(text()),
          'of the options of this instance, a fee of those of the accountant; null for what has no option',
        ),
        edited: described(flag(), 'an edit counts, or is announced, instead of the options'),
        changes: described(
          list(object({ value: text(), from_slice: count, from_height: height })),
          'fees that are announced, in their order, and the slice and cut that each begins with',
        ),
      }),
    ),
  },
  'Settings',
);
export type SettingsDocument = Infer<typeof settings>;

export const notice = object({ api_version: version, notice: nullable(text()) }, 'Notice');
export const pause = object({ api_version: version, payouts_paused: flag() }, 'Pause');
export const payNow = object({ api_version: version, asked: flag() }, 'PayNow');
export const released = object({ api_version: version, released: text() }, 'Released');
export const sent = object({ api_version: version, sent: text() }, 'Sent');
export const voided = object({ api_version: version, voided: text() }, 'Voided');

export const heldRewards = object(
  {
    api_version: version,
    rewards: list(
      object({
        block_id: identifier,
        service,
        anchor_height: height,
        claimed: nullable(amount),
        reason: nullable(text()),
        accepted: nullable(amount),
      }),
    ),
  },
  'HeldRewards',
);
export type HeldRewardsDocument = Infer<typeof heldRewards>;
export const acceptedReward = object({ api_version: version, accepted: amount }, 'AcceptedReward');

const firstTexts = object({ count, first: described(list(text()), 'the first of them') });

export const audit = object(
  {
    api_version: version,
    state: oneOf(['idle', 'running', 'done', 'failed'], 'of the last audit that this instance made since its start'),
    started_millis: nullable(millis),
    ended_millis: nullable(millis),
    progress: described(
      nullable(
        object({
          part: oneOf(AUDIT_PARTS),
          done: count,
          of: described(nullable(count), 'how many there are; null: not known'),
        }),
      ),
      'of one that runs',
    ),
    reason: described(nullable(text()), 'why it failed'),
    result: described(
      nullable(
        object({
          slices: count,
          lists: count,
          accounts: count,
          ledger: described(flag(), 'whether all rewards and payments were compared with the node'),
          wallet: described(flag(), "whether all payouts were compared with the wallet's record"),
          differences: count,
          unread: described(count, 'of the differences: parts that could not be read'),
          findings: described(
            list(object({ what: text(), books: text(), computed: text(), remedy: text() })),
            'the first differences',
          ),
          not_checked: described(firstTexts, 'what the books or the node have not reached yet'),
          owed: described(firstTexts, 'rewards that the operator has to pass on'),
        }),
      ),
      'what one that is done found',
    ),
  },
  'Audit',
);
export type AuditDocument = Infer<typeof audit>;

export const operatorHistory = object(
  {
    api_version: version,
    seconds_per_point: count,
    points: list(
      object({
        at_millis: described(millis, 'when it begins; times in which no instance kept the books have no point'),
        accepted: described(count, 'accepted shares'),
        refused: described(
          list(object({ result: text(), count })),
          'refused shares by their error, where there were any',
        ),
        books_behind: described(nullable(count), 'the most cuts that the books were behind the node; null: not known'),
        payouts_open: described(nullable(count), 'the most payouts under way at a time'),
        wallet_spendable: described(nullable(amount), 'the least that the wallet could pay; null: it did not answer'),
        front_ends: described(
          list(object({ name: text(), connections: count })),
          'the fewest connections of each instance; one that is not named was not heard of',
        ),
      }),
    ),
  },
  'OperatorHistory',
);
export type OperatorHistoryDocument = Infer<typeof operatorHistory>;

export const withholding = object(
  {
    api_version: version,
    line: described(count, 'the evidence at which an account is named: at most one honest account in so many ever is'),
    suspects: list(
      object({
        address: described(nullable(address), 'null: all accounts together'),
        expected: described(number(), 'blocks that its shares were expected to be'),
        found: described(count, 'blocks that it found'),
        evidence: described(number(), 'the highest so far'),
        withheld_work: described(bigNumber, 'about so many hashes were done for blocks that never came'),
        named_millis: millis,
        worked_millis: described(millis, 'when work of it was last counted'),
      }),
    ),
  },
  'Withholding',
);
export type WithholdingDocument = Infer<typeof withholding>;

export const operatorLog = object(
  {
    api_version: version,
    entries: list(
      object({ at_millis: millis, actor: text(), action: text(), details: anything('what belongs to the action') }),
    ),
    next_cursor: optional(text()),
  },
  'OperatorLog',
);
export type OperatorLogDocument = Infer<typeof operatorLog>;
