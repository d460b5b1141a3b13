/** The Node that the project carries; one for another architecture comes from npm, in the version that package.json names. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Its path; undefined where npm could not bring it. `platform` is such as linux-arm64. */
export function nodeBinary(root: string, platform: string, scratch: string): string | undefined {
  const name = `node-${platform}`;
  const own = join(root, 'node_modules', name, 'bin', 'node');
  if (existsSync(own)) return own;
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };
  const wanted = `${name}@${optionalDependencies[name]}`;
  process.stdout.write(`fetching ${wanted}\n`);
  try {
    const words = ['pack', '--silent', '--pack-destination', scratch, wanted];
    const packed = execFileSync('npm', words, { cwd: scratch, encoding: 'utf8' });
    execFileSync('tar', ['-xzf', join(scratch, packed.trim()), '-C', scratch]);
  } catch {
    return undefined;
  }
  return join(scratch, 'package', 'bin', 'node');
}
