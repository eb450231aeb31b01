// Package compiler fails to compile without a C compiler, with an identifier that names the fix. SQLite is written in
// C: without this package, the build would fail with a list of undefined names.
package compiler
