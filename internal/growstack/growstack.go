// Package growstack enlarges the stack of a goroutine in one step, before deep calls.
//
// A goroutine starts with a stack of 2 KB. Each time the stack is too small, Go doubles its size, and must copy and
// adjust every frame. Without this package, these copies would take a tenth of the time between a prompt and the start
// of its agent. If the stack grows early, it has only one frame, and the copy costs little. The garbage collector later
// shrinks the stack again.
package growstack

const room = 24 << 10 // size in bytes of Grow's frame; makes the stack grow to 32 KB, which is enough for a turn

// Grow enlarges the stack of the calling goroutine. It must not be inlined, because its large frame would then become
// part of the caller's frame.
//
//go:noinline
func Grow() {
	var stack [room]byte
	touch(&stack)
}

//go:noinline
func touch(stack *[room]byte) { stack[room-1] = 1 }
