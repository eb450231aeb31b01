package supervisor

// ring is the last bytes of a stream, in memory.
type ring struct {
	buf []byte
	end int64 // offset after the last byte

	from int64 // what is before was forgotten
}

func newRing(size int) ring { return ring{buf: make([]byte, size)} }

func (r *ring) start() int64 { return max(r.end-int64(len(r.buf)), r.from) }

// append takes p, which is no longer than the ring.
func (r *ring) append(p []byte) {
	at := int(r.end % int64(len(r.buf)))
	n := copy(r.buf[at:], p)
	copy(r.buf, p[n:])
	r.end += int64(len(p))
}

// readAt reads from an offset in [start, end).
func (r *ring) readAt(p []byte, offset int64) int {
	p = p[:min(int64(len(p)), r.end-offset)]
	at := int(offset % int64(len(r.buf)))
	n := copy(p, r.buf[at:])
	n += copy(p[n:], r.buf)
	return n
}
