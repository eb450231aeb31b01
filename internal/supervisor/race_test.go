//go:build race

package supervisor

// The race detector makes everything slower and larger, supervisors included.
const (
	bigOutput   = 64 << 20
	mostPrivate = 40 << 10 // kB
)
