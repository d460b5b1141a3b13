/**
 * Receipts of a slice for 10,000 sessions: the thread that sums up the journal and builds the tree, and the sending by a listener, each
 * with the longest time that the event loop stood still meanwhile, and how long jobs that come from another thread had to wait for their turn. The yardstick is
 * the same sending in one go.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { ReceiptFanOut, type ReceiptMessage, type ReceiptTaker } from '../../../bridge/shares/receipts.ts';
import { Journal } from '../../../pool/journal/journal.ts';
import { encodeRecord } from '../../../pool/journal/journal-record.ts';
import { type MadeSheet, runSheetThread } from '../../../pool/receipts/run-sheets.ts';
import type { ReceiptHead } from '../../../protocol/books/receipt.ts';
import { ByteWriter } from '../../../protocol/bytes.ts';
import { useNativeSha384 } from '../../../runtime/native/native-sha384.ts';
import { accountOf } from '../../bridge/stratum-client.ts';
import type { Bench } from '../harness.ts';

const SESSIONS = 10_000;
const ACCOUNTS = 2_000;
const SHARES_EACH = 24;
/** Slices' ends in a row, so that there are enough jobs to tell of. */
const ROUNDS = 5;

/** The longest wait between two turns of the event loop while `work` runs. */
async function longestStall(work: () => Promise<void>): Promise<{ stall: number; millis: number }> {
  let longest = 0;
  let isRunning = true;
  let last = performance.now();
  const turn = (): void => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (isRunning) setImmediate(turn);
  };
  setImmediate(turn);
  const began = performance.now();
  await work();
  const millis = performance.now() - began;
  isRunning = false;
  await new Promise((resolve) => setImmediate(resolve));
  return { stall: longest, millis };
}

/** A job every five milliseconds, each with the time when it was sent. */
const JOBS = `const { parentPort } = require('node:worker_threads');
  setInterval(() => parentPort.postMessage(performance.timeOrigin + performance.now()), 5);`;

/** How long jobs wait until the main thread takes them while `work` runs; 99 of 100 wait less. */
async function jobDelay(work: () => Promise<unknown>): Promise<number> {
  const worker = new Worker(JOBS, { eval: true });
  const delays: number[] = [];
  await new Promise((resolve) => worker.once('message', resolve));
  worker.on('message', (sent: number) => delays.push(performance.timeOrigin + performance.now() - sent));
  await work();
  await worker.terminate();
  delays.sort((a, b) => a - b);
  return delays[Math.floor(delays.length * 0.99)] ?? Number.NaN;
}

async function busy(): Promise<void> {
  for (const end = performance.now() + 3_000; performance.now() < end; ) {
    for (const until = performance.now() + 1; performance.now() < until; );
    await new Promise((resolve) => setImmediate(resolve));
  }
}

class Taker implements ReceiptTaker {
  readonly isEnding = false;
  readonly peer = { queued: 0 };
  readonly session: ReceiptTaker['session'];
  readonly #form: 1 | 2;
  bytes = 0;

  constructor(number: number, form: 1 | 2) {
    const member = { service: 'pplns', account: accountOf(number % ACCOUNTS) };
    this.session = { member, workers: [`rig${number}`] };
    this.#form = form;
  }

