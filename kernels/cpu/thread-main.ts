/** Entry of a worker thread of the CPU kernel, in Node and in a browser: takes tasks, holds one Kernel per epoch. */
import { monotonicMillis } from '../../runtime/clock/clock.ts';
import { KernelError } from '../kernel-error.ts';
import { createMemory, Kernel } from './kernel.ts';
import { Searcher } from './thread-search.ts';
import type { HashAnswer, HashRequest, OpenTask, ThreadAnswer, ThreadEvent, ThreadTask } from './thread-tasks.ts';

type Inbox = { id: number; task: ThreadTask };

const isNode = typeof process === 'object' && process.versions?.node !== undefined;
const parent = isNode ? process.getBuiltinModule('node:worker_threads').parentPort : null;
const page = globalThis as unknown as {
  postMessage(message: unknown): void;
  onmessage: ((event: { data: Inbox }) => void) | null;
};

const post = (message: ThreadAnswer | ThreadEvent): void =>
  parent === null ? page.postMessage(message) : parent.postMessage(message);

/** A turn of the event loop that a browser does not throttle, as it does timers. */
const turn = new MessageChannel();
let turnTaken: (() => void) | undefined;
if (!isNode) turn.port1.onmessage = () => turnTaken?.();
const later = (callback: () => void): void => {
  if (isNode) {
    setImmediate(callback);
    return;
  }
  turnTaken = callback;
  turn.port2.postMessage(undefined);
};

const kernels = new Map<number, Kernel>();

function kernelOf(epoch: number): Kernel {
  const kernel = kernels.get(epoch);
  if (kernel === undefined)
    throw new KernelError('kernel_epoch_not_ready', `epoch ${epoch} is not prepared`, { epoch });
  return kernel;
}

const searcher = new Searcher({
  kernel: (epoch) => kernels.get(epoch),
  emit: post,
  now: monotonicMillis,
  later,
});

function open(task: OpenTask): void {
  const memory = task.memory ?? createMemory(task.layout, false);
  kernels.set(task.epoch, new Kernel(task.module, memory, task.layout, task.slot));
}

function attach(port: MessagePort): void {
  port.onmessage = (event: MessageEvent<HashRequest>) => {
    const { id, epoch, headers } = event.data;
    const hashes = kernels.get(epoch)?.hash(headers);
    const answer: HashAnswer = hashes === undefined ? { id } : { id, hashes };
    port.postMessage(answer, hashes === undefined ? [] : [hashes.buffer]);
  };
}

function perform(task: ThreadTask): unknown {
  switch (task.kind) {
    case 'open':
      return open(task);
    case 'close':
      return void kernels.delete(task.epoch);
    case 'cache':
      return kernelOf(task.epoch).buildCache(task.seed, task.from, task.to);
    case 'items':
      return kernelOf(task.epoch).buildItems(task.from, task.to);
    case 'sample': {
      const kernel = kernelOf(task.epoch);
      return task.pages.filter((index) => !kernel.isPageRight(index)).length;
    }
    case 'search':
      return searcher.setJob(task.job);
    case 'pause':
      return searcher.pause(task.paused);
    case 'attach':
      return attach(task.port);
  }
}

function take({ id, task }: Inbox): void {
  try {
    post({ id, value: perform(task) });
  } catch (error) {
    if (!(error instanceof KernelError)) throw error;
    post({ id, error: { code: error.code, message: error.message, fields: error.fields } });
  }
}

if (parent === null) page.onmessage = (event) => take(event.data);
else parent.on('message', take);
