// Package archtest checks the architecture of the code. Its tests check which packages may import which, and which
// package may import each outside library. docs/architecture.md must list every package, and docs/invariants.md must
// name files and tests that exist. ceilings.txt limits measurements of the code, such as the length of functions. "go
// test ./internal/archtest -update" lowers the limits to the current measurements, and writes the table of packages.
package archtest