  receipt(message: ReceiptMessage): void {
    // As a socket takes it: the bytes are made and copied.
    if (this.#form === 1) this.bytes += Buffer.from(`${message.line()}\n`, 'latin1').length;
    else for (const frame of message.frames(true)) this.bytes += Buffer.from(frame).length;
  }

  flush(): void {}
}

export async function benchReceipts(b: Bench): Promise<void> {
  useNativeSha384();
  const directory = mkdtempSync(join(tmpdir(), 'svc-receipts-'));
  try {
    const journal = await Journal.open({ directory, bootId: new Uint8Array(8).fill(1) });
    for (let round = 0; round < SHARES_EACH; round++)
      await journal.append(
        Array.from({ length: SESSIONS }, (_, i) =>
          encodeRecord({
            kind: 'share',
            service: 'pplns',
            account: accountOf(i % ACCOUNTS),
            worker: `rig${i}`,
            work: 1_000n,
            atMillis: 1,
            identity: null,
          }),
        ),
      );
    const last = SESSIONS * SHARES_EACH - 1;
    const order = {
      directory,
      bootId: journal.bootId,
      ranges: [{ slice: 1, after: -1, through: last, held: null }],
      doubled: [],
      last,
    };
    const idle = await longestStall(() => new Promise((resolve) => setTimeout(resolve, 2_000)));
    b.figure('receipts/idle: longest stall', idle.stall, 'ms');
    const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 1_000));
    b.figure('receipts/idle: delay of a job, p99', await jobDelay(pause), 'ms');
    // What a thread that is busy in pieces of a millisecond costs on this machine, whatever it does.
    b.figure('receipts/busy with nothing: delay of a job, p99', await jobDelay(busy), 'ms');
    const booked = new ByteWriter(200_000);
    for (let i = 0; i < ACCOUNTS; i++) booked.raw(accountOf(i)).u128(1n << 64n);
    const sheets: MadeSheet[] = [];
    const make = async () => {
      await runSheetThread(order, {
        ask: async () => booked.done(),
        take: async (each) => {
          if (each !== null) sheets.push(each);
          return 'go';
        },
      });
    };
    const made = await longestStall(make);
    const delayMaking = await jobDelay(make);
    await journal.close();
    b.figure(`receipts/sheet of ${SESSIONS} from ${last + 1} shares`, made.millis, 'ms');
    b.figure('receipts/sheet: longest stall of the main thread', made.stall, 'ms');
    b.figure('receipts/sheet: delay of a job, p99', delayMaking, 'ms');
    const [sheet] = sheets;
    if (sheet === undefined) throw new Error('no sheet was made');
    const head: ReceiptHead = {
      network: 'development',
      service: 'pplns',
      slice: 1,
      boot: journal.bootId,
      chain: '00'.repeat(48),
      root: '00'.repeat(48),
      accounts: 1,
      total_work: '1',
      receipts: sheet.count,
      receipts_root: '00'.repeat(48),
    };
    const signature = new Uint8Array(3309);
    const delivery = { head, signature, entries: sheet.entries, offsets: sheet.offsets };
    for (const form of [1, 2] as const) {
      /** Ten thousand who asked; the result sends to them. */
      const ready = (soon: (run: () => void) => void, now: () => number) => {
        const takers = Array.from({ length: SESSIONS }, (_, i) => new Taker(i, form));
        const out = new ReceiptFanOut<Taker>({ soon, now, onDefect: (_, error) => Promise.reject(error) });
        for (const taker of takers) out.ask(taker);
        const deliver = async () => {
          out.deliver(delivery);
          while (out.sent < SESSIONS) await new Promise((resolve) => setImmediate(resolve));
        };
        return { deliver, bytes: () => takers.reduce((sum, taker) => sum + taker.bytes, 0) };
      };
      const send = async (soon: (run: () => void) => void, now: () => number) => {
        const { deliver, bytes } = ready(soon, now);
        return { ...(await longestStall(deliver)), bytes: bytes() };
      };
      await send(setImmediate, () => performance.now());
      const sliced = await send(setImmediate, () => performance.now());
      const whole = await send(
        (run) => run(),
        () => 0,
      );
      b.figure(`receipts/v${form} to ${SESSIONS}`, sliced.millis, 'ms');
      b.figure(`receipts/v${form}: longest stall`, sliced.stall, 'ms', {
        ratio: sliced.stall / whole.stall,
        yardstick: 'all in one go',
      });
      const rounds = Array.from({ length: ROUNDS }, () => ready(setImmediate, () => performance.now()));
      const delay = await jobDelay(async () => {
        for (const round of rounds) await round.deliver();
      });
      b.figure(`receipts/v${form}: delay of a job, p99`, delay, 'ms');
      b.figure(`receipts/v${form}: bytes each`, sliced.bytes / SESSIONS, 'B');
    }
    const kept = sheet.pages.reduce((sum, { leaves, above }) => sum + leaves.length + above.length, 0);
    b.note(`a sheet in the database has ${Math.round(kept / sheet.count)} bytes a receipt`);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
