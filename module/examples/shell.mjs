/** The start of an example from a shell. Used by the other examples. */

/** Whether this file was started, also through a link: `npm install FOLDER` makes one. */
async function isStarted(file) {
  if (typeof process === 'undefined' || !process.argv?.[1]) return false;
  const { realpathSync } = await import('node:fs');
  try {
    return realpathSync(process.argv[1]) === file;
  } catch {
    // With `node -e` it is a word of the caller and no file.
    return false;
  }
}

/** Prints what `act` returns for the words of the command line, or its refusal in one line. Does nothing where `file` was imported. */
export async function startFromShell(file, act) {
  if (!(await isStarted(file))) return;
  try {
    console.log(await act(process.argv.slice(2)));
  } catch (error) {
    console.error(`${error.code ?? ''} ${error.message} ${error.cause?.message ?? ''}`.trim());
    process.exitCode = 1;
  }
}

export async function standardInput() {
  let text = '';
  for await (const part of process.stdin) text += part;
  return text.trim();
}
