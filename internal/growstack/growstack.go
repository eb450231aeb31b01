// Package growstack enlarges the stack of a goroutine in one step before deep calls. A goroutine starts with 2 KB.
// Each time Go doubles the stack, it copies the stack frame by frame, which took a tenth of the time between a prompt
// and its agent. While a goroutine has only one frame, copying costs little. The garbage collector later shrinks the
// stack again.
package growstack

const room = 24 << 10 // bytes; enough for the calls of a turn, and makes the stack 32 KB

// Grow enlarges the stack of the calling goroutine. It must not be inlined: its frame would become part of the
// caller's.
//
//go:noinline
func Grow() {
	var stack [room]byte
	touch(&stack)
}

//go:noinline
func touch(stack *[room]byte) { stack[room-1] = 1 }
