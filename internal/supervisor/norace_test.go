//go:build !race

package supervisor

const (
	bigOutput   = 1 << 30
	mostPrivate = 8 << 10 // kB
)
