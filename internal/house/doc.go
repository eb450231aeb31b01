// Package house holds the rules of the import graph: which room may import which, and which outside library
// lives in which room. It is a test and nothing else; docs/architecture.md tells the same in words.
package house
