// Package archtest checks the architecture and the sizes of the code: which package may import which, which outside
// library belongs to which package, that docs/architecture.md lists every package, that it and docs/invariants.md name
// files and tests that exist, and that no number in ceilings.txt rises. It consists of tests, which share one parse of
// the module. "go test ./internal/archtest -update" lowers the ceilings and writes the list of packages.
package archtest
