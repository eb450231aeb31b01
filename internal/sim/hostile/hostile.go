// Package hostile helps to test parsers. It generates texts that make careless parsers slow, and checks that a parser's
// time grows only in proportion to the length of the text.
package hostile

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// All returns all texts of Markdown and Printed.
func All(size int) map[string]string {
	all := Markdown(size)
	for name, text := range Printed(size) {
		all["printed "+name] = text
	}
	return all
}

// Parameters of Linear. If a text becomes `factor` times as long, a linear parser takes factor times as long, and a
// quadratic parser factor² times.
const (
	small  = 40 << 10
	factor = 4
	most   = 2 * factor
	tries  = 5
	// Linear accepts every parser that is faster than this for the longer text. Even if such a parser is quadratic, it
	// parses a megabyte within a second.
	fastEnough = 20 * time.Millisecond
)

// Linear fails the test if a parser's time grows faster than the length of the text. The function work must parse the
// text in the calling goroutine. Linear measures the CPU time of a thread, which does not depend on the load of the
// machine. It tries several times before it fails.
func Linear(t *testing.T, texts func(size int) map[string]string, work func(text string)) {
	t.Helper()
	if raceDetector {
		t.Skip("the race detector makes it fifteen times as slow; go test without it, and scripts/test --long, run it")
	}
	short, long := texts(small), texts(factor*small)
	for _, name := range slices.Sorted(maps.Keys(long)) {
		if grows, ratio := growth(func() { work(short[name]) }, func() { work(long[name]) }); grows {
			t.Errorf("%s: %d times the text is %.1f times the work", name, factor, ratio)
		}
	}
}

func growth(short, long func()) (grows bool, least float64) {
	for range tries {
		after := processorTime(long)
		if after < fastEnough {
			return false, 0
		}
		ratio := float64(after) / float64(max(processorTime(short), 1))
		if ratio < most {
			return false, ratio
		}
		if least == 0 || ratio < least {
			least = ratio
		}
	}
	return true, least
}

// processorTime calls work and returns the CPU time that the call took.
func processorTime(work func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	from := threadTime()
	work()
	return threadTime() - from
}

func threadTime() time.Duration {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		panic(err) // cannot happen, because every Linux has this clock
	}
	return time.Duration(at.Nano())
}

// Benchmark measures the CPU time that work needs for a megabyte of each text.
func Benchmark(b *testing.B, texts func(size int) map[string]string, work func(text string)) {
	all := texts(1 << 20)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			var took time.Duration
			for b.Loop() {
				took += processorTime(func() { work(all[name]) })
			}
			b.ReportMetric(took.Seconds()/float64(b.N), "s/MB")
			b.ReportMetric(0, "ns/op") // hide this figure, because it depends on the load of the machine
		})
	}
}
