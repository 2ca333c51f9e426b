/** What the server says of the key of a provider that takes none. */
export const NO_KEY = "none is needed";
