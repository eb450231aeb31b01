//go:build !cgo

package compiler

// To fix it on Debian and Ubuntu: sudo apt install gcc libc6-dev. If CGO_ENABLED=0 is in the environment, unset it.
var _ = SQLite_needs_a_C_compiler_so_install_gcc_and_build_again
