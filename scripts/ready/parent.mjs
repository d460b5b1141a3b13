/**
 * A program that was started for another one must not outlive it: kill -9 lets nobody pass on a signal. The parent gives the
 * child one end of a pipe and keeps the other; when the parent is gone, however it ended, the pipe ends too.
 */
import { Socket } from 'node:net';

const VARIABLE = 'SVC_PARENT_FD';
const FD = 3;

/** Added to the options of spawn(): the fourth stream, and the variable that names it. */
export const watchedStream = /** @type {const} */ ('pipe');
export const watchedEnvironment = Object.freeze({ [VARIABLE]: String(FD) });

/**
 * In a child: calls back when the parent is gone. Nothing happens in a program that was started by hand.
 * @param {() => void} onGone
 */
export function watchParent(onGone) {
  const named = process.env[VARIABLE];
  // Not for the children of this process: they have pipes of their own, or none.
  delete process.env[VARIABLE];
  if (named !== String(FD)) return;
  try {
    const pipe = new Socket({ fd: FD, readable: true, writable: false });
    let told = false;
    for (const end of ['end', 'close', 'error'])
      pipe.on(end, () => {
        if (!told) onGone();
        told = true;
      });
    pipe.resume();
    pipe.unref();
  } catch {
    // The variable is there and the stream is not: somebody else's environment.
  }
}

/** The orderly end that every program has. */
export const endThisProcess = () => void process.kill(process.pid, 'SIGTERM');
