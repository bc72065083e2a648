// Package mirror reads and writes side files in two copies, each with checksums of its own and
// each enough: for what cannot be rebuilt from anything else. DESIGN.md has the bytes.
package mirror
