// Package house holds the rules of the import graph: which room may import which, and which outside library
// lives in which room; and that the pages which describe the house name files and tests that exist. It is tests
// and nothing else; docs/architecture.md tells the same in words.
package house
