/** A program as its manual page and the completions of shells see it: a command, and those below it. */
import type { CommandSpec, OptionTable } from './options.ts';

export interface CommandTree {
  readonly spec: CommandSpec<OptionTable>;
  readonly commands?: readonly CommandTree[];
}

/** A command with all below it, itself first. */
export const allCommands = (tree: CommandTree): CommandTree[] => [tree, ...(tree.commands ?? []).flatMap(allCommands)];

/** The word that names a command within the one above it. */
export const lastWord = ({ spec }: CommandTree): string => spec.name.slice(spec.name.lastIndexOf(' ') + 1);

/** Commands with options or a work of their own; the others only hold commands. */
export const hasOwnWork = ({ spec, commands = [] }: CommandTree): boolean =>
  commands.length === 0 || Object.keys(spec.options).length > 0;
