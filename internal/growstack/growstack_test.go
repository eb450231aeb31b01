package growstack

import "testing"

// BenchmarkDeep calls deeply on new goroutines, with and without Grow.
func BenchmarkDeep(b *testing.B) {
	for name, first := range map[string]func(){"grown": Grow, "as it is": func() {}} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				done := make(chan int)
				go func() {
					first()
					done <- deep(100)
				}()
				<-done
			}
		})
	}
}

//go:noinline
func deep(n int) int {
	var frame [128]byte
	if n == 0 {
		return 0
	}
	frame[n] = byte(deep(n - 1))
	return int(frame[n]) + 1
}
