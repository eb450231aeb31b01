package host

import (
	"slices"
	"sync"

	"ductor/cli"
)

// runMarks contains the starts of a run's turns (cli.Mark), and computes which output the turns still need.
type runMarks struct {
	recording sync.Mutex // locked while a mark is stored, so that marks keep their order
	mu        sync.Mutex
	all       []cli.Mark
	settled   []cli.TurnID // turns that ductor will not resume, but whose marks still exist
	over      int64        // offset after the output of the turns that have ended
	forgotten int64        // the output before this offset was deleted
}

// add adds a mark. It removes marks that the new mark replaces, and those of settled turns.
func (k *runMarks) add(m cli.Mark) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := slices.DeleteFunc(slices.Clone(k.all), func(o cli.Mark) bool {
		return o.Turn == m.Turn || o.Turn == cli.BackgroundMark || slices.Contains(k.settled, o.Turn)
	})
	k.all, k.settled = append(kept, m), nil
}

func (k *runMarks) settle(turn cli.TurnID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	marked := slices.ContainsFunc(k.all, func(m cli.Mark) bool { return m.Turn == turn })
	if marked {
		k.settled = append(k.settled, turn)
	}
	return marked
}

func (k *runMarks) open() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.all, func(m cli.Mark) bool { return m.OfTurn() && !slices.Contains(k.settled, m.Turn) })
}

// rests reports whether the run has had a turn, all its turns are settled, and it has no background work.
func (k *runMarks) rests() bool {
	open := k.open()
	k.mu.Lock()
	defer k.mu.Unlock()
	return !open && len(k.all) > 0 && k.all[len(k.all)-1].OfTurn()
}

func (k *runMarks) ended(output int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = max(k.over, output)
}

// neededFrom returns the offset at which ductor would continue to read the output after a restart. The output before
// this offset can be deleted. The offset is the start of the first turn that is not settled, or the end of the last
// turn if all turns are settled. A new turn never starts before the offset.
func (k *runMarks) neededFrom() int64 {
	k.recording.Lock() // waits for marks that are being stored
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

// forgets records that the output before an offset is being deleted. It returns false if that output is already
// deleted.
func (k *runMarks) forgets(before int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	more := before > k.forgotten
	k.forgotten = max(k.forgotten, before)
	return more
}
