package turn

import (
	"slices"
	"testing"
)

func TestAQueueDropsWhatIsTooMuch(t *testing.T) {
	b := NewQueue[int](0)
	for i := range 3 {
		b.Put(i, QueueLimit/2)
	}
	b.Put(3, 0)
	if all, full := b.Take(); !slices.Equal(all, []int{0, 1, 3}) || !full {
		t.Errorf("%v, %v", all, full)
	}
	b.Put(4, 2*QueueLimit) // a single item is accepted
	<-b.Ready()
	if all, full := b.Take(); !slices.Equal(all, []int{4}) || full {
		t.Errorf("%v, %v", all, full)
	}
	b.Put(5, 1)
	if rest := b.Close(); len(rest) != 1 || b.Put(6, 0) {
		t.Errorf("%v is left, and it takes more", rest)
	}
}
