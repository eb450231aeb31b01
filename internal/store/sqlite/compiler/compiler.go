// Package compiler makes the build fail with a helpful message if no C compiler is available. SQLite is written in C.
// Without this package, the build would fail with a list of undefined names.
package compiler
