package cli

import "fmt"

// LostOutput says that a part of what a program printed cannot be had: more than was kept came while ductor
// did not read it, or the disk was full or damaged. A Process's Stdout gives it once and can be read on.
type LostOutput struct {
	From, To int64 // offsets in the output
	Reason   string
}

func (e *LostOutput) Error() string {
	return fmt.Sprintf("%d bytes of the output are lost: %s", e.To-e.From, e.Reason)
}
