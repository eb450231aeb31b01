package inbox

import (
	"sync"
	"testing"
)

// Functions run one at a time. Each caller sees its functions run in their order.
func TestFunctionsRunOneAtATime(t *testing.T) {
	const callers, calls = 8, 200
	total := 0 // not guarded, except by the inbox
	in := New(&total)
	var last [callers]int
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for n := range calls {
				in.Handle(func(total *int) {
					if last[caller] != n {
						t.Errorf("caller %d: function %d ran before function %d", caller, n, last[caller])
					}
					last[caller]++
					*total++
				})
			}
		})
	}
	all.Wait()
	if total != callers*calls {
		t.Errorf("%d functions ran, want %d", total, callers*calls)
	}
}

// Functions that arrive while an inbox joins another one run in the other one, with its owner, one at a time.
func TestAnInboxJoinsAnother(t *testing.T) {
	const callers = 8
	first, second := 0, 0 // not guarded, except by the inboxes
	from, to := New(&first), New(&second)
	var all sync.WaitGroup
	from.Handle(func(*int) {
		for range callers {
			all.Go(func() { from.Handle(func(owner *int) { *owner++ }) })
			all.Go(func() { to.Handle(func(owner *int) { *owner++ }) })
		}
		to.Handle(func(*int) { from.Join(&to) })
	})
	all.Wait()
	if first != 0 || second != 2*callers {
		t.Errorf("%d functions ran in the first inbox and %d in the second, want 0 and %d", first, second, 2*callers)
	}
}
