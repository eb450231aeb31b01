// Package growstack enlarges the stack of a goroutine in one step before deep calls. A goroutine starts with 2 KB, and
// Go copies its stack frame by frame each time it doubles. That took a tenth of the time between a prompt and its
// agent. A goroutine that is about to call deeply grows its stack while it has only one frame. The garbage collector
// shrinks the stack again.
package growstack

const room = 24 << 10 // in bytes: enough for the calls of a turn; the stack becomes 32 KB

// Grow enlarges the stack of the calling goroutine. It must not be inlined, or else its frame would become part of the
// caller's.
//
//go:noinline
func Grow() {
	var stack [room]byte
	touch(&stack)
}

//go:noinline
func touch(stack *[room]byte) { stack[room-1] = 1 }
