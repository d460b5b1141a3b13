/** A stranger at the overlay of a validator that restarts, between real processes: it brings genuine final cuts before any member does, is asked for their blocks, and sends other bodies. */
import { afterEach, expect, test } from 'vitest';
import { BLOCK_MESSAGE_TYPES, MESSAGE_TYPES } from '../../node/consensus/link/message-types.ts';
import { developmentKey } from '../../node/genesis/development.ts';
import { chainId as chainIdOf, encodeGenesis } from '../../protocol/ledger/genesis.ts';
import { VALIDATORS, ValidatorProcesses } from '../consensus/processes.ts';
import { treasuryOutput } from '../network/peers.ts';
import { payment } from '../node/bed.ts';
import { temporaryDirectory } from '../temporary.ts';
import { until } from '../until.ts';
import { lasts } from '../watch/limits.ts';
import { OverlayStranger, spoiledBlock } from './overlay-stranger.ts';

const CUT_MILLIS = 400;
const BOB = developmentKey('bob').address;
const VICTIM = VALIDATORS - 1;
/** Once would be too few: a node that finds fault with a certified cut gets its blocks once more before it ends. */
const SPOILED = 3;

let running: ValidatorProcesses | undefined;
const strangers: OverlayStranger[] = [];
afterEach(async () => {
  for (const stranger of strangers) stranger.close();
  await running?.close();
});

test(
  'a stranger that brings final cuts to a validator that restarts, and spoils their blocks, does not end it: members come, and it is at the head',
  lasts(300, 'validators start, and one starts again'),
  async () => {
    const processes = new ValidatorProcesses(temporaryDirectory());
    running = processes;
    await processes.prepare(CUT_MILLIS);
    const victim = processes.validators[VICTIM] as (typeof processes.validators)[0];
    const others = processes.all.filter((process) => process !== victim);
    for (const process of processes.all) process.start();
    await processes.reached(2);
    await victim.end('SIGKILL');
    const chainId = chainIdOf(encodeGenesis(processes.genesis));
    const chain = { genesis: processes.genesis, chainId, head: () => ({ height: 0 }) } as unknown as Parameters<
      typeof payment
    >[0] &
      Parameters<typeof treasuryOutput>[0];
    await processes.mine([payment(chain, [treasuryOutput(chain, 0)], [{ address: BOB, amount: 5n }])]);
    const mined = await processes.highest();
    // So much later that its cut is final: what the victim lacks has a block.
    await processes.reached(mined + 3, others);

    processes.part([VICTIM]);
    victim.start();
    let spoiled = 0;
    // It asks a validator in the victim's words, and hands on what it is told.
    const source = new OverlayStranger(processes.validators[0]?.ports.overlay as number, chainId, (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.finalized) target.send(bytes);
      if (bytes[0] !== BLOCK_MESSAGE_TYPES.block) return;
      spoiled++;
      target.send(spoiledBlock(bytes));
    });
    const target = new OverlayStranger(victim.ports.overlay, chainId, (bytes) => {
      if (bytes[0] === MESSAGE_TYPES.have || bytes[0] === BLOCK_MESSAGE_TYPES.want) source.send(bytes);
    });
    strangers.push(source, target);
    // Its height is asked for: one that has ended by itself fails the test.
    await until(async () => (await victim.height()) >= 0 && spoiled >= SPOILED, { why: () => victim.output });
    processes.heal();
    const head = await processes.highest();
    await processes.reached(head + 1, [victim]);
    expect(victim.starts).toBe(2);
  },
);
