// Reads the settings that name programs: as the user set them for this machine, whatever a workspace says.

/** The part of VS Code's `WorkspaceConfiguration` that is used. */
export interface Inspects {
  inspect<T>(name: string): { defaultValue?: T; globalValue?: T } | undefined;
}

export interface ServerWishes {
  path: string;
  args: string[];
  python: string;
}

/** Reads the section `tiller.server`. Values of workspaces and folders are left out even if VS Code has some. */
export function serverWishes(section: Inspects): ServerWishes {
  const args = ofUser<unknown>(section, "args");
  return {
    path: textOf(ofUser(section, "path")),
    args: Array.isArray(args) ? args.filter((word) => typeof word === "string") : [],
    python: textOf(ofUser(section, "python")),
  };
}

function ofUser<T>(section: Inspects, name: string): T | undefined {
  const told = section.inspect<T>(name);
  return told?.globalValue ?? told?.defaultValue;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
