package host

import (
	"slices"
	"sync"

	"ductor/cli"
)

// runMarks are the marks of a run, and what follows from them.
type runMarks struct {
	recording sync.Mutex // held while marks are recorded, so that the order is the right one
	mu        sync.Mutex
	all       []cli.Mark
	settled   []cli.TurnID // of the marked ones
	over      int64        // where the output of the last turn that has ended ends
	forgotten int64        // the output before this was forgotten
}

// add puts a mark in place of those that it makes void.
func (k *runMarks) add(m cli.Mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(k.all), func(o cli.Mark) bool {
		return o.Turn == m.Turn || o.Turn == cli.BackgroundMark || slices.Contains(k.settled, o.Turn)
	})
	k.all, k.settled = append(kept, m), nil
}

// settle notes that a turn is recorded. It says whether the turn has a mark.
func (k *runMarks) settle(turn cli.TurnID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	marked := slices.ContainsFunc(k.all, func(m cli.Mark) bool { return m.Turn == turn })
	if marked {
		k.settled = append(k.settled, turn)
	}
	return marked
}

// open says whether there is a turn that is not recorded.
func (k *runMarks) open() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.all, func(m cli.Mark) bool { return m.OfTurn() && !slices.Contains(k.settled, m.Turn) })
}

// rests reports whether turns ran, all of them are recorded, and none left work in the background.
func (k *runMarks) rests() bool {
	open := k.open()
	k.mu.Lock()
	defer k.mu.Unlock()
	return !open && len(k.all) > 0 && k.all[len(k.all)-1].OfTurn()
}

// ended notes where the output of a turn that has ended ends.
func (k *runMarks) ended(output int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = max(k.over, output)
}

// neededFrom is the offset from which on the output may still be read: after a restart ductor reads from the mark of a
// turn that is not recorded or, if there is none, from the end of the last turn. Marks that are made from now on are not
// before it.
func (k *runMarks) neededFrom() int64 {
	k.recording.Lock() // what is not recorded yet does not count
	defer k.recording.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.all) == 0 {
		return 0
	}
	from := max(k.over, k.all[len(k.all)-1].Output)
	for _, m := range k.all {
		if m.OfTurn() && !slices.Contains(k.settled, m.Turn) {
			from = min(from, m.Output)
		}
	}
	return from
}

// forgets says whether there is more to forget than was forgotten, and notes it.
func (k *runMarks) forgets(before int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	more := before > k.forgotten
	k.forgotten = max(k.forgotten, before)
	return more
}
