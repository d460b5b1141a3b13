/** Runs the thread that makes sheets of a journal (sheet-thread.ts), and answers it. */
import { Worker } from 'node:worker_threads';
import type { Service } from '../journal/journal-record.ts';
import type { SheetPage } from './sheet-pages.ts';
import type { LeftOut, SheetSpan, SliceRange } from './tally.ts';

export type SheetOrder = {
  readonly directory: string;
  readonly bootId: string;
  readonly ranges: readonly SliceRange[];
  /** Sequences of shares that counted before, of these and of all entries behind them that the books have. */
  readonly doubled: ArrayLike<number>;
  readonly leftOut?: LeftOut;
  /** The newest sequence that is certainly on disk. */
  readonly last: number;
};

export type MadeSheet = {
  readonly service: Service;
  readonly slice: number;
  readonly span: SheetSpan;
  readonly root: Uint8Array;
  readonly count: number;
  /** Pages to be stored. */
  readonly pages: readonly SheetPage[];
  /** Entries in shared memory, and where each begins. */
  readonly entries: Uint8Array;
  readonly offsets: Uint32Array;
};

/** Slices that the journal lacks entries of, and those that the books do not have as the journal's marks say. */
export type SheetEnd = {
  readonly holed: readonly number[];
  readonly unheld: readonly number[];
  readonly belated: readonly number[];
};

export type SheetMessage =
  | { readonly kind: 'ask'; readonly service: Service; readonly slice: number }
  /** `less`: receipts of accounts of which the books hold less. */
  | { readonly kind: 'sheet'; readonly sheet: MadeSheet; readonly less: number }
  | ({ readonly kind: 'end' } & SheetEnd);

/**
 * Answer to a question: rows of `account 49 || u128 work`, or that the sheet is not needed. Answer to a sheet:
 * continue. Stop: end of the order.
 */
export type SheetAnswer = Uint8Array | 'skip' | 'go' | 'stop';

export type SheetDesk = {
  /** The accounts' work in a slice of the books. Sheets come oldest first. */
  ask(service: Service, slice: number): Promise<Uint8Array | 'skip' | 'stop'>;
  take(sheet: MadeSheet, less: number): Promise<'go' | 'stop'>;
};

/**
 * Starting the thread loads its modules again, which takes 0.2 s of CPU time. With short slices the next order arrives
 * before this time is over.
 */
const KEEP_MILLIS = 30_000;

/** The thread of the last order. It does not keep the process alive. */
let kept: { readonly worker: Worker; readonly end: NodeJS.Timeout } | undefined;

function takeThread(): Worker {
  if (kept === undefined) return new Worker(new URL('./sheet-thread.ts', import.meta.url), { name: 'receipts' });
  const { worker, end } = kept;
  kept = undefined;
  clearTimeout(end);
  forget(worker);
  worker.ref();
  return worker;
}

/** Removes only our own listeners: a Worker needs its internal ones to receive messages. */
function forget(worker: Worker): void {
  for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event);
}

function keepThread(worker: Worker): void {
  forget(worker);
  if (kept !== undefined) {
    void worker.terminate();
    return;
  }
  worker.unref();
  const letGo = () => {
    if (kept?.worker === worker) kept = undefined;
    clearTimeout(end);
  };
  const end = setTimeout(() => {
    // Its end takes a while, and the next order may come first.
    letGo();
    void worker.terminate();
  }, KEEP_MILLIS).unref();
  kept = { worker, end };
  worker.once('error', () => undefined);
  worker.once('exit', letGo);
}

export function runSheetThread(order: SheetOrder, desk: SheetDesk): Promise<SheetEnd> {
  return new Promise((resolve, reject) => {
    const worker = takeThread();
    const answer = async (message: SheetMessage): Promise<void> => {
      if (message.kind === 'end') {
        keepThread(worker);
        resolve(message);
      } else if (message.kind === 'ask') worker.postMessage(await desk.ask(message.service, message.slice));
      else worker.postMessage(await desk.take(message.sheet, message.less));
    };
    worker.on('message', (message: SheetMessage) => {
      answer(message).catch((error) => {
        reject(error);
        void worker.terminate();
      });
    });
    worker.once('error', reject);
    worker.once('exit', (code) => reject(new Error(`the thread ended with ${code}`)));
    worker.postMessage(order);
  });
}
