/**
 * A child process must not outlive its parent, and after kill -9 the parent cannot forward a signal. So the parent
 * gives the child one end of a pipe and keeps the other; when the parent ends, however it ended, the pipe closes too.
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
    // The variable is set but there is no stream: it was inherited from another environment.
  }
}

/** The orderly end that every program has. */
export const endThisProcess = () => void process.kill(process.pid, 'SIGTERM');
