/** Make the part of an address that names a page from its title. */
export function slug(title, limit = 40) {
  return title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, limit);
}
