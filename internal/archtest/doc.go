// Package archtest checks the architecture of the code. Its tests check which packages may import which, and which
// package may import each outside library. docs/architecture.md must list every package, and docs/invariants.md must
// name files and tests that exist. ceilings.txt limits numbers that measure the code, such as the length of functions;
// no number may exceed its limit. "go test ./internal/archtest -update" lowers the limits to the current numbers, and
// writes the table of packages.
package archtest
