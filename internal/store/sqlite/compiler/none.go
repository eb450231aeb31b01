//go:build !cgo

package compiler

// On Debian and Ubuntu: sudo apt install gcc libc6-dev. With CGO_ENABLED=0 in the environment: unset it.
var _ = SQLite_needs_a_C_compiler_so_install_gcc_and_build_again
