/** A device's own process in Node, as a port for remote-backend.ts. */
import { fork } from 'node:child_process';
import type { DevicePort, FromDevice } from './remote-backend.ts';

export function forkDevice<S>(program: URL): DevicePort<S> {
  const child = fork(program, {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // The miner's own flags (an inspector's port) are not for its devices.
    execArgv: [],
  });
  let last = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    last = (last + chunk.toString('utf8')).slice(-2_000);
  });
  let ended = false;
  return {
    post(message) {
      // A child that just died is reported by its exit.
      if (child.connected) child.send(message, () => undefined);
    },
    listen(onMessage, onGone) {
      child.on('message', (message) => onMessage(message as FromDevice));
      child.on('error', (error) => onGone(error.message));
      child.on('exit', (code, signal) => {
        if (ended) return;
        ended = true;
        const said = last.trim().split('\n').at(-1) ?? '';
        onGone(`${signal ?? `exit ${code}`}${said === '' ? '' : `: ${said}`}`);
      });
    },
    kill() {
      ended = true;
      child.kill('SIGKILL');
    },
  };
}
