//go:build !amd64 && !arm64

#include "textflag.h"

// func rawVfork(trap, a1, a2 uintptr) (r1, errno uintptr)
// No code calls rawVfork on this platform; see vforkFlags.
TEXT ·rawVfork(SB),NOSPLIT,$0-0
	RET
