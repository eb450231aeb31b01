// Package growstack enlarges the stack of a goroutine in one step, before deep calls.
//
// A goroutine starts with a stack of 2 KB. Each time the stack is too small, Go doubles its size, and must copy and
// adjust every frame. Without this package, these copies would take a tenth of the time between a prompt and the start
// of its agent. If the stack grows early, it has only one frame, and the copy costs little. The garbage collector later
// shrinks the stack again.
package growstack

// The sizes in bytes of the frames of Grow and GrowForTurn.
const (
	room     = 24 << 10 // too large for a stack of 16 KB, so Go enlarges the stack to 32 KB
	turnRoom = 48 << 10 // too large for a stack of 32 KB, so Go enlarges the stack to 64 KB
)

// use is always false, but the compiler does not know that. So the frames of Grow and GrowForTurn contain space for an
// array, but the code that would clear the array never runs.
var use bool

// Grow enlarges the stack of the calling goroutine to 32 KB. It must not be inlined, because its large frame would then
// become part of the caller's frame.
//
//go:noinline
func Grow() {
	if use {
		var stack [room]byte
		touch(stack[:])
	}
}

// GrowForTurn is like Grow, but enlarges the stack to 64 KB. A goroutine that runs a turn needs more than 32 KB.
//
//go:noinline
func GrowForTurn() {
	if use {
		var stack [turnRoom]byte
		touch(stack[:])
	}
}

//go:noinline
func touch(stack []byte) { stack[len(stack)-1] = 1 }
