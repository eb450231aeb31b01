// Package growstack gives a goroutine room for deep calls in one step. Go starts a goroutine with 2 KB and copies its stack, frame
// by frame, each time it doubles. That took a tenth of the time between a prompt and its agent. A goroutine that is about to call
// deeply asks for the room while it has one frame. Go takes the room back when it collects garbage.
package growstack

const room = 24 << 10 // bytes: what the calls of a turn need; with it the stack has 32 KB

// Grow gives the goroutine that calls it the room. It is not inlined: its own frame must not become a part of its caller's.
//
//go:noinline
func Grow() {
	var stack [room]byte
	use(&stack)
}

//go:noinline
func use(stack *[room]byte) { stack[room-1] = 1 }
