/** The Node that the project carries; one for another architecture comes from npm, as package-lock.json names it. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

type Locked = { readonly version: string; readonly integrity: string };

/** Its path; undefined where npm could not bring it. `platform` is such as linux-arm64. */
export function nodeBinary(root: string, platform: string, scratch: string): string | undefined {
  const name = `node-${platform}`;
  const own = join(root, 'node_modules', name, 'bin', 'node');
  if (existsSync(own)) return own;
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>;
  };
  const { version, integrity } = packages[`node_modules/${name}`] as Locked;
  const wanted = `${name}@${version}`;
  process.stdout.write(`fetching ${wanted}\n`);
  let packed: string;
  try {
    const words = ['pack', '--silent', '--pack-destination', scratch, wanted];
    packed = join(scratch, execFileSync('npm', words, { cwd: scratch, encoding: 'utf8' }).trim());
  } catch {
    return undefined;
  }
  if (`sha512-${createHash('sha512').update(readFileSync(packed)).digest('base64')}` !== integrity)
    throw new Error(`${wanted} from npm is not the one that package-lock.json names`);
  execFileSync('tar', ['-xzf', packed, '-C', scratch]);
  return join(scratch, 'package', 'bin', 'node');
}
