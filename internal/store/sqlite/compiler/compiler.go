// Package compiler fails to compile, with one sentence that says what to install, if there is no C compiler. SQLite is written in C,
// and package sqlite would fail with a list of undefined names.
package compiler
