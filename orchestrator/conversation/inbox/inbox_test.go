package inbox

import (
	"sync"
	"testing"
)

// Functions run one at a time. Each caller sees its functions run in their order.
func TestFunctionsRunOneAtATime(t *testing.T) {
	const callers, calls = 8, 200
	var in Inbox
	var last [callers]int
	total := 0 // not guarded, except by the inbox
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for n := range calls {
				in.Handle(func() {
					if last[caller] != n {
						t.Errorf("caller %d: function %d ran before function %d", caller, n, last[caller])
					}
					last[caller]++
					total++
				})
			}
		})
	}
	all.Wait()
	if total != callers*calls {
		t.Errorf("%d functions ran, want %d", total, callers*calls)
	}
}
