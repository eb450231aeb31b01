// Package archtest checks the architecture of the code. Its tests check which packages may import which, and which
// package may import each outside library. docs/architecture.md must list every package, and docs/invariants.md must
// name files and tests that exist. No number in ceilings.txt may rise. The tests parse the module once. "go test
// ./internal/archtest -update" lowers the ceilings and writes the table of packages.
package archtest
