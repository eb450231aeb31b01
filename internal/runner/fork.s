// Go compiles the declarations without bodies in fork_linux.go only beside an assembly file.
