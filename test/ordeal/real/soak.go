package real

import "time"

// sample is what ductor held at a moment of a soak.
type sample struct {
	At time.Duration
	measures
	Database, WAL, Spool, Journals int64 // bytes
}

func (o *ordeal) soak(time.Duration) {}
