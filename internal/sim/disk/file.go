package disk

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
)

// pageSize is the unit in which the kernel caches files and writes them back.
const pageSize = 4096

// sectorSize is the unit in which a medium writes.
const sectorSize = 512

type file struct {
	cache   []byte           // content that programs read; includes the changes in pending
	durable []byte           // content on the medium
	pending []change         // changes since the last sync; some of them may already be on the medium
	lost    map[int64]bool   // pages that a failed sync did not write; the kernel does not retry
	handles map[*handle]bool // open handles

	// failures counts failed syncs. A descriptor that was open during a failure reports the error once, at its next
	// sync.
	failures int
	failure  syscall.Errno // the error of the last failure
	reported map[any]int   // number of failures that each descriptor has reported; a key is a *handle or an *os.File
}

// change is a write to a file, or the truncation of a file at offset.
type change struct {
	offset   int64
	data     []byte
	truncate bool
}

func newFile() *file {
	return &file{lost: map[int64]bool{}, handles: map[*handle]bool{}, reported: map[any]int{}}
}

// descriptor registers a file descriptor. The descriptor does not report failures from before its registration.
func (f *file) descriptor(by any) {
	if _, known := f.reported[by]; !known {
		f.reported[by] = f.failures
	}
}

// unreportedFailure returns the error of an earlier sync that the descriptor has not reported yet, or 0.
func (f *file) unreportedFailure(by any) syscall.Errno {
	f.descriptor(by)
	if f.reported[by] == f.failures {
		return 0
	}
	f.reported[by] = f.failures
	return f.failure
}

// durableFile returns a file whose whole content is on the medium.
func durableFile(content []byte) *file {
	f := newFile()
	f.cache, f.durable = content, slices.Clone(content)
	return f
}

// apply applies the change to content and returns the result. It may overwrite content. The result shares no memory
// with the change.
func (c change) apply(content []byte) []byte {
	if missing := int(c.offset) - len(content); missing > 0 {
		content = append(content, make([]byte, missing)...)
	}
	if c.truncate {
		return content[:c.offset]
	}
	written := copy(content[c.offset:], c.data)
	rest := c.data[written:]
	if len(content)+len(rest) > cap(content) && len(content) > 0 {
		content = slices.Grow(content, max(len(content), len(rest))) // reserve more, as a log grows by small writes
	}
	return append(content, rest...)
}

// change applies c to the content that programs read, and records c for the next sync. If c touches a page that a
// failed sync did not write, the next sync writes the whole page.
func (f *file) change(c change) {
	f.cache = c.apply(f.cache)
	if c.truncate {
		maps.DeleteFunc(f.lost, func(page int64, _ bool) bool { return page*pageSize >= c.offset })
	}
	if !c.truncate && len(f.lost) > 0 {
		first, last := c.offset/pageSize, (c.offset+int64(len(c.data))-1)/pageSize
		for page := first; page <= last; page++ {
			if f.lost[page] {
				delete(f.lost, page)
				begin := page * pageSize
				f.pending = append(f.pending, change{offset: begin,
					data: bytes.Clone(f.cache[begin:min(begin+pageSize, int64(len(f.cache)))])})
			}
		}
	}
	f.pending = append(f.pending, c)
}

// replace replaces the content. The caller must not change the new content afterwards.
func (f *file) replace(content []byte) {
	if bytes.Equal(f.cache, content) {
		return
	}
	f.change(change{truncate: true})
	f.change(change{data: content})
}

// rewrite records that a program has written the whole file, even if the content is the same as before. The caller must
// not change the slice content afterwards.
func (f *file) rewrite(content []byte) {
	f.change(change{data: content})
	clear(f.lost)
}

// rewriteCache is like rewrite, but the content is f.cache.
func (f *file) rewriteCache() {
	if last := len(f.pending) - 1; last >= 0 && f.pending[last].writes(len(f.cache)) {
		f.rewrite(f.pending[last].data)
	} else {
		f.rewrite(bytes.Clone(f.cache))
	}
}

// writes reports whether the change writes a whole file of this size.
func (c change) writes(size int) bool { return !c.truncate && c.offset == 0 && len(c.data) == size }

// grows reports whether the next sync needs more space on the medium.
func (f *file) grows() bool { return len(f.cache) > len(f.durable) }

// sync writes all pending changes to the medium.
func (f *file) sync() {
	for _, c := range f.pending {
		f.durable = c.apply(f.durable)
	}
	f.pending = nil
}

// failSync simulates a failed sync. Random changes reach the medium. The kernel drops the other changes and does not
// write them again.
func (f *file) failSync(random *rand.Rand, why syscall.Errno) {
	for _, c := range f.pending {
		if c.truncate || random.IntN(3) == 0 {
			f.durable = c.apply(f.durable)
			continue
		}
		for page := c.offset / pageSize; page*pageSize < c.offset+int64(len(c.data)); page++ {
			f.lost[page] = true
		}
	}
	f.pending = nil
	f.failures++
	f.failure = why
}

// evict drops the cached pages that a failed sync did not write. It returns the content that programs read afterwards.
func (f *file) evict() []byte {
	for page := range f.lost {
		begin := int(page * pageSize)
		for i := begin; i < min(begin+pageSize, len(f.cache)); i++ {
			f.cache[i] = 0
		}
		if begin < len(f.durable) && begin < len(f.cache) {
			copy(f.cache[begin:], f.durable[begin:min(begin+pageSize, len(f.durable))])
		}
	}
	clear(f.lost)
	return f.cache
}

// survive returns the content after a power failure: everything that was synced, and random parts of the pending
// changes.
func (f *file) survive(random *rand.Rand) []byte {
	content := slices.Clone(f.durable)
	chance := []float64{0, 1, 0.5, random.Float64()}[random.IntN(4)]
	for _, c := range f.pending {
		switch {
		case random.Float64() < chance:
			content = c.apply(content)
		case !c.truncate && len(c.data) > 0 && random.IntN(4) == 0:
			content = c.torn(random).apply(content)
		}
	}
	return content
}

// torn returns a random part of a write: its beginning, its end, or some whole sectors in the middle.
func (c change) torn(random *rand.Rand) change {
	cut := random.IntN(len(c.data) + 1)
	switch random.IntN(3) {
	case 0:
		return change{offset: c.offset, data: c.data[:cut]}
	case 1:
		return change{offset: c.offset + int64(cut), data: c.data[cut:]}
	}
	first := cut / sectorSize * sectorSize
	end := min(len(c.data), first+sectorSize*(1+random.IntN(4)))
	return change{offset: c.offset + int64(first), data: c.data[first:end]}
}
