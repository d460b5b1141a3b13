/** The program of a listener thread: a desk and a listener, with the hub at the other end of the thread's port. */
import { parentPort, workerData } from 'node:worker_threads';
import { attachVerifier, type VerifierTicket } from '../../kernels/verifier.ts';
import { clientFaults } from '../../runtime/client-fault.ts';
import { steadyNow } from '../../runtime/clock.ts';
import { useNativeSha384 } from '../../runtime/native-sha384.ts';
import { randomPieces } from '../../runtime/random-pieces.ts';
import { Desk } from '../connection/desk.ts';
import { Listener } from '../connection/listener.ts';
import type { SessionRecord } from '../session/session-record.ts';
import { packShares } from '../shares/share-batch.ts';
import type { Balance, Hub } from './hub.ts';
import type { ListenerThreadOptions } from './listener-threads.ts';
import { PortCalls } from './port-calls.ts';

if (parentPort === null) throw new Error('this file is the program of a worker thread');
useNativeSha384();

const { options, ticket } = workerData as { options: ListenerThreadOptions; ticket: VerifierTicket };

const hub: Hub = {
  own: (members) => calls.call<void>('own', [members]),
  rejoin: (member) => calls.tell('rejoin', [member]),
  left: (members) => calls.tell('left', [members.map(({ handle }) => handle)]),
  shares: (shares) => {
    const packed = packShares(shares);
    return calls.call<void>('shares', [packed], [packed.buffer]);
  },
  refused: (shares) => calls.tell('refused', [shares]),
  block: (candidate) => calls.tell('block', [candidate]),
  worker: (events) => calls.tell('worker', [events]),
  resume: (id, thread) => calls.call<SessionRecord | null>('resume', [id, thread]),
  ended: (record) => calls.tell('ended', [record]),
  fault: (address, fault) => calls.tell('fault', [address, fault]),
  balance: (service, account) => calls.call<Balance | null>('balance', [service, account]),
};

const desk = new Desk(options.desk, {
  hub,
  verifier: attachVerifier(ticket),
  now: steadyNow,
  soon: setImmediate,
  randomBytes: randomPieces(),
  log: (level, message, fields) =>
    calls.tell('log', [
      level,
      message,
      { ...fields, error: fields.error === undefined ? undefined : String(fields.error) },
    ]),
});
clientFaults.forwardTo((door, error) => calls.tell('clientFault', [door, error]));
const listener = new Listener(options.listener, desk);
const calls = new PortCalls(
  parentPort,
  {
    listen: () => listener.listen(),
    publish: listener.publish.bind(listener),
    setReady: listener.setReady.bind(listener),
    setCertificate: listener.setCertificate.bind(listener),
    ban: listener.ban.bind(listener),
    takeSession: (id: string) => listener.takeSession(id),
    receipts: listener.receipts.bind(listener),
    figures: () => listener.figures(),
    drain: () => listener.drain(),
    close: () => listener.close(),
  },
  (name, error) => calls.tell('log', ['error', 'what the main thread told failed', { name, error: String(error) }]),
);
