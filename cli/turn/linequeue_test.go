package turn

import "testing"

// Whoever waits for a token before each take sees the end, also when the last line and the end came together.
func TestLineQueueTellsOfItsEnd(t *testing.T) {
	q := newLineQueue(10)
	q.put(queued{line: []byte("last")})
	q.close()
	for range 2 {
		select {
		case <-q.ready:
		default:
			t.Fatal("nobody is woken, and the end was not seen")
		}
		if _, open := q.take(); open {
			t.Error("it is open after its end")
		}
	}
}
